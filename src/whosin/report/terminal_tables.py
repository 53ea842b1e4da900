"""Tables on terminals of any width.

Contract: no number and no word is ever cut. Where a table would have to cut, its rows are printed
one after the other, a line per cell.
"""

from __future__ import annotations

from collections.abc import Container

from rich.console import Console
from rich.table import Table
from rich.text import Text


def columns_table(*names: str, right: Container[str] = ()) -> Table:
    """A table with these columns, some of them of numbers, which stand to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in names:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table


def facts_table() -> Table:
    """A table of facts: what it is, and how much."""
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    return table


def print_table(console: Console, table: Table, lead: int = 1) -> None:
    """Print a table, or its rows as entries if a word of it would be cut.

    Args:
        lead: how many columns together name a row.
    """
    with console.capture() as drawn:
        console.print(table)
    cells = (str(cell) for column in table.columns for cell in column.cells)
    words = {word for cell in cells for word in Text.from_markup(cell).plain.split()}
    if words <= set(drawn.get().split()):
        console.print(table)
        return
    heads = [str(column.header) for column in table.columns]
    for row in zip(*(map(str, column.cells) for column in table.columns), strict=True):
        console.print(f"[bold]{' '.join(row[:lead])}[/bold]")
        for head, cell in zip(heads[lead:], row[lead:], strict=True):
            if cell:
                console.print(f"  {head}: {cell}")
