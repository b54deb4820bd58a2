"""Trimming as users call it: one equilibrium or steady motion, several of them, or the point of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fmilin.errors import FmilinError, NumericalError, UsageError
from fmilin.linearization.linearize import along_motion
from fmilin.manifold.operating_points import apply_point_parameters
from fmilin.model.capabilities import HasDelays, HasSamples, HasSparseForm, remove_delays
from fmilin.model.interface import Model
from fmilin.model.locks import one_at_a_time
from fmilin.trimming.search_algorithm import search, search_each
from fmilin.trimming.stable_equilibrium import BLURRED, judge_growth
from fmilin.trimming.trim_report import TrimmedPoint
from fmilin.trimming.trim_request import TrimRequest


@one_at_a_time
def trim(
    model: Model,
    *,
    guess: Mapping[str, float] | None = None,
    fixed: Mapping[str, float] | None = None,
    steady: Sequence[str] | None = None,
    free: Sequence[str] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    time: float | None = None,
    minimize: str | None = None,
    near: Mapping[str, float] | None = None,
    stable: bool = False,
) -> TrimmedPoint:
    """Return an equilibrium, or a steady motion, on the manifold: the one nearest to the guess, with a report on it.

    In an equilibrium no state moves. In a steady motion the states listed in ``steady`` may move (at constant
    rate, or, like the position on a circular track, at a rate that changes with them), every other independent
    state rests, and stays at rest while they move. Dependent states go where the constraints take them. A state that
    is not listed counts as dependent, if the constraints allow, when the model's author does not recommend it as
    a coordinate and it moves at the guess.

    Parameters
    ----------
    model : Model
    guess : mapping of str to float, optional
        Where to start: free states, inputs and parameters by name. The rest starts where the model does; a
        point off the manifold is projected first.
    fixed : mapping of str to float, optional
        States, inputs and parameters that keep these values, and what should come out: outputs, any other continuous
        variable, ``der(STATE)``. A state with such a rate may move; where no motion with it is steady ("pull up"), it
        is taken at an instant, with a diagnostic.
    steady : sequence of str, optional
        States that may move.
    free : sequence of str, optional
        Inputs and parameters to solve for. States are free unless they are fixed; inputs and parameters are
        held unless they are free.
    bounds : mapping of str to (float, float), optional
        Of free quantities and of what comes out; infinite where there is no bound.
    time : float, optional
        In seconds; the model's own start time by default.
    minimize : str, optional
        An expression over whatever may be fixed: its least value (near the guess) on what freedom is left.
    near : mapping of str to float, optional
        What should come as near to these values as it can: least squares in nominal sizes (else the value, at least 1).
    stable : bool
        Whether to search for a stable equilibrium: by descent, or by the motion with damping added.

    Raises
    ------
    UsageError, UnknownNameError
        When the request contradicts itself or names what the model does not have.
    ConstraintError
        When no state is named and the model's start values violate the constraints.
    NumericalError
        When no solution was found near the guess; with the residuals that remain, by name, in ``.residuals``.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.systems import cartesian_pendulum
    >>> point = fl.trim(cartesian_pendulum(), guess={"y": 0.9})
    >>> [round(float(x), 9) + 0.0 for x in point.states]
    [0.0, 1.0, 0.0, 0.0]
    """
    request = TrimRequest(
        fixed or {}, steady or (), free or (), bounds or {}, time, minimize=minimize, near=near or {}, stable=stable
    )
    if isinstance(model, HasDelays | HasSamples):
        if stable or steady:
            raise UsageError(
                "Only equilibria of a system with delays or samples are computed: leave stable= and steady= out. Then "
                "linearize at the point: lin.stability() says whether it is stable."
            )
        return search(remove_delays(model), request, guess or {})
    if stable or steady:
        model.require_rates("follow its motion as stable= and steady= do")
    return _assess_motion(model, search(model, request, guess or {}))


@one_at_a_time
def trim_each(
    model: Model,
    guesses: Sequence[Mapping[str, float]],
    *,
    fixed: Mapping[str, float] | None = None,
    steady: Sequence[str] | None = None,
    free: Sequence[str] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    time: float | None = None,
) -> tuple[TrimmedPoint, ...]:
    """Return several equilibria or steady motions: one search per guess, each solution once, in order of the guesses.

    All searches run together: a model that evaluates many points at once is called once for all of them.

    Raises NumericalError when no guess leads to a solution: what :func:`trim` says about the first.

    Parameters
    ----------
    model : Model
    guesses : sequence of mapping
        Each as in :func:`trim`; one that leads nowhere is passed over.
    fixed, steady, free, bounds, time
        As in :func:`trim`.
    """
    request = TrimRequest(fixed or {}, steady or (), free or (), bounds or {}, time)
    return find_each(model, request, guesses)


def find_each(
    model: Model, request: TrimRequest, guesses: Sequence[Mapping[str, float]], *, anywhere: bool = False
) -> tuple[TrimmedPoint, ...]:
    """Return each solution that a guess leads to, once; ``anywhere`` as in :func:`search`."""
    if not guesses:
        raise UsageError("The search needs at least one guess, which may be empty.")
    # One guess is searched with its explanation at once, which would otherwise take a second search.
    if len(guesses) == 1:
        return (_assess_motion(model, search(model, request, guesses[0], anywhere=anywhere)),)
    solutions: list[TrimmedPoint] = []
    failed: list[int] = []
    for number, outcome in enumerate(search_each(model, request, guesses, anywhere=anywhere, explain=False)):
        if isinstance(outcome, NumericalError):
            failed.append(number)
        # Errors of the request or of the model itself are the same for every guess.
        elif isinstance(outcome, FmilinError):
            raise outcome
        elif not any(outcome.same_place(other) for other in solutions):
            solutions.append(outcome)
    if not solutions:
        # The explanation takes many searches, and is given for one of the guesses.
        solutions = [search(model, request, guesses[failed[0]], anywhere=anywhere)]
    return tuple(_assess_motion(model, point) for point in solutions)


def _assess_motion(model: Model, point: TrimmedPoint) -> TrimmedPoint:
    """Return the point with what is to be said of A along its motion, and of stability where A stays."""
    # At rest stability has been judged already; models with sparse equations are too large for dense ones.
    if not point.report.moving or isinstance(model, HasSparseForm):
        return point
    remarks, linear = along_motion(apply_point_parameters(model, point), point)
    report = replace(point.report, search_remarks=(*point.report.search_remarks, *remarks))
    if linear is not None:
        report = replace(report, instability=judge_growth(linear.A, BLURRED[linear.method.derivatives == "exact"]))
    return replace(point, report=report)
