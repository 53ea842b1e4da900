"""Which tool an object is of, and what it says."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from whosin.bridges import tools
from whosin.bridges.guarantee import Guarantee
from whosin.bridges.tools import Circumstances, Reader
from whosin.errors import InvalidInput, Unsupported, WhosinError
from whosin.exact import rational
from whosin.validation import whole


@dataclass(frozen=True)
class Tool:
    """Another tool: its name for people, its package, the versions that were tried, and how its
    objects are read."""

    name: str
    package: str
    tried: tuple[str, ...]
    read: Reader


TOOLS: dict[str, Tool] = {
    "opendp": Tool("OpenDP", "opendp", ("0.16",), tools.opendp),
    "dp_accounting": Tool("dp-accounting", "dp-accounting", ("0.6",), tools.dp_accounting),
    "opacus": Tool("Opacus", "opacus", ("1.6",), tools.opacus),
    "jax_privacy": Tool("JAX-Privacy", "jax-privacy", ("2.0",), tools.jax_privacy),
    "tmlt": Tool("Tumult Analytics", "tmlt.analytics", ("0.21",), tools.tumult),
    "pipeline_dp": Tool("PipelineDP", "pipeline-dp", ("0.3",), tools.pipeline_dp),
    "snsql": Tool("SmartNoise SQL", "smartnoise-sql", ("1.0",), tools.smartnoise),
    "riskcal": Tool("riskcal", "riskcal", ("1.5",), tools.riskcal),
}
"""The tools, by the module that an object's class is from."""


def read(
    value: Any,
    *,
    delta: object = None,
    rows: int = 1,
    columns: int | None = None,
    updates: int | None = None,
    parameters: Any = None,
) -> Guarantee:
    """What an object of another tool promises.

    Args:
        value: a measurement, context, budget, accountant or event, as it is; or a `Guarantee`.
        delta: the δ at which accountants, curves and ρ are read.
        rows: how many rows a person has at most, where the tool protects single rows.
        columns: for a Privacy of SmartNoise SQL: how many numbers the query computes, those that
            its means and thresholds need too.
        updates, parameters: for JAX-Privacy's accountants: `DpParams` and how many updates.

    Raises:
        InvalidInput: it is of no tool that is known, or of a version that was not tried.
    """
    asked = Circumstances(
        None if delta is None else rational(delta, "delta"),
        whole(rows, "rows", 1),
        columns,
        updates=updates,
        parameters=parameters,
    )
    if isinstance(value, Guarantee):
        _only_one(asked, "a Guarantee is for people as they are: use its for_group")
        result = value
    else:
        result = _stated(value, asked)
    return result if asked.delta is None else result.at(asked.delta)


def _stated(value: Any, asked: Circumstances) -> Guarantee:
    modules = [kind.__module__.partition(".")[0] for kind in type(value).__mro__]
    known = next((module for module in modules if module in TOOLS), None)
    if known is None:
        names = ", ".join(tool.name for tool in TOOLS.values())
        raise InvalidInput("from", f"an object of {names}", f"a {type(value).__name__}")
    tool = TOOLS[known]
    number = _version(tool)
    stated = dict(_asked_safely(tool, value, asked))
    unit = stated.pop("unit", None)
    result = Guarantee(tool.name, number, **stated)
    if unit is None:
        return result.for_group(asked.rows)
    if unit != tools.ROWS:
        _only_one(asked, f"{tool.name} protects {unit}, however many rows that has")
    return result


def _only_one(asked: Circumstances, reason: str) -> None:
    if asked.rows > 1:
        raise InvalidInput("rows", f"1 here ({reason})", asked.rows)


def _version(tool: Tool) -> str:
    """The version that is installed, if it is one that was tried."""
    try:
        number = version(tool.package)
    except PackageNotFoundError:
        raise InvalidInput("from", f"of {tool.name} as installed here", "no version") from None
    if not any(number == each or number.startswith(f"{each}.") for each in tool.tried):
        accepted = f"of {tool.name} {' or '.join(tool.tried)}, which were tried"
        raise InvalidInput("from", accepted, f"version {number}")
    return number


def _asked_safely(tool: Tool, value: Any, asked: Circumstances) -> dict[str, Any]:
    try:
        return tool.read(value, asked)
    except WhosinError:
        raise
    except Exception as error:  # the tool's own, of any kind
        kind = type(value).__name__
        raise Unsupported(
            f"a {kind} of {tool.name} could not be read ({type(error).__name__})"
        ) from error
