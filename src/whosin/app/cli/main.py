"""Entry point of the `whosin` command.

Contract: exit 0; 1 when a claim fails; 2 for a wrong call or wrong input; 3 for a failing
environment; 4 when a claim is undecided (`verify --at-most`). Messages go to standard error, one
line, without a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import typer

from whosin.app.cli import (
    audit,
    check,
    cite,
    demo,
    explain,
    gwas,
    ledger,
    notions,
    plan,
    release,
    serve,
    sql,
    table,
    tradeoff,
    verify,
)
from whosin.app.cli.repeated import refuse_repeated
from whosin.app.cli.vocabulary_options import as_option, option_of
from whosin.errors import (
    BrokenHistory,
    BudgetRefused,
    Interrupted,
    MechanismFailed,
    MissingExtra,
    ScanFailed,
    StoreFailed,
    WhosinError,
)

OLD_SPELLINGS = {
    "--cells": "--groups",
    "--claims-delta": "--delta",
    "--claims-epsilon": "--at-most",
}
"""Options that were called differently in earlier versions."""

app = typer.Typer(
    name="whosin",
    help="How sure can anyone be that you are in the data?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("plan")(plan.plan)
app.command("explain")(explain.explain)
app.command("verify")(verify.verify)
app.command("notions")(notions.notions)
app.command("tradeoff")(tradeoff.tradeoff)
app.command("release")(release.release)
app.command("sql")(sql.sql)
app.add_typer(check.app, name="check")
app.add_typer(table.app, name="table")
app.add_typer(ledger.app, name="ledger")
app.command("audit")(audit.audit)
app.add_typer(gwas.app, name="gwas")
app.command("serve")(serve.serve)
app.command("demo")(demo.demo)
app.command("cite")(cite.cite)


@app.callback(invoke_without_command=True)
def _options(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        from importlib.metadata import version as installed

        print(f"whosin {installed('whosin')}")
        raise typer.Exit


READER_GONE = 141
"""The exit code where the output could not be written, as shells know it (128 + SIGPIPE): never 0,
for a claim may have been refuted."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options: dict[str, str] = {}
    words: list[str] = []
    try:
        command = _command()
        words = [_as_now(word) for word in (sys.argv[1:] if arguments is None else arguments)]
        options = refuse_repeated(command, words)
        result = command(args=words, prog_name="whosin", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except (typer.Abort, KeyboardInterrupt):
        return _fail("interrupted", 130)
    except Interrupted as error:
        return _fail(str(error), 130)
    except (BrokenHistory, BudgetRefused) as error:
        return _fail(str(error), 1)
    except (MechanismFailed, MissingExtra, ScanFailed, StoreFailed) as error:
        return _fail(str(error), 3)
    except WhosinError as error:
        error.path = as_option(error.path, options) or option_of(error, options, words)
        return _fail(str(error), 2)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        return _fail(f"{error.filename}: {(error.strerror or 'cannot be read').lower()}", 2)
    except BrokenPipeError:
        # Whoever read our output has gone: stay quiet, also when Python flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except MemoryError:
        return _fail("out of memory", 3)
    except OSError as error:
        return _fail(str(error), 3)
    except SystemExit as error:
        # Rich leaves this way, with 1, when whoever read our output has gone.
        return READER_GONE if error.code else 0
    except Exception as error:
        # Typer keeps the base class of its usage errors private; they know how to show themselves.
        if not hasattr(error, "show") or not hasattr(error, "exit_code"):
            return _fail(f"internal error, please report it: {type(error).__name__}: {error}", 3)
        error.show()
        return int(error.exit_code)


@cache
def _command() -> Any:
    """The command, made once in a process: this takes some 70 ms."""
    return typer.main.get_command(app)


def _as_now(word: str) -> str:
    """A word of the command line, with an option's present name in place of an old one."""
    name, equals, value = word.partition("=")
    return OLD_SPELLINGS.get(name, name) + equals + value


def _fail(message: str, code: int) -> int:
    print(f"whosin: {message}", file=sys.stderr)
    return code


def run() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that lacks a letter gets its number
            stream.reconfigure(errors="backslashreplace")
    sys.exit(main())
