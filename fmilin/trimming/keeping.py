"""The member of a family that has the conserved totals of the start."""

from fmilin.diagnostics import Remark
from fmilin.trimming.equations import Equations
from fmilin.trimming.newton import corrected
from fmilin.trimming.solver import Solution, assessed, solve
from fmilin.trimming.totals import find_totals

MOST_STATES = 400  # more would take as many evaluations


def keep_totals(equations: Equations, solution: Solution) -> tuple[Equations, Solution, tuple[Remark, ...]]:
    """Return the equations with the totals that the start has, their solution, and what is to be said of them.

    Where no equilibrium has these totals (two bodies that drift have their momentum for ever) the solution stays.
    """
    if len(equations.state_scales) > MOST_STATES:
        return equations, solution, ()
    totals = find_totals(equations)
    if totals is None:
        return equations, solution, ()
    fuller = equations.with_totals(totals.coefficients, totals.values, totals.names)
    exact = solution.is_exact
    reached = assessed(fuller, corrected(fuller, solution.z, exact=exact), exact=exact)
    if not reached.is_zero:
        reached = solve(fuller, equations.unknowns.z0)
    if reached.is_zero:
        return fuller, reached, (totals.describe(),)
    remark = totals.describe_change(equations.unknowns.at(solution.z).states)
    return equations, solution, () if remark is None else (remark,)
