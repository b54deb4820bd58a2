"""Why it cannot be: which target is in the way, how near to it one can come, how many freedoms the targets have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from fmilin.ground.errors import FmilinError, NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import RANK_MEASURED
from fmilin.model.interface import Model
from fmilin.numerics.balanced import balanced
from fmilin.points.equations import Equations
from fmilin.points.newton import corrected
from fmilin.points.optimum import OutOfBoundsError
from fmilin.points.report import TrimmedPoint
from fmilin.points.request import TrimRequest
from fmilin.points.solver import Solution
from fmilin.points.unknowns import Reading, reading, reading_values

MOST = 8  # targets that are left out in turn
STANDS = 1e-9  # slope of a target, beside its terms, that is rounding
FARTHER = 0.05  # sizes of the unknowns
HALVINGS = 16  # of the way to a target

Search = Callable[[TrimRequest], TrimmedPoint]


def with_obstacles(error: NumericalError, model: Model, request: TrimRequest, search: Search) -> NumericalError:
    """Return the error with what was learnt by leaving out one target, held state or bound after the other."""
    names = [*request.targets, *(name for name in request.fixed if model.states.has(name))]
    bound = error.bound if isinstance(error, OutOfBoundsError) else None
    names += [] if bound is None else [bound.name]
    if not names or len(names) > MOST:
        return error
    sentences = [text for name in names for text in _without(name, model, request, search, bound)]
    if not sentences and len(names) > 1:
        sentences = [f"No single one of {', '.join(names)} is in the way: none of them left out lets the others hold."]
    error.args = (" ".join([str(error), *sentences]),)
    return error


def _without(name: str, model: Model, request: TrimRequest, search: Search, bound: Reading | None) -> Iterator[str]:
    """Yield how near one comes to what ``name`` should be when it need not be."""
    held = request.targets.get(name, request.fixed.get(name))
    wanted = held if bound is None or bound.name != name else bound.value
    assert wanted is not None  # noqa: S101 - it is a target, held, or the bound
    fewer = replace(
        request,
        fixed=_but(request.fixed, name),
        targets=_but(request.targets, name),
        bounds=_but(request.bounds, name),
        near={name: wanted},
        minimize=None,
    )
    try:
        closest = search(fewer).report.targets[name]
    except FmilinError:
        limit = _approached(name, wanted, fewer, search, model)
        if limit is None:
            return
        closest = limit
    unit = f" {reading(model, name).unit}".rstrip()
    what = "bound" if held is None else "target"
    yield (
        f"The {what} '{name}' = {wanted:g}{unit} is in the way: without it the rest holds, and the closest is "
        f"{closest:.6g}{unit}."
    )


def _approached(name: str, wanted: float, fewer: TrimRequest, search: Search, model: Model) -> float | None:
    """Return how near one comes where points end on the way: it is halved, to as many digits as that tells."""
    start, closest, done = model.start, None, 0.0
    answer = model.evaluate(start.time, start.states, start.inputs)
    here = float(reading_values([reading(model, name)], start.states, start.inputs, start.parameters, answer)[0])
    for part in 0.5 ** np.arange(1, HALVINGS + 1):
        with suppress(FmilinError):
            near = {name: here + (done + part) * (wanted - here)}
            closest = search(replace(fewer, near=near)).report.targets[name]
            done += part
    step = abs(wanted - here) * 0.5**HALVINGS
    return None if closest is None else round(closest, -math.ceil(math.log10(step)) - 1)


def _but(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {n: v for n, v in values.items() if n != name}


def freedoms_of_targets(equations: Equations, without: Solution) -> str:
    """Return what slopes say at a solution ``without`` targets: that nothing moves some, or few freedoms many."""
    count, others = len(equations.targets), equations.with_targets(())
    Z = _open(others, without.z)
    if not Z.shape[1]:
        return " Nothing is left free to meet targets with."
    # By chance the slopes of targets may depend on each other at one point: look beside it, too.
    elsewhere = corrected(others, without.z + FARTHER * Z @ np.cos(np.arange(Z.shape[1]) + 1.0)).z
    slopes = [_slopes_on_freedoms(equations, z) for z in (without.z, elsewhere)]
    still = [t.name for i, t in enumerate(equations.targets) if not any(np.any(S[i] != 0.0) for S in slopes)]
    if still:
        return f" Nothing that is free moves {', '.join(map(repr, still))}, to first order."
    freedoms = max(balanced(S).rank(RANK_MEASURED) for S in slopes)
    if freedoms < count:
        return f" {count} targets have {freedoms} freedom{'s' * (freedoms != 1)} to be met with."
    return ""


def _open(others: Equations, z: FloatArray) -> FloatArray:
    """Return a basis (n, f) of what the equations leave open."""
    form = balanced(np.nan_to_num(others.jacobian(z, quick=True)[0]))
    return form.columns[:, None] * form.null_space(RANK_MEASURED)


def _slopes_on_freedoms(equations: Equations, z: FloatArray) -> FloatArray:
    """Return the slopes of the targets (k, f) along what the other equations leave open; 0 for rounding."""
    J = np.nan_to_num(equations.jacobian(z, quick=True)[0])[equations.kinds("target")]
    Z = _open(equations.with_targets(()), z)
    return np.where(np.abs(J @ Z) > STANDS * (np.abs(J) @ np.abs(Z)), J @ Z, 0.0)
