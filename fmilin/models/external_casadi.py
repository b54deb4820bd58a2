"""Models without a symbolic form as functions of CasADi, in independent coordinates: FMUs in optimal control."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca

from fmilin.errors import UsageError
from fmilin.model.interface import Model, OperatingPoint
from fmilin.models.casadi_callbacks import CallSignature, ValueCallback
from fmilin.models.casadi_form import CasadiModel, Function, IndependentForm, OutputSignals
from fmilin.models.manifold_values import ManifoldFunction
from fmilin.signals import Signals


@dataclass(frozen=True)
class ExternalCasadiModel(CasadiModel):
    """y' = f(y, u), out = c(y, u) of an FMU, a system with FMUs, an engine or a Python function.

    ``states`` are the independent coordinates at a point, and start there. First derivatives, forward and reverse, are
    the model's own directional derivatives on the manifold, or differences of fourth order; second derivatives are
    CasADi's differences of first ones. Events are left out: the model stays in the mode in which it is.

    Keep this object, or the model's functions, as long as a solver uses them: CasADi calls them. Threads take turns.
    ``pickle`` writes the path of an FMU, not the FMU. ``batch(k)`` has the same functions of k columns, one message to
    the FMU's process for all of them.

    Examples
    --------
    >>> import fmilin as fl
    >>> decay = fl.models.FunctionModel("decay", {"x": 1.0}, lambda t, x, u: -2 * x)
    >>> nonlinear = fl.to_casadi(decay)
    >>> nonlinear.f.name_in(), nonlinear.f.name_out()
    (['y', 'u'], ['y_dot'])
    >>> round(float(nonlinear.f.jacobian()(3.0, [], 0.0)[0]), 9)
    -2.0
    """

    function: ManifoldFunction
    F: Function  # (y, u, t) -> ``y_dot`` (P,)
    C: Function  # (y, u, t) -> ``out`` (ny,)
    psi: Function  # (y, u, t) -> ``x`` (N,): all states
    count: int = 1  # columns of the arguments

    @classmethod
    def at_point(
        cls, model: Model, point: OperatingPoint | None = None, *, independent: Sequence[str] = ()
    ) -> ExternalCasadiModel:
        """Return a model in coordinates that are chosen at a point, ``model.start`` by default."""
        return cls.of_function(ManifoldFunction(model, model.start if point is None else point, independent))

    @classmethod
    def of_function(cls, function: ManifoldFunction, count: int = 1) -> ExternalCasadiModel:
        """Return the functions of ``count`` columns."""
        model, signals = function.model, function.frame.selection.signals

        def callback(name: str, quantity: str, result: str, rows: int, *, takes_time: bool = False) -> ValueCallback:
            return ValueCallback(name, CallSignature(function, quantity, result, rows, count, takes_time))

        p, ny, n = len(signals), len(model.outputs), len(model.states)
        c = callback("c", "outputs", "out", ny)
        y, u = ca.MX.sym("y", p, count), ca.MX.sym("u", len(model.inputs), count)
        residuals = ca.MX.zeros(len(model.constraints), count)
        return cls(
            states=Signals(replace(s, start=start) for s, start in zip(signals, function.y0.tolist(), strict=True)),
            inputs=model.inputs.with_start(function.point.inputs.tolist()),
            outputs=OutputSignals(model.outputs, c),
            f=callback("f", "rates", "y_dot", p),
            c=c,
            g=ca.Function("g", [y, u], [residuals], ["y", "u"], ["residuals"]),
            model=model,
            function=function,
            F=callback("F", "rates", "y_dot", p, takes_time=True),
            C=callback("C", "outputs", "out", ny, takes_time=True),
            psi=callback("psi", "states", "x", n, takes_time=True),
            count=count,
        )

    def batch(self, count: int) -> ExternalCasadiModel:
        """Return the same functions of ``count`` columns, (P, k) and (nu, k), all evaluated together.

        They replace ``f.map(k)``, which calls the model k times.
        """
        if count < 1:
            raise UsageError(f"batch({count}) is not possible: give a positive number of columns.")
        return ExternalCasadiModel.of_function(self.function, count)

    def invariants(self, rows: Sequence[int]) -> Callable[[Any, Any, Any], Any]:
        """Reject: the constraints are solved in these functions already."""
        raise UsageError(
            f"The model '{self.model.info.name}' has no symbolic form, so its constraints are no functions of symbols. "
            "Use its functions in independent coordinates, in which the constraints hold."
        )

    def in_independent_coordinates(
        self, point: OperatingPoint | None = None, *, independent: Sequence[str] | None = None
    ) -> IndependentForm:
        """Return y' = F(y, u, t), out = C(y, u, t) at a point, by default at the point of this object."""
        model = self
        if point is not None or independent is not None:
            at = self.function.point if point is None else point
            model = ExternalCasadiModel.at_point(self.model, at, independent=independent or ())
        return IndependentForm(model.states, model.inputs, model.outputs, F=model.F, C=model.C, psi=model.psi)

    def __reduce__(self) -> tuple[Callable[..., ExternalCasadiModel], tuple[Any, ...]]:
        """Write the model, which is a path where it is an FMU, its point and coordinates."""
        function = self.function
        return _restore, (function.model, function.point, function.independent, self.count)


def _restore(model: Model, point: OperatingPoint, independent: Sequence[str], count: int) -> ExternalCasadiModel:
    return ExternalCasadiModel.of_function(ManifoldFunction(model, point, independent), count)
