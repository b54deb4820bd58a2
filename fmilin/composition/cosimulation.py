"""The linear model of a co-simulation itself: the members as they answer a step, and a master that passes values on.

Each member is x[k+1] = Phi x[k] + Gamma v[k], its solver taken as exact; what is read after the step is y = C x[k+1] +
D v[k], so that outputs with feedthrough are states, too. Without these Jacobi is x[k+1] = (Phi + Gamma K C) x[k].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from fmilin.composition.discrete_system import DiscreteSystem
from fmilin.composition.linear_member import SampledMember
from fmilin.composition.master import MASTERS, LinearizedMember, Master, one_step
from fmilin.composition.system import ConnectedModel
from fmilin.errors import NumericalError, UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.linearize import linearize_request
from fmilin.linearization.request import Request
from fmilin.manifold.operating_points import apply_point_parameters, operating_point
from fmilin.model.capabilities import HasSamples
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.options import Linearization
from fmilin.options.function_options import AccuracyOptions, takes_linearization
from fmilin.support.deprecation import warn_of_old_name
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr
from fmilin.tolerances import GROWS_IN_STEPS

__all__ = ["MASTERS", "Cosimulation", "CoupledMode", "LinearizedMember", "Master", "cosimulated"]
STEPS_TRIED = 240  # steps that are examined for the first unstable one, in equal ratios
MIN_STEP_RATIO, MAX_STEP_RATIO = 1e-3, 1e3  # of them, in parts of the fastest and of the slowest time of the plant
BISECTION_COUNT = 60
Complex = NDArray[np.complex128]


class CoupledMode(NamedTuple):
    """A mode of the coupled plant as the co-simulation represents it."""

    plant: complex  # s, in 1/s
    multiplier: complex  # z of the co-simulation
    apparent: complex  # log(z)/h, in 1/s
    resolved: bool  # whether the step is short enough to see the mode at all: |Im s| h < pi

    @property
    def seen(self) -> complex:
        """The old name of ``apparent``."""
        warn_of_old_name("seen", "apparent")
        return self.apparent

    @property
    def damping(self) -> tuple[float, float]:
        """Damping ratio of the plant, and in the co-simulation."""
        return tuple(0.0 if s == 0 else -s.real / abs(s) for s in (self.plant, self.apparent))  # type: ignore[return-value]


@dataclass(frozen=True, repr=False)
class Cosimulation(TableRepr):
    """A co-simulation of a connected system, linearized."""

    _attributes = ".linear, .modes, .largest_step, .members"

    model: ConnectedModel
    point: OperatingPoint
    master: Master
    step: float  # in seconds
    plant: LinearModel  # the coupled plant, as it is without any co-simulation
    members: tuple[LinearizedMember, ...]

    @implemented_in("fmilin.report.cosimulation_report:show_cosimulation")
    def _print_table(self, page: Sheet) -> None: ...

    @cached_property
    def linear(self) -> LinearModel:
        """The discrete linear model over one step."""
        text = (
            f"The discrete model of a co-simulation by a {self.master.kind} master over steps of {self.step:g} s; the "
            "members' own solvers are taken as exact."
        )
        discrete = DiscreteSystem(self.model, self.point, self.plant, self.members, self.step, text)
        return discrete.build(lambda members: one_step(self.model, self.master, members, self.step))

    @cached_property
    def modes(self) -> tuple[CoupledMode, ...]:
        """The modes of the plant in the co-simulation, slowest first; empty with sampled members: no plant then."""
        if any(m.linear.sample_time for m in self.members):
            return ()
        s = self.plant.eigenvalues()
        z = np.linalg.eigvals(self.linear.A).astype(np.complex128)
        rows, columns = linear_sum_assignment(np.abs(z[:, None] - np.exp(s * self.step)))
        multipliers = dict(zip(columns.tolist(), z[rows].tolist(), strict=True))
        upper = sorted((i for i in multipliers if s[i].imag >= -1e-12 * abs(s[i])), key=lambda i: abs(s[i]))
        apparent = {i: complex(np.log(m) / self.step) if m else complex(-np.inf) for i, m in multipliers.items()}
        resolved = np.abs(s.imag) * self.step < np.pi
        return tuple(CoupledMode(complex(s[i]), complex(multipliers[i]), apparent[i], bool(resolved[i])) for i in upper)

    @property
    def growth(self) -> float:
        """The largest |z|."""
        return float(np.max(np.abs(np.linalg.eigvals(self.linear.A)), initial=0.0))

    @property
    def is_stable(self) -> bool:
        """Whether no |z| exceeds 1."""
        return self.growth <= 1.0 + GROWS_IN_STEPS

    @cached_property
    def largest_step(self) -> float | None:
        """The largest stable step in seconds, by bisection; None where none is, infinite where all those tried are."""
        if any(m.linear.sample_time for m in self.members):
            raise UsageError("A member of the system is sampled: the step is its sample time.")
        s = self.plant.eigenvalues()
        if np.max(s.real, initial=0.0) > 1e-9 * np.max(np.abs(s), initial=1.0):
            raise NumericalError(
                f"The coupled plant is itself unstable (an eigenvalue {s[np.argmax(s.real)]:.6g} 1/s), so its "
                "co-simulation is unstable at every step."
            )
        eigenvalues = np.concatenate([s, *(m.linear.eigenvalues() for m in self.members)])
        sizes = np.abs(eigenvalues)[np.abs(eigenvalues) > 1e-9 * np.max(np.abs(eigenvalues), initial=1e-300)]
        if not len(sizes):
            sizes = np.ones(1)
        steps = np.geomspace(MIN_STEP_RATIO / sizes.max(), MAX_STEP_RATIO / sizes.min(), STEPS_TRIED)
        first = next((k for k, h in enumerate(steps.tolist()) if not replace(self, step=h).is_stable), None)
        if not first:
            return None if first == 0 else float("inf")
        stable, unstable = float(steps[first - 1]), float(steps[first])
        for _ in range(BISECTION_COUNT):
            middle = 0.5 * (stable + unstable)
            stable, unstable = (middle, unstable) if replace(self, step=middle).is_stable else (stable, middle)
        return stable


@one_at_a_time
@takes_linearization
def cosimulated(
    model: ConnectedModel,
    point: OperatingPoint | None = None,
    *,
    step: float,
    master: str = "jacobi",
    order: Sequence[str] = (),
    linearization: Linearization | None = None,
    **options: Unpack[AccuracyOptions],
) -> Cosimulation:
    """Return the linear model of a co-simulation of a connected system, with the delays of its coupling.

    Raises UsageError when the model is not a connected system, or the step or the order is not positive.

    Parameters
    ----------
    model : ConnectedModel
        From :func:`fmilin.connect` or an SSP file.
    point : OperatingPoint, optional
        Where the system starts by default.
    step : float
        Between communication points, in seconds.
    master : {"jacobi", "gauss-seidel"}
    order : sequence of str, optional
        In which a Gauss-Seidel master steps the members.
    linearization : Linearization, optional
        How members and the continuous system are linearized; its options may be keywords instead.

    Examples
    --------
    >>> import numpy as np, fmilin as fl
    >>> from fmilin.models.ode import OdeModel
    >>> a = OdeModel("a", {"x": "-x + u"}, inputs=["u"], outputs={"y": "x"})
    >>> b = OdeModel("b", {"x": "-x + u"}, inputs=["u"], outputs={"y": "-2*x"})
    >>> system = fl.connect({"a": a, "b": b}, [("a.y", "b.u"), ("b.y", "a.u")])
    >>> found = fl.cosimulated(system, step=0.5)
    >>> E = np.exp(-0.5)  # z = E +- i sqrt(2) (1 - E)
    >>> bool(np.allclose(abs(np.linalg.eigvals(found.linear.A)), np.hypot(E, np.sqrt(2) * (1 - E))))
    True
    """
    request = Request.of("cosimulated", linearization, options)
    if not (np.isfinite(step) and step > 0):
        raise UsageError(f"The communication step is {step:g} s: it must be positive and finite.")
    how = Master(master, tuple(order))
    how.numbers(list(model.members))
    point = operating_point(model) if point is None else point
    if isinstance(model, HasSamples):
        model.evaluate(point.time, point.states, point.inputs)  # raises: maps have no steps of a master
    model = apply_point_parameters(model, point)  # type: ignore[assignment]
    points = model.coupling.compute_member_points(point.time, point.states, point.inputs)
    members = tuple(
        LinearizedMember(part.name, _linearize_member(part.model, OperatingPoint(point.time, x, v), step, request))
        for part, (x, v) in zip(model.coupling.parts, points, strict=True)
    )
    return Cosimulation(model, point, how, float(step), linearize_request(model, point, request), members)


def _linearize_member(model: Model, point: OperatingPoint, step: float, request: Request) -> LinearModel:
    if not isinstance(model, SampledMember):
        return linearize_request(model, point, request)
    if abs(model.linear.sample_time - step) > 1e-9 * step:
        raise UsageError(
            f"'{model.info.name}' is sampled every {model.linear.sample_time:g} s: the communication step is that, not "
            f"{step:g} s."
        )
    return model.to_linear_model()
