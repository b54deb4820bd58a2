"""Pictures of one linear model as figures of matplotlib, for notebooks and scripts: ``lin.plot.bode()``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from fmilin.ground.verbs import perform

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fmilin.model.interface import Model


Linear = TypeVar("Linear")  # A linear model, whose module imports this one


class Pictures:
    """Draws a result; every method returns a ``matplotlib.figure.Figure`` with units on its axes."""

    def __init__(self, drawn: object) -> None:
        self._drawn = drawn

    def __repr__(self) -> str:
        return "Pictures: " + ", ".join(f"{name}()" for name in dir(self) if not name.startswith("_"))


class Plots(Pictures, Generic[Linear]):
    """Draws a linear model; every method returns a ``matplotlib.figure.Figure`` with units on its axes."""

    def eigenvalues(self, naive: Linear | None = None) -> Figure:
        """Return the eigenvalues (log(z) / T when sampled) with rays of equal damping, those of ``naive`` in grey."""
        return perform("Plots.eigenvalues", self._drawn, naive)

    def modes(self, numbers: Sequence[int] | None = None) -> Figure:
        """Return shapes of modes as bars with phases, of the six slowest by default; counted from 1 as ``modes()``."""
        return perform("Plots.modes", self._drawn, numbers)

    def participation(self) -> Figure:
        """Return which coordinates take part in which mode, which inputs move it, which outputs show it."""
        return perform("Plots.participation", self._drawn)

    def bode(self, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Figure:
        """Return Bode diagrams by python-control, of the first four inputs and outputs unless channels are named."""
        return perform("Plots.bode", self._drawn, inputs, outputs)

    def nyquist(self, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Figure:
        """Return Nyquist diagrams, a panel for each channel, of the first four inputs and outputs by default."""
        return perform("Plots.nyquist", self._drawn, inputs, outputs)

    def step(
        self,
        *,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        against: Model | None = None,
        amplitude: float | None = None,
        stop_time: float | None = None,
    ) -> Figure:
        """Return the deviations of outputs from the point after a step of each input, of one unit each.

        The nonlinear model ``against`` makes the same steps on its manifold; their ``amplitude`` is then by
        default what moves a state by a tenth of its size.
        """
        options = {"against": against, "amplitude": amplitude, "stop_time": stop_time}
        return perform("Plots.step", self._drawn, inputs, outputs, **options)

    def errors(self) -> Figure:
        """Return the estimated error of every entry of A, B, C and D over the largest entry of its matrix."""
        return perform("Plots.errors", self._drawn)

    def sparsity(self) -> Figure:
        """Return which entries of A, B, C and D are zero, and how large the others are."""
        return perform("Plots.sparsity", self._drawn)

    def sensitivities(self, numbers: Sequence[int] | None = None) -> Figure:
        """Return what each parameter does to the modes (from 1, slowest first; by default those that move most)."""
        return perform("Plots.sensitivities", self._drawn, numbers)

    def reduction(self, full: Linear, low: float = 0.0, high: float = float("inf")) -> Figure:
        """Return this reduced model beside the ``full`` one: gains, difference, and its bound for these rad/s."""
        return perform("Plots.reduction", self._drawn, full, low, high)
