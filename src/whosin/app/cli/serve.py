"""`whosin serve`: the page, on this machine unless told otherwise."""

from __future__ import annotations

import errno
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from whosin.app.cli.main import Json, print_json
from whosin.errors import InvalidInput, invalid_value, require_extras

if TYPE_CHECKING:
    from whosin.app.web.access import Settings


def serve(
    folder: Annotated[
        Path, typer.Option(help="The folder whose tables and scenarios are served.")
    ] = Path(),
    ledger: Annotated[
        str | None, typer.Option(help="The ledger: a file (FOLDER/ledger.db), or postgresql://…")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 for a free one.")] = 8321,
    name: Annotated[
        list[str] | None, typer.Option(help="A host name under which others reach the page.")
    ] = None,
    users: Annotated[
        Path | None, typer.Option(help="The file of users (FOLDER/whosin-users.json).")
    ] = None,
    add_user: Annotated[
        str | None,
        typer.Option(
            help="Make a token for a user, print it once, and stop. As soon as there is a user, "
            "everyone needs a token, on this machine too."
        ),
    ] = None,
    curator: Annotated[
        bool,
        typer.Option(
            "--curator", help="With --add-user: who sees all requests, and may open budgets."
        ),
    ] = False,
    remove_user: Annotated[
        str | None, typer.Option(help="Take a user's token back, and stop.")
    ] = None,
    register: Annotated[
        bool | None,
        typer.Option(
            "--register/--no-register",
            help="Whether curators may bring files and open budgets; by default only locally.",
        ),
    ] = None,
    upload_limit: Annotated[int, typer.Option(help="The largest upload, in MB.")] = 64,
    scan_minutes: Annotated[float, typer.Option(help="The longest that a release may take.")] = 10,
    scan_memory: Annotated[int, typer.Option(help="The most memory of a release, in MB.")] = 4096,
    log: Annotated[
        bool, typer.Option("--log", help="A line of JSON on standard error for each request.")
    ] = False,
    json: Json = False,
) -> None:
    """Serve a web page for all of this: plan, release, verify, and the ledger.

    It listens to this machine only. Beyond that, every user needs a token, whose name goes into the
    ledger; put a server that speaks HTTPS in front of it.
    """
    if not folder.is_dir():
        raise invalid_value("--folder", "an existing folder", folder.name)
    file = users if users is not None else folder / "whosin-users.json"
    if add_user is not None:
        from whosin.app.web.access import add_user as add
        from whosin.app.web.access import read_users

        token = add(file, add_user, curator)
        first = len(read_users(file)) == 1
        words = f"{add_user}: {token}\nIt is not shown again; only a digest of it is kept."
        words += "\nFrom now on everyone needs a token, on this machine too." * first
        print_json({"user": add_user, "token": token}) if json else print(words)
        return
    if remove_user is not None:
        from whosin.app.web.access import remove_user as remove

        remove(file, remove_user)
        words = f"{remove_user} has no token any longer."
        print_json({"removed": remove_user}) if json else print(words)
        return
    require_extras("web")
    for field, value, least, most in (
        ("--upload-limit", upload_limit, 1, 100_000),
        ("--scan-minutes", scan_minutes, 0.1, 10_000),
        ("--scan-memory", scan_memory, 256, 10_000_000),
    ):
        if not least <= value <= most:
            raise invalid_value(field, f"from {least} to {most}", value)
    settings = replace(
        _make_settings(folder, ledger, host, tuple(name or ()), file, register),
        largest_upload=upload_limit << 20,
        scan_seconds=scan_minutes * 60,
        scan_memory=scan_memory << 20,
        log=log,
    )
    from whosin.app.web.server import make_server

    with _bind_port(host, port) as listening:
        address = f"[{host}]" if ":" in host else host
        url = f"http://{address}:{listening.getsockname()[1]}/"
        print_json({"url": url}) if json else print(f"whosin is at {url}   Ctrl-C stops it")
        sys.stdout.flush()
        make_server(settings).run(sockets=[listening])


def _make_settings(
    folder: Path,
    ledger: str | None,
    host: str,
    names: tuple[str, ...],
    users: Path,
    register: bool | None,
) -> Settings:
    from whosin.app.web.access import Settings, is_loopback, read_users
    from whosin.ledger import Ledger
    from whosin.ledger.store import read_url

    where = ledger if ledger is not None else str(folder / "ledger.db")
    read_url(where)
    if "://" in where:  # a file is made with the first release, a shared ledger must be there now
        Ledger(where).dispose()
    local, known = is_loopback(host), read_users(users)
    if not local and not known:
        message = f"anyone who can reach {host} could use this page, since no user has a token yet"
        hint = "make one first with whosin serve --add-user NAME"
        raise InvalidInput(message, field="--host", value=host, hint=hint)
    opens = register if register is not None else local and not known
    return Settings(folder, where, users, names, not local or bool(known), opens)


def _bind_port(host: str, port: int) -> socket.socket:
    """Bind the port first, so that a port that is taken gives one clear line."""
    if not 0 <= port <= 65535:
        raise invalid_value("--port", "from 0 to 65535", port)
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=kind)
    except socket.gaierror:
        raise invalid_value("--host", "an address of this machine", host) from None
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise invalid_value("--host", "an address of this machine", host) from None
        why = {errno.EADDRINUSE: "is in use", errno.EACCES: "needs more rights"}
        reason = why.get(error.errno or 0, "cannot be had")
        other = port + 1 if 1024 <= port < 65535 else 8321
        raise OSError(f"port {port} {reason}; choose another one: --port {other}") from None
