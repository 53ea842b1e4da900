"""Tables of other databases: PostgreSQL, SQLite, and any that has an ADBC driver.

Contract: a table is known by what its database says of its columns; rows come as Arrow, the needed
columns only and one consistent state of them, and DuckDB reads them by the rules that it has for
files. What a column becomes, and whether a table is opened, depends on types alone. A password is
never part of a source, and no message repeats what a database or a driver said: it may quote rows.

`address` reads sources, `systems` lists what databases there are, `needed` finds which columns and
conditions an expression needs, and `fetched` brings the rows into DuckDB.
"""

from whosin.release.engines.databases.address import Address, read_address
from whosin.release.engines.databases.systems import DatabaseTable, described, open_table, tables_of

__all__ = ["Address", "DatabaseTable", "described", "open_table", "read_address", "tables_of"]
