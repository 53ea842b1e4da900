"""The lines of CSV files on Spark, by the rules of `texts`; texts that are UTF-8 in all tables."""

from __future__ import annotations

from typing import Any

from whosin.errors import InvalidInput
from whosin.release.engines.csv_lines import CUT, LONGEST, MARK, Header

LONGEST_LINE = "mapreduce.input.linerecordreader.line.maxlength"
READABLE = LONGEST + 100
"""Bytes of a line that Hadoop hands on; it skips longer ones, so that none fills a worker."""

UTC = ("UTC", "Etc/UTC", "Z", "GMT", "+00:00")


def csv_rows(text: Any, header: Header) -> Any:
    """Lines, in the column `value`, as a frame with the header's columns."""
    from pyspark.sql import functions as f

    separator, quote = header.separator, f.lit('"')
    line = f.ltrim(f.substring_index("value", CUT, 1), f.lit(MARK))
    lines = text.select(line.alias("line"))
    lines = lines.filter(
        f.is_valid_utf8("line")
        & ~f.col("line").isin("", header.line)
        & (f.octet_length("line") <= LONGEST)
    )
    # Pieces between quotes: those at odd positions are inside, if all quotes are CSV's.
    pieces = f.split("line", quote, -1)
    last = f.size(pieces) - 1

    def fits(piece: Any, index: Any) -> Any:
        begins = (index == 0) | f.startswith(piece, f.lit(separator))
        ends = (index == last) | f.endswith(piece, f.lit(separator))
        return (index % 2 == 1) | (piece == "") | (begins & ends)

    def masked(piece: Any, index: Any) -> Any:
        inside = f.replace(piece, f.lit(separator), f.lit(CUT))
        return f.when(index % 2 == 1, inside).otherwise(piece)

    whole = (last % 2 == 0) & f.forall(f.transform(pieces, fits), lambda each: each)
    hidden = f.array_join(f.transform(pieces, masked), '"')
    plain = ~f.contains(f.col("line"), quote)
    line = f.when(~plain & whole, hidden).otherwise(f.col("line"))
    fields = lines.select(f.split(line, f"[{separator}]", -1).alias("fields"))

    def column(index: int) -> Any:
        field = f.replace(f.get("fields", f.lit(index)), f.lit(CUT), f.lit(separator))
        quoted = f.startswith(field, quote) & f.endswith(field, quote) & (f.char_length(field) > 1)
        inside = f.substring(field, f.lit(2), f.char_length(field) - 2)
        unquoted = f.when(quoted, f.replace(inside, f.lit('""'), quote)).otherwise(field)
        return f.nullif(unquoted, f.lit(""))

    named = [column(index) for index in range(len(header.columns))]
    return fields.select(*named).toDF(*header.columns)


def valid(frame: Any) -> Any:
    """A frame whose texts are UTF-8 (what is not is repaired, since it could fail on its way out),
    and whose moments are as they are in UTC."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType, TimestampType

    kinds = [field.dataType for field in frame.schema.fields]
    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    if zone not in UTC and any(isinstance(kind, TimestampType) for kind in kinds):
        accepted = "UTC, for a table with moments (spark.sql.session.timeZone)"
        raise InvalidInput("time zone of the Spark session", accepted, zone)
    columns = []
    for name, kind in zip(frame.columns, kinds, strict=True):
        column = f.col(f"`{name.replace('`', '``')}`")
        if isinstance(kind, StringType):
            column = f.make_valid_utf8(column)
        elif isinstance(kind, TimestampType):
            column = column.cast("timestamp_ntz")
        columns.append(column)
    return frame.select(*columns).toDF(*frame.columns)
