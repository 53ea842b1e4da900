"""From errors to what a page may show.

Contract: `{"error": {"field": …, "message": …}}` and a fitting status. Messages are those of
`whosin.errors`, which quote no row. For anything else only its kind is logged, never its words.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from whosin import errors
from whosin.app.web import shapes
from whosin.isolation.messages import kind_and_line

STATUS: tuple[tuple[type[errors.WhosinError], int], ...] = (
    (errors.BudgetRefused, 409),
    (errors.BrokenHistory, 409),
    (errors.MissingExtra, 501),
    (errors.ScanFailed, 503),
    (errors.StoreFailed, 503),
    (errors.TooLarge, 413),
    (errors.TookTooLong, 413),
    (errors.OutOfMemory, 413),
    (errors.Crashed, 503),
)
INTERNAL = "internal error, please report it; nothing about the data is shown here"


class Refused(Exception):
    """A request that is refused before the library sees it."""

    def __init__(self, status: int, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status, self.field = status, field


def body(field: str | None, message: str) -> dict[str, Any]:
    """The one shape of all refusals."""
    return {"error": {"field": field, "message": message}}


def install(app: FastAPI) -> None:
    """Answer every error in that shape."""

    @app.exception_handler(errors.WhosinError)
    def _library(request: Request, error: errors.WhosinError) -> JSONResponse:
        unexpected = getattr(error, "unexpected", None)
        if unexpected is not None:
            log(f"internal error: {unexpected}")
            return JSONResponse(body(None, INTERNAL), 500)
        status = next((code for kind, code in STATUS if isinstance(error, kind)), 422)
        field = error.path.replace("[", ".").replace("]", "") or getattr(error, "field", None)
        return JSONResponse(body(field, error.message), status)  # shown beside the field

    @app.exception_handler(OSError)
    def _system(request: Request, error: OSError) -> JSONResponse:
        log_unexpected(error)
        # The system's own words for the number: an error's may name a file, or quote a row.
        reason = f": {os.strerror(error.errno)}" if error.errno else ""
        return JSONResponse(body(None, f"the server's system failed{reason}; try again"), 503)

    @app.exception_handler(Refused)
    def _refused(request: Request, error: Refused) -> JSONResponse:
        return JSONResponse(body(error.field, str(error)), error.status)

    @app.exception_handler(RequestValidationError)
    def _shape(request: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse(body(*shapes.sentence(error.errors())), 422)

    @app.exception_handler(HTTPException)
    def _http(request: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse(body(None, shapes.refused(error)), error.status_code, error.headers)


def log_unexpected(error: Exception) -> None:
    """The kind of an error and where it happened, on standard error. Its words may quote rows."""
    log(f"internal error: {' at '.join(kind_and_line(error))}")


def log(what: str) -> None:
    """A line on standard error."""
    print(f"whosin: {what}", file=sys.stderr)
