"""The procedure: what the states are, a search among functions of them, what was found verified beside the samples."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from fmilin.discovery.character import character_of
from fmilin.discovery.invariant import Invariant
from fmilin.discovery.library import first_library, further_libraries
from fmilin.discovery.result import Discovery, Finding, KeptOut
from fmilin.discovery.sampling import Sampler
from fmilin.discovery.search import Search
from fmilin.discovery.selection import chosen
from fmilin.discovery.verification import Verification
from fmilin.model.interface import Model, OperatingPoint
from fmilin.remarks import Remark

__all__ = ["discover"]


def discover(
    model: Model,
    point: OperatingPoint | None = None,
    *,
    excite: float = 1.0,
    progress: Callable[[str], None] | None = None,
) -> Discovery:
    """Find the constraints that a model keeps and does not declare.

    An index-reduced model keeps g'' = 0 for every state, on its manifold or not: g' never changes, whatever the
    states are and the inputs do. So functions phi of the states are looked for whose rate Dphi f vanishes at random
    states, by the null space of a matrix with one visit per row; then functions of positions that change nowhere
    where these are zero.

    Parameters
    ----------
    model : Model
        Its declared constraints play no part.
    point : OperatingPoint, optional
        Consistent; states around it are sampled. Where the model starts by default.
    excite : float
        How far inputs are moved, in their sizes.
    progress : callable, optional
        Told each constraint of positions as soon as it is found.

    Returns
    -------
    Discovery

    Raises
    ------
    NumericalError
        When the model gives no rates beside the point.

    Examples
    --------
    >>> from fmilin.systems import cartesian_pendulum
    >>> discover(cartesian_pendulum()).constraints
    ['x^2 + y^2 - 1']
    """
    began = perf_counter()
    point = model.start if point is None else point
    sampler = Sampler(model, point, excite)
    character = character_of(sampler)
    sampler.widen(character.angles)
    names, parameters = model.states.names, _parameters(model)

    def text(found: Invariant) -> str:
        return found.text(names, parameters)

    search = Search(sampler, character, lambda found: progress(text(found)) if progress else None)
    for group in character.groups:
        for library in (first_library(group, character), *further_libraries(group, character)):
            search.everywhere(library)
            search.on_manifold(library)
            search.stabilized(library)
    selected = chosen(search)
    verified = Verification(sampler, selected.manifold)
    findings = []
    for found, level in selected.constraints:
        finding = Finding(text(found), level, tuple(names[i] for i in sorted(found.states)), *verified.of(found))
        findings.append(finding)
    return Discovery(
        findings=tuple(findings),
        kept_out=tuple(KeptOut(text(k.invariant), k.reason) for k in search.kept_out),
        order=selected.order,
        full_order=len(model.states),
        constant=tuple(names[i] for i in sorted(character.constant)),
        visits=sampler.visits,
        seconds=perf_counter() - began,
        warnings=tuple(_remarks(sampler, len(character.constant))),
        name=model.info.name,
    )


def _parameters(model: Model) -> dict[str, float]:
    """Return values that expressions may name, as far as they are numbers."""
    known = {**model.constraints.parameters, **model.parameters}
    return {name: value for name, value in known.items() if isinstance(value, float)}


def _remarks(sampler: Sampler, constant: int) -> list[Remark]:
    if constant and constant == len(sampler.point.states):
        return [
            Remark(
                "nothing-moves",
                "Nothing moves: all rates are zero, whatever the states around the point are and the inputs do. Give "
                "another point with --set, or larger inputs with --excite.",
            )
        ]
    return []
