"""What may be wished of a point that is looked for: ``--fix``, ``--free``, ``--steady``, ``--bound``, ``--guess``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from fmilin.cli.options import assignments, grouped, names, names_option, read_by
from fmilin.ground.errors import UsageError

if TYPE_CHECKING:
    from fmilin.model.interface import Model
    from fmilin.points.request import TrimRequest

__all__ = ["WISHES", "Wishes"]


@dataclass(frozen=True)
class Wishes:
    """What stands on the command line about the point that is looked for."""

    fix: Mapping[str, float]  # states, inputs and parameters
    free: Sequence[str] | None
    steady: Sequence[str] | None
    bound: Mapping[str, tuple[float, float]]
    guess: Sequence[Mapping[str, float]]  # one search each; empty: one search from where the model starts

    def require_trim(self, *, trim: bool) -> None:
        """Make sure that there is one trimmed point for what is wished."""
        if not trim and (self.free or self.steady or self.bound or self.guess):
            raise UsageError("--free, --steady, --bound and --guess are for trimmed points: add --trim.")
        if len(self.guess) > 1:
            raise UsageError("Here one guess is enough: give --guess once. 'fmilin trim' looks for several points.")

    def beside(self, settings: Mapping[str, float]) -> dict[str, float]:
        """Return what ``--set`` and ``--fix`` say together."""
        if both := sorted(settings.keys() & self.fix.keys()):
            raise UsageError(f"'{both[0]}' has a value both in --set and in --fix. Leave one of them out.")
        return dict(settings) | dict(self.fix)

    def of(self, model: Model, values: Mapping[str, float], time: float | None) -> tuple[TrimRequest, dict[str, float]]:
        """Return what is asked of the model, and the part of every guess that stands in ``--set``.

        Inputs of ``--set`` are held unless free. Parameters have been taken care of when the model was loaded.
        """
        from fmilin.points.request import TrimRequest

        given = {name: value for name, value in values.items() if name not in self.fix}
        start = {name: value for name, value in given.items() if model.states.has(name) or name in (self.free or ())}
        fixed = {name: value for name, value in values.items() if name not in start}
        return TrimRequest(fixed, self.steady or (), self.free or (), self.bound, time), start


def _bounds(texts: Sequence[str], option: str) -> dict[str, tuple[float, float]]:
    """Return ``NAME=LO:HI`` as a pair by name; a missing side is infinite."""
    found: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, equals, pair = text.rpartition("=")
        low, colon, high = pair.partition(":")
        if not (equals and colon and name.strip()):
            raise UsageError(f"{option} '{text}' is no NAME=LO:HI. Write for example {option} torque=-5:5.")
        name = name.strip().strip("`")
        if name in found:
            raise UsageError(f"{option}: '{name}' has bounds twice. Keep one pair.")
        sides = [assignments([f"side={s}"], option)["side"] if s.strip() else None for s in (low, high)]
        found[name] = (
            -float("inf") if sides[0] is None else sides[0],
            float("inf") if sides[1] is None else sides[1],
        )
    return found


def _guesses(texts: Sequence[str], option: str) -> list[dict[str, float]]:
    return [assignments(names(text, option) or [], option) for text in texts]


WISHES = grouped(
    "wishes",
    Wishes,
    click.option(
        "--fix",
        metavar="NAME=VALUE",
        multiple=True,
        help="Repeatable: a state, input or parameter that keeps this value.",
        callback=read_by(assignments),
    ),
    names_option("--free", "Inputs and parameters to solve for; states are free."),
    names_option("--steady", "States that may move: rolling, turning, cruising."),
    click.option(
        "--bound",
        metavar="NAME=LO:HI",
        multiple=True,
        help="Repeatable: bounds of a free quantity; one may be left out.",
        callback=read_by(_bounds),
    ),
    click.option(
        "--guess",
        metavar="A=VALUE,B=...",
        multiple=True,
        help="Where to start; repeat it to look for several points.",
        callback=read_by(_guesses),
    ),
)
