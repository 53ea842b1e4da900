"""SQL as a way to ask: one SELECT becomes the queries that a scenario would name.

Contract: what is asked is read from the text, the schema and the declared domains, never from rows;
it becomes the same queries, with the same prices, as they would be in a scenario. A construct that
no query answers is refused by its name, with the nearest that can be asked. Nothing of the text
reaches an engine: conditions are translated as those of a scenario are.
"""

from whosin.release.sql.statement import queries_in

__all__ = ["queries_in"]
