"""Whether an equilibrium is stable: eigenvalues of f_x on the manifold, as far as rounding leaves no doubt."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin.ground.errors import REFUSALS
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import RANK, RANK_MEASURED
from fmilin.points.equations import Equations
from fmilin.points.report import TrimReport
from fmilin.points.request import TrimRequest
from fmilin.points.solver import Solution
from fmilin.points.unknowns import Candidate, Unknowns

MOST_STATES = 400  # more take longer than the search
BLURRED = {True: 1e-13, False: 1e-6}  # relative error of exact slopes, and of those that were measured
CLEARLY = 30.0  # times what such errors move a real part, by which it has to be positive


@dataclass(frozen=True)
class Instability:
    """How many eigenvalues have positive real parts, whatever rounding does, and the largest one in 1/s."""

    count: int
    eigenvalues: NDArray[np.complex128]  # (P,), in 1/s

    @property
    def text(self) -> str:
        """What is so unstable, in words."""
        verb = "has a positive real part" if self.count == 1 else "have positive real parts"
        largest, order = float(np.max(self.eigenvalues.real, initial=-np.inf)), len(self.eigenvalues)
        return f"is unstable: {self.count} of {order} eigenvalues {verb}, the largest {largest:.4g} 1/s"

    def told_in(self, report: TrimReport) -> TrimReport:
        """Return the report with the count, and a remark where something grows."""
        remarks = [Remark("unstable", f"The {'motion' if report.moving else 'equilibrium'} {self.text}.")]
        return replace(
            report,
            unstable=self.count,
            eigenvalues=self.eigenvalues,
            remarks=(*report.remarks, *(remarks if self.count else ())),
        )


def instability(equations: Equations, solution: Solution) -> Instability | None:
    """Return how unstable an equilibrium is; None where that is not cheap to say."""
    candidate = equations.unknowns.at(solution.z)
    n = len(candidate.states)
    if not 0 < n <= MOST_STATES:
        return None
    try:
        H, F = _slopes(equations, solution, candidate)
    except REFUSALS:
        return None
    if not (np.isfinite(H).all() and np.isfinite(F).all()):
        return None
    S = equations.state_scales
    lengths = np.linalg.norm(H * S, axis=1, keepdims=True)
    V = linalg.null_space(H * S / np.where(lengths > 0, lengths, 1.0), RANK if solution.is_exact else RANK_MEASURED)
    return growing(V.T @ (F * S / S[:, None]) @ V, BLURRED[solution.is_exact])


def _slopes(equations: Equations, solution: Solution, candidate: Candidate) -> tuple[FloatArray, FloatArray]:
    """Return the slopes of invariants (m, N) and rates (N, N) along all states."""
    n, J = len(candidate.states), solution.J
    if len(equations.unknowns.states) != n or len(equations.at_rest) != n:
        equations = Equations(Unknowns(candidate, TrimRequest()), range(n), equations.pairs, moving=False)
        J = equations.jacobian(equations.unknowns.z0)[0]
    columns = equations.unknowns.state_columns
    slopes = J[:, columns] * equations.sizes[:, None] / equations.unknowns.scales[columns]
    return slopes[equations.kinds("constraint")], slopes[equations.kinds("rate")]


def growing(A: FloatArray, blurred: float) -> Instability:
    """Return how many eigenvalues have positive real parts whatever errors there are."""
    if not A.size:
        return Instability(0, np.empty(0, dtype=np.complex128))
    random = np.random.default_rng(1892)
    sizes = np.abs(A).max(axis=1, keepdims=True)
    runs = [A, *(A + blurred * sizes * random.uniform(-1.0, 1.0, A.shape) for _ in range(3))]
    spectra = [np.sort_complex(np.linalg.eigvals(run)) for run in runs]
    parts = np.array([spectrum.real for spectrum in spectra])
    spread = np.ptp(parts, axis=0)
    return Instability(int(np.count_nonzero(parts[0] > CLEARLY * spread)), spectra[0])
