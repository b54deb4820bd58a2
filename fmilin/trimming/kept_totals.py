"""The totals that an equilibrium keeps: those of the start, where an equilibrium has them."""

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.manifold.totals import Totals, TotalsSearch, find_totals
from fmilin.signals import FloatArray
from fmilin.trimming.damped_newton import newton_correct
from fmilin.trimming.equilibrium_equations import Equations
from fmilin.trimming.equilibrium_solver import Solution, assess_point, solve
from fmilin.trimming.unknowns import make_invariants


def describe_totals(totals: Totals) -> Remark:
    """Return what was kept."""
    plural = len(totals.names) > 1
    return Remark(
        "conserved",
        f"No motion changes {'these totals' if plural else 'this total'}, so "
        f"{'their values come' if plural else 'its value comes'} from the start: {totals}. Fix one "
        "of these states (fixed=), or start elsewhere (guess=), to choose another.",
    )


def describe_change(totals: Totals, states: FloatArray) -> Remark | None:
    """Return what the states have instead; None where they have the values of the start."""
    reached = totals.coefficients @ states
    terms = np.abs(totals.coefficients) @ np.abs(states) + np.abs(totals.values)
    # 1e-6 is far above the error of the coefficients, which come from samples of the motion.
    changed = np.flatnonzero(np.abs(reached - totals.values) > 1e-6 * terms)
    if not len(changed):
        return None
    listed = "; ".join(f"{totals.names[i]} = {reached[i]:.6g} instead of {totals.values[i]:.6g}" for i in changed)
    return Remark("conserved", f"No motion from the start leads here, because it would change a total: {listed}.")


def keep_totals(equations: Equations, solution: Solution) -> tuple[Equations, Solution, tuple[Remark, ...]]:
    """Return the equations with the totals that the start has, their solution, and what is to be said of them.

    Where no equilibrium has these totals (two bodies that drift have their momentum for ever) the solution stays.
    """
    totals = find_totals_of_start(equations)
    if totals is None:
        return equations, solution, ()
    fuller = equations.with_totals(totals.coefficients, totals.values, totals.names)
    exact = solution.is_exact
    reached = assess_point(fuller, newton_correct(fuller, solution.z, exact=exact), exact=exact)
    # The solution without totals may be too far along its family for Newton's method: the guess has the totals.
    if not reached.is_zero:
        reached = solve(fuller, equations.unknowns.z0)
    if reached.is_zero:
        return fuller, reached, (describe_totals(totals),)
    remark = describe_change(totals, equations.unknowns.at(solution.z).states)
    return equations, solution, () if remark is None else (remark,)


def find_totals_of_start(equations: Equations) -> Totals | None:
    """Return the linear totals that are conserved and involve no fixed state, or None."""
    start = equations.unknowns.at(equations.unknowns.z0)
    search = TotalsSearch(
        make_invariants(start, equations.pairs),
        start.time,
        start.states,
        start.inputs,
        free_states=equations.unknowns.states,
        free_inputs=equations.unknowns.inputs,
    )
    return find_totals(search)
