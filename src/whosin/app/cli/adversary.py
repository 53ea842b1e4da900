"""Targets and adversaries as several commands take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whosin.calibration import Target
    from whosin.families import Family


def target(
    posterior: str | None = None,
    gamma: str | None = None,
    gain: str | None = None,
    advantage: str | None = None,
    rho: str | None = None,
    m: int | None = None,
    epsilon: str | None = None,
    hipaa: bool = False,
    *,
    among: Sequence[str] | None = None,
) -> Target:
    """The one target among the options; `among` names those that a command has, all by default."""
    from whosin import calibration as c
    from whosin.errors import InvalidInput
    from whosin.exact import rational

    given = {
        "posterior": posterior,
        "gamma": gamma,
        "gain": gain,
        "advantage": advantage,
        "rho": rho,
        "epsilon": epsilon,
    }
    chosen = [name for name, value in given.items() if value is not None]
    if len(chosen) + hipaa != 1:
        names = ", ".join(f"--{name}" for name in among or (*given, "hipaa"))
        found = [f"--{name}" for name in chosen] + ["--hipaa"] * hipaa
        accepted = f"given by exactly one of {names}"
        raise InvalidInput("target", accepted, " and ".join(found) or "none of them")
    if hipaa:
        return c.HIPAA
    name = chosen[0]
    number = rational(given[name], f"--{name}")
    if name == "rho":
        if m is None:
            raise InvalidInput("-m", "given with --rho: how many candidates there are", "nothing")
        return c.Rho(number, m)
    if m is not None:
        raise InvalidInput("-m", f"left out with --{name}", m)
    return c.TARGETS[name](number)  # type: ignore[call-arg]


def family(
    target: Target,
    prior: str | None = None,
    size_known: bool = False,
    linked: int | None = None,
    family: str | None = None,
) -> Family:
    """The adversaries, by their options or by name."""
    from whosin import families
    from whosin.calibration import Rho
    from whosin.errors import InvalidInput
    from whosin.exact import number_range

    if family is not None:
        if prior is not None or size_known or linked is not None:
            raise InvalidInput("--family", "given alone, without --prior and the like", family)
        return families.read_family(family)
    if isinstance(target, Rho) and prior is None and linked is None:
        return families.OneOf(target.m)
    if linked is not None:
        if prior is not None or size_known:
            raise InvalidInput("--linked", "given without --prior and --size-known", linked)
        return families.Cliques(linked)
    bounds = number_range(prior, "--prior") if prior is not None else (0, 1)
    return families.FixedSize(*bounds) if size_known else families.Independent(*bounds)
