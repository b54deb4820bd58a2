"""The result: a small linear model in independent coordinates, with names, units, point and accuracy.

The file is longer than others because it declares what users can do with a linear model, with and without delays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import UnknownNameError, UsageError, join_first
from fmilin.formats import Holds
from fmilin.linear_model.deferred_fields import DeferredFields
from fmilin.model.interface import Model, ModelInfo
from fmilin.signals import FloatArray, Signals
from fmilin.support.dataclass import dataclass
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked
from fmilin.support.table_repr import Sheet, TableRepr

if TYPE_CHECKING:
    from pathlib import Path

    import control
    from matplotlib.figure import Figure

    from fmilin.linear_model.delay_response_record import TimeResponse
    from fmilin.linear_model.delay_sweep_record import DelaySweep
    from fmilin.linear_model.descriptor import Derivative, Descriptor
    from fmilin.linear_model.modes import Modes
    from fmilin.linear_model.sparse_matrices import SparseMatrices
    from fmilin.linear_model.stability import Stability
    from fmilin.linear_model.verification import Verification
    from fmilin.linear_model.zeros import ZeroStructure
    from fmilin.numerics.delay_form import DelayForm
    from fmilin.support.animation import Animation


WITHOUT_DELAYS = ("A", "B", "C", "D", "errors")  # fields that only a model without delays has
DEFAULT_EIGENVALUE_COUNT = 20
DEFAULT_PADE_ORDER = 6
MAX_DELAYS_IN_WORDS = 6

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, repr=False)
class LinearizationPoint(TableRepr):
    """The operating point that the model really held, read back from it, by name and in the model's units."""

    _attributes = ".states, .inputs, .outputs, .parameters"

    time: float
    states: Mapping[str, float]  # all N states
    inputs: Mapping[str, float]
    outputs: Mapping[str, float]
    parameters: Mapping[str, float] = field(default_factory=dict)  # only those changed from the model's own values

    @implemented_in("fmilin.report.result_tables:show_named_point")
    def _print_table(self, page: Sheet) -> None: ...

    def __getitem__(self, name: str) -> float:
        """Return a state, an input or an output by its name, as at an operating point."""
        for values in (self.states, self.inputs, self.outputs):
            if name in values:
                return values[name]
        raise UnknownNameError.among(
            name, [*self.states, *self.inputs, *self.outputs], "a state, an input or an output of this point"
        )


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How far the numbers can be trusted: the ``accuracy`` of a :class:`LinearModel`.

    A number for a matrix is the largest estimated error of an entry over the largest entry; NaN where it is not known.
    The error of each entry stands in :class:`EntryErrors`.
    """

    A: float
    B: float
    C: float
    D: float
    T: float
    f0: float
    constraint_residual: float  #: largest residual of the invariants at the point, scaled by nominal values
    conditioning: float
    """Condition number of (R; H), scaled: large when the coordinates are nearly dependent. Of points computed together
    a bound of it."""


@dataclass(frozen=True, slots=True)
class LinearizationMethod:
    """How the numbers were made."""

    derivatives: str  # ``"exact"``, ``"differences"`` or ``"mixed"``
    coordinates: str  # ``"named"``, ``"partition"`` or ``"tangent"``
    evaluations: int  # evaluations of the model
    products: int = 0  # exact directional derivatives taken


@dataclass(frozen=True)
class EntryErrors:
    """Estimated absolute error of every entry, in its unit: the ``errors`` of a :class:`LinearModel`.

    Each array has the shape of its matrix.
    """

    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray
    T: FloatArray


@dataclass(frozen=True, repr=False)
class LinearModel(TableRepr, DeferredFields):
    """``x_dot = f0 + A (y - y0) + B (u - u0)``, ``out = g0 + C (y - y0) + D (u - u0)``: P independent coordinates."""

    file_kind: ClassVar[Holds] = "linear model"  #: the formats of files that hold it: ``fmilin.formats``
    _attributes = ".modes(), .point, .full_states, .warnings"

    A: FloatArray  #: shape (P, P)
    B: FloatArray  #: shape (P, nu)
    C: FloatArray  #: shape (ny, P)
    D: FloatArray  #: shape (ny, nu)
    T: FloatArray  #: shape (N, P); ``x - x0 = T (y - y0)`` to first order, so that dependent states are outputs
    f0: FloatArray  #: shape (P,); the rate of y at the point; zero at an equilibrium
    states: Signals  #: the P independent coordinates
    full_states: Signals  #: all N states, in the model's order
    inputs: Signals  #: nu of them
    outputs: Signals  #: ny of them
    y0: FloatArray  #: shape (P,); values of the coordinates at the point; ``u0``, ``g0`` are those of inputs, outputs
    point: LinearizationPoint  #: where it holds
    accuracy: Accuracy  #: how far the numbers can be trusted
    method: LinearizationMethod  #: how they were made
    model: ModelInfo  #: the linearized model
    warnings: tuple[Remark, ...] = ()  #: what a user should know
    #: 0 for a continuous model; in seconds otherwise, with ``y[k+1] = y0 + f0 + A (y[k] - y0) + B (u[k] - u0)``
    sample_time: float = 0.0
    #: shape (N, nu); ``x - x0 = T (y - y0) + T_u (u - u0)``, not zero only where inputs prescribe a motion
    T_u: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    #: an estimated absolute error for every entry
    errors: EntryErrors = field(default_factory=lambda: EntryErrors(*[np.zeros((0, 0))] * 5))
    #: The same system as ``E z' = f0 + A z + B u`` with all variables and multipliers in z. Of DAEs as they are written
    #: it is computed when one of its numbers is first asked for; of Lagrange's equations with constraints on positions
    #: it is there where it was asked for (``linearize(..., descriptor=True)``, :func:`fmilin.descriptor`), unless
    #: inputs prescribe a motion or the model is sampled. Files hold it where it was asked for or has been computed.
    descriptor: Descriptor | None = field(default=None, repr=False, compare=False)
    #: By parameter, where they were asked for: ``linearize(..., parameters=["m"])``, ``lin.derivatives["m"].A``. In the
    #: coordinates of the linear model, so that what changes these (reductions, samples) leaves them out.
    derivatives: Mapping[str, Derivative] = field(default_factory=dict, repr=False, compare=False)
    #: Of a co-simulation FMU with a fixed step inside: the discrete model over that step, in the same coordinates.
    discrete: LinearModel | None = field(default=None, repr=False, compare=False)

    @implemented_in("fmilin.report.notebook:show_linear_model")
    def _print_table(self, page: Sheet) -> None: ...

    def __post_init__(self) -> None:
        if self.T_u.size == 0:
            object.__setattr__(self, "T_u", np.zeros((len(self.full_states), len(self.inputs))))
        if self.errors.T.shape != self.T.shape:
            zeros = (np.zeros_like(m) for m in (self.A, self.B, self.C, self.D, self.T))
            object.__setattr__(self, "errors", EntryErrors(*zeros))

    @property
    @implemented_in("fmilin.linear_model.sparse:extract_sparse_matrices")
    def sparse(self) -> SparseMatrices:
        """The matrices as SciPy's sparse arrays: ``sparse.A`` to ``sparse.T``, and ``sparse.errors``.

        Large models (from 500 states, with few entries in A) are linearized in this form. Their ``A`` is a NumPy array
        as that of any other, which is made when it is first read.
        """
        ...

    @property
    def u0(self) -> FloatArray:
        """The values of the inputs at the point, shape (nu,); by name they are ``point.inputs``."""
        return np.array([self.point.inputs[name] for name in self.inputs.names])

    @property
    def g0(self) -> FloatArray:
        """The values of the outputs at the point, shape (ny,); by name they are ``point.outputs``."""
        return np.array([self.point.outputs[name] for name in self.outputs.names])

    @property
    def plot(self) -> Plots:
        """Pictures: ``plot.eigenvalues()``, ``zeros``, ``modes``, ``participation``, ``bode`` and more."""
        return Plots(self)

    @property
    def delays(self) -> Mapping[str, float]:
        """The internal delays in seconds, by the names of the delayed signals; empty unless the model has some."""
        return {}

    @kinds_checked
    @implemented_in("fmilin.linear_model.delay_channels:add_delays")
    def with_delays(
        self, *, inputs: Mapping[str, float] | None = None, outputs: Mapping[str, float] | None = None
    ) -> DelayedLinearModel:
        """Return the model with dead time before inputs and behind outputs, by name, in seconds.

        Its frequency response, margins, eigenvalues and step responses are exact in the delays. UnknownNameError of
        other names, UsageError of negative delays, and of sampled models, in which delays are samples.
        """
        ...

    @kinds_checked
    @implemented_in("fmilin.linear_model.frequency_responses:compute_frequency_response")
    def frequency_response(self, frequencies: FloatArray) -> NDArray[np.complex128]:
        """Return the transfer matrix at frequencies in rad/s, shape (ny, nu, k), exact in the delays of the model."""
        ...

    @property
    @implemented_in("fmilin.linear_model.no_response:assess_equilibrium")
    def is_equilibrium(self) -> bool | None:
        """Whether the point is an equilibrium: True and False where that was tested, None where nothing tells."""
        ...

    def eigenvalues(self) -> NDArray[np.complex128]:
        """Return the eigenvalues of A in 1/s, shape (P,), sorted by real part, then imaginary part."""
        from fmilin.numerics.eigenvalue_errors import compute_eigenvalues

        return compute_eigenvalues(self.A)

    def eigenvalue_errors(self) -> FloatArray:
        """Return how far each of :meth:`eigenvalues` may be off, shape (P,), in 1/s.

        The errors of the entries of A (``errors.A``) and rounding, times the condition number of a simple eigenvalue;
        k eigenvalues that meet in one direction (a Jordan block) move by the k-th root of such errors. Zero where the
        entries are exact and the structure of A alone decides, as for a chain of integrators.
        """
        from fmilin.numerics.eigenvalue_errors import compute_eigenvalue_errors

        return compute_eigenvalue_errors(self.A, self.errors.A)

    def stability(self) -> Stability:
        """Return whether deviations grow: ``.stable`` is True, False, or None where the errors of A leave it open.

        True includes deviations that neither grow nor die out; ``.text`` says which. Multiple eigenvalues at the
        stability limit count: where they certainly have fewer directions than members, deviations grow like t.
        """
        from fmilin.linear_model.stability import judge_stability

        return judge_stability(self.A, self.errors.A, sampled=self.sample_time > 0)

    def eigenvalue_derivatives(self) -> NDArray[np.complex128]:
        """Return how the eigenvalues move with the parameters of ``derivatives``, shape (P, parameters).

        Rows are those of :meth:`eigenvalues`, columns are in the order of ``derivatives``, in 1/s per unit of the
        parameter. Eigenvalues that coincide move as a group; where such a group is defective (the position and the
        speed of what moves freely), the mean of the group has a derivative, and is given for each.
        """
        from fmilin.linear_model.descriptor import eigenvalue_derivatives

        return eigenvalue_derivatives(self.A, [d.A for d in self.derivatives.values()])[0]

    @kinds_checked
    @implemented_in("fmilin.linear_model.nearest_modes:select_modes")
    def modes(self, count: int | None = None, *, near: complex = 0.0) -> Modes:
        """Return frequency, damping and the shape in all N states of each eigenvalue or complex pair, slowest first.

        With a ``count`` only those of so many eigenvalues that are nearest to the number ``near`` in 1/s (of a sampled
        model in z), by sparse factorizations: ``lin.modes(10)`` are the slowest ones, ``lin.modes(10, near=100j)``
        those about 100 rad/s. Of a model with thousands of states all modes take minutes, and a few milliseconds.
        NumericalError where the iteration does not converge.
        """
        ...

    @kinds_checked
    @implemented_in("fmilin.linear_model.system_zeros:find_zero_structure")
    def zero_structure(
        self, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
    ) -> ZeroStructure:
        """Return the zeros from inputs to outputs, all of them unless named: finite, infinite, relative degrees.

        Its ``warnings`` say where two ways of computing a zero differ. UsageError without inputs or outputs.
        """
        ...

    def zeros(
        self, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
    ) -> NDArray[np.complex128]:
        """Return the transmission zeros in 1/s (of a sampled model in z), shape (count,), sorted by real part.

        From all ``inputs`` to all ``outputs``, or from those that are named.
        At a zero the transfer matrix has a smaller rank than elsewhere: there is an input exp(z t) that no output
        shows. Modes that no input reaches or no output shows are left out; :meth:`invariant_zeros` has them. Away from
        an equilibrium they are those of deviations from the motion ``f0``. UsageError without inputs or outputs.
        """
        return self.zero_structure(inputs=inputs, outputs=outputs).zeros

    def zero_errors(self, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> FloatArray:
        """Return how far each of :meth:`zeros` may be off, shape (count,), by errors of A, B, C, D and rounding.

        ``inputs`` and ``outputs`` choose channels as there.
        Infinite where the rank of the system pencil does not drop as the zero says. Systems with more outputs than
        inputs, or fewer, have zeros by their structure only: the error holds for perturbations that leave the zero.
        """
        return self.zero_structure(inputs=inputs, outputs=outputs).errors

    def invariant_zeros(
        self, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
    ) -> NDArray[np.complex128]:
        """Return the numbers at which the rank of [A - s I, B; C, D] drops, shape (count,), as :meth:`zeros` does.

        ``inputs`` and ``outputs`` choose columns of B and D, and rows of C and D.
        They are the transmission zeros and those eigenvalues, hidden from inputs or outputs, at which it drops too.
        """
        return self.zero_structure(inputs=inputs, outputs=outputs).invariant

    def relative_degree(
        self, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
    ) -> FloatArray:
        """Return how often each of ``outputs`` must be differentiated until one of ``inputs`` shows, shape (ny,).

        0 where D leads to the output, infinite where no input ever moves it. Of a sampled model how many samples pass.
        ``zero_structure().decouples`` says whether they form a vector relative degree.
        """
        return self.zero_structure(inputs=inputs, outputs=outputs).relative_degree

    @kinds_checked
    @implemented_in("fmilin.reduction.zero_dynamics:find_zero_dynamics")
    def zero_dynamics(
        self, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
    ) -> LinearModel:
        """Return the motion that remains when the outputs are held at their values of the point.

        A linear model without inputs, in some of the coordinates; its eigenvalues are the invariant zeros, its outputs
        the inputs that hold the outputs: ``u - u0 = C (z - z0)``. UsageError where more than one input does, or where
        the point moves so that the outputs cannot stay.
        """
        ...

    def with_prescribed_states(self) -> LinearModel:
        """Return the model with prescribed motions as states: of u, der(u), der(der(u)) only the last stays an input.

        Inputs that prescribe a motion come with their derivatives, which a controller cannot choose separately:
        here each is a state that integrates the next. The coordinates are (y, prescribed inputs). With s the inputs
        that become states and r the others, u = (s, r), and s' = S_s s + S_r r picks the derivatives:

            [y']   [A  B_s] [y]   [B_r]
            [s'] = [0  S_s] [s] + [S_r] r
        """
        names, E, chain = self.inputs.names, self.errors, self.inputs.rates
        if not chain:
            return self
        s, r = sorted(chain), [j for j in range(len(names)) if j not in chain]
        pick = np.zeros((len(s), len(names)))
        pick[np.arange(len(s)), [chain[j] for j in s]] = 1.0
        u0 = np.array([self.point.inputs[name] for name in names])
        zeros = np.zeros((len(s), len(self.states)))

        def wide(first: FloatArray, second: FloatArray) -> FloatArray:
            return np.hstack((first, second[:, s]))

        return replace(
            self,
            A=np.vstack((wide(self.A, self.B), wide(zeros, pick))),
            B=np.vstack((self.B[:, r], pick[:, r])),
            C=wide(self.C, self.D),
            D=self.D[:, r],
            T=wide(self.T, self.T_u),
            T_u=self.T_u[:, r],
            f0=np.concatenate((self.f0, pick @ u0)),
            y0=np.concatenate((self.y0, u0[s])),
            states=Signals([*self.states, *(self.inputs[j] for j in s)]),
            inputs=self.inputs.select(r),
            errors=EntryErrors(
                A=np.vstack((wide(E.A, E.B), wide(zeros, np.zeros_like(pick)))),
                B=np.vstack((E.B[:, r], np.zeros((len(s), len(r))))),
                C=wide(E.C, E.D),
                D=E.D[:, r],
                T=wide(E.T, np.zeros_like(self.T_u)),
            ),
            descriptor=None,
            derivatives={},
            discrete=None,
        )

    @implemented_in("fmilin.verification.procedure:verify_linear_model")
    def verify(self, model: Model, *, horizon: float | None = None) -> Verification:
        """Return what :func:`fmilin.verify` does of ``model``, following responses over ``horizon`` seconds."""
        ...

    @implemented_in("fmilin.export.python_control:to_control")
    def to_control(self) -> control.StateSpace:
        """Return a ``control.StateSpace`` in deviations from the point, with named states, inputs and outputs.

        python-control rejects dots in names: they become slashes, and
        :func:`fmilin.export.python_control.original_name` turns them back.
        """
        ...

    @implemented_in("fmilin.export.files:save")
    def save(
        self, path: str | Path, *, precision: Literal["double", "single"] = "double", sample_time: float | None = None
    ) -> None:
        """Write the model; the suffix picks the format: .mat, .npz, .json, .fmu, .m, .c, .mo, .tex or .txt.

        A ``path`` that ends in ``dslin.mat`` means Dymola's layout, ``_simulink.m`` a script that builds a Simulink
        model; an old file is replaced by a complete one. C code has numbers of a ``precision``, and for a continuous
        model a ``sample_time`` in seconds, else chosen by its fastest motion. UsageError where no exporter knows the
        suffix, a matrix has NaN, or nothing can be written.
        """
        ...

    @implemented_in("fmilin.report.web:save_report")
    def save_report(
        self, path: str | Path, *, verification: Verification | None = None, model: Model | None = None
    ) -> None:
        """Write everything about the model as one HTML file that needs no network: tables and pictures.

        A ``verification`` goes in, too; of the nonlinear ``model`` constraints are listed, and a mechanism is drawn.
        UsageError when ``path`` does not end in .html, or cannot be written.
        """
        ...

    @classmethod
    @implemented_in("fmilin.export.files:load")
    def load(cls, path: str | Path) -> LinearModel:
        """Return the model in ``path``: what :meth:`save` wrote (.mat .npz .json .fmu), ``dslin.mat``, OpenFAST's .lin.

        OpenFAST's azimuth, rotor speed and wind speed are parameters of its point. UsageError of another suffix,
        ModelError of a file that is missing, damaged or something else.
        """
        ...


def relative_error(error: FloatArray, matrix: FloatArray) -> float:
    """Return the largest error over the largest entry of a matrix; the error itself where all entries are zero."""
    worst, largest = float(error.max(initial=0.0)), float(np.abs(matrix).max(initial=0.0))
    return 0.0 if worst == 0.0 else worst / largest if largest > 0 else worst


class Pictures(Generic[Result]):
    """Draws a result; every method returns a ``matplotlib.figure.Figure`` with units on its axes."""

    def __init__(self, drawn: Result) -> None:
        self._drawn = drawn

    def __repr__(self) -> str:
        return "Pictures: " + ", ".join(f"{name}()" for name in dir(self) if not name.startswith("_"))


def extract_result(pictures: Pictures[Result]) -> Result:
    """Return the result that pictures are drawn of: implementations of the pictures take it."""
    return pictures._drawn


class Plots(Pictures[LinearModel]):
    """Draws a linear model; every method returns a ``matplotlib.figure.Figure`` with units on its axes."""

    @implemented_in("fmilin.report.linear_pictures:eigenvalue_figure", subject=extract_result)
    def eigenvalues(self, naive: LinearModel | None = None) -> Figure:
        """Return the eigenvalues (log(z) / T when sampled) with rays of equal damping, those of ``naive`` in grey."""
        ...

    @kinds_checked
    @implemented_in("fmilin.report.zeros_report:pole_zero_figure", subject=extract_result)
    def zeros(self, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Figure:
        """Return the pole-zero map: eigenvalues and transmission zeros, in z with the unit circle when sampled."""
        ...

    @kinds_checked
    @implemented_in("fmilin.report.linear_pictures:mode_figure", subject=extract_result)
    def modes(self, numbers: Sequence[int] | None = None) -> Figure:
        """Return shapes of modes as bars with phases, of the six slowest by default; counted from 1 as ``modes()``."""
        ...

    @implemented_in("fmilin.report.mechanism_picture:animate_modes", subject=extract_result)
    def animation(self, model: Model, numbers: Sequence[int] | None = None) -> Animation:
        """Return the mechanism ``model`` moving in its modes, the three slowest by default; a notebook shows it.

        ``.save("modes.gif")`` writes it. Raises UsageError when the model is not a mechanism, or not that of this
        linear model.
        """
        ...

    @implemented_in("fmilin.report.linear_pictures:participation_figure", subject=extract_result)
    def participation(self) -> Figure:
        """Return which coordinates take part in which mode, which inputs move it, which outputs show it."""
        ...

    @kinds_checked
    @implemented_in("fmilin.report.frequency_plots:bode_figure", subject=extract_result)
    def bode(
        self, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None, db: bool = True
    ) -> Figure:
        """Return Bode diagrams in dB and degrees, of the first four inputs and outputs unless channels are named.

        ``db=False`` draws factors. A loop at one wire is drawn with both ends of its gain margin, and its phase, delay
        and disk margins.
        """
        ...

    @kinds_checked
    @implemented_in("fmilin.report.frequency_plots:nyquist_figure", subject=extract_result)
    def nyquist(self, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Figure:
        """Return Nyquist diagrams, a panel for each channel, of the first four inputs and outputs by default.

        L of a loop is drawn as wired, as in Bode diagrams: its critical point is +1.
        """
        ...

    @implemented_in("fmilin.report.frequency_plots:draw_margins", subject=extract_result)
    def margins(self) -> Figure:
        """Return Bode and Nyquist diagrams of a loop at one wire with its margins, and S and T with their peaks."""
        ...

    @kinds_checked
    @implemented_in("fmilin.report.response_plots:step_figure", subject=extract_result)
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
        ...

    @implemented_in("fmilin.report.linear_pictures:error_figure", subject=extract_result)
    def errors(self) -> Figure:
        """Return the estimated error of every entry of A, B, C and D over the largest entry of its matrix."""
        ...

    @implemented_in("fmilin.report.linear_pictures:sparsity_figure", subject=extract_result)
    def sparsity(self) -> Figure:
        """Return which entries of A, B, C and D are zero, and how large the others are."""
        ...

    @implemented_in("fmilin.report.linear_pictures:sensitivity_figure", subject=extract_result)
    def sensitivities(self, numbers: Sequence[int] | None = None) -> Figure:
        """Return what each parameter does to the modes (from 1, slowest first; by default those that move most)."""
        ...

    @implemented_in("fmilin.report.linear_pictures:reduction_figure", subject=extract_result)
    def reduction(self, full: LinearModel, low: float = 0.0, high: float = float("inf")) -> Figure:
        """Compare this reduced model with the ``full`` one: gains, difference, and its bound for these rad/s."""
        ...


class DelayedLinearModel(LinearModel):
    """A linear model with internal delays, of :meth:`LinearModel.with_delays`, or of a connected system with delays.

    >>> import numpy as np, control, fmilin as fl
    >>> plant = fl.linearize(fl.connect({"plant": control.ss(-1.0, 1.0, 1.0, 0.0)}, []))
    >>> late = plant.with_delays(inputs={"plant.u[0]": 0.5})
    >>> late.delays
    {'plant.u[0]': 0.5}
    >>> complex(np.round(late.frequency_response([2.0])[0, 0, 0] * (1 + 2j) * np.exp(1j), 12))
    (1+0j)
    """

    file_kind: ClassVar[Holds] = "delayed linear model"  #: the formats of files that hold it: ``fmilin.formats``
    _attributes = ".delays, .eigenvalues(), .frequency_response(w), .step_response(), .pade(order), .core, .form"

    core: LinearModel  #: the linear model between the delays, with inputs (u, w) and outputs (y, z)
    _channels: tuple[str, ...]
    _seconds: FloatArray

    @classmethod
    @implemented_in("fmilin.linear_model.delayed:make_delayed_model")
    def of_core(cls, core: LinearModel, channels: Sequence[str], delays: Sequence[float]) -> DelayedLinearModel:
        """Return the model that delays of ``channels`` make of a core, its last inputs w and outputs z.

        Raises
        ------
        UsageError
            When a delay is negative or not finite, the core is sampled, or w prescribes a motion.

        Parameters
        ----------
        core : LinearModel
            Its last inputs are the delayed signals, its last outputs the signals before the delays.
        channels : sequence of str
            The names of the delayed signals.
        delays : sequence of float
            In seconds.
        """
        ...

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in WITHOUT_DELAYS and "core" in self.__dict__:
                matrix = "A" if name == "errors" else name
                raise UsageError(
                    f"'{self.model.name}' has delays ({describe_delays(self.delays)}), so there is no matrix {matrix} "
                    "of the whole, and this needs one. lin.pade(order) is a linear model without delays that "
                    "approximates it; lin.form has the matrices between the delays."
                )
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    @implemented_in("fmilin.report.delays:show_delayed_model")
    def _print_table(self, page: Sheet) -> None: ...

    @property
    def delays(self) -> Mapping[str, float]:
        """The delays in seconds, by the names of the signals that are delayed."""
        return dict(zip(self._channels, self._seconds.tolist(), strict=True))

    @property
    @implemented_in("fmilin.linear_model.delayed:get_form")
    def form(self) -> DelayForm:
        """The matrices of the linear fractional form: A, B1, B2, C1, C2, D11, D12, D21, D22 and the delays."""
        ...

    @property
    def is_equilibrium(self) -> bool | None:
        """Whether the point is an equilibrium, as :attr:`LinearModel.is_equilibrium`."""
        return self.core.is_equilibrium

    @property
    def plot(self) -> DelayedPlots:
        """Pictures: ``plot.eigenvalues()``, ``bode``, ``nyquist`` and ``step``, exact in the delays."""
        return DelayedPlots(self)

    def with_fields(self, **changes: Any) -> DelayedLinearModel:
        """Return the same with other values of fields that delays do not concern: ``changes`` of warnings or model."""
        return DelayedLinearModel.of_core(replace(self.core, **changes), self._channels, self._seconds.tolist())

    @kinds_checked
    @implemented_in("fmilin.linear_model.delayed:replace_delays")
    def with_delay_values(self, delays: Mapping[str, float]) -> DelayedLinearModel:
        """Return the same model with other ``delays``, by name, in seconds: for sweeps.

        Raises
        ------
        UnknownNameError
            When a name is not that of a delayed signal.
        UsageError
            When a delay is negative or not finite.
        """
        ...

    @kinds_checked
    @implemented_in("fmilin.linear_model.delay_sweep:sweep_delays")
    def sweep_delays(self, delays: Mapping[str, Sequence[float] | FloatArray], count: int = 2) -> DelaySweep:
        """Return the ``count`` rightmost eigenvalues over ``delays`` in seconds, by name, and where stability changes.

        Several delays are varied together: their sequences have one length. A change between two points of the sweep
        is solved for; an eigenvalue that crosses the imaginary axis twice between them is not noticed. UsageError for
        other sequences and neutral systems, UnknownNameError of other names, NumericalError as in :meth:`eigenvalues`.
        """
        ...

    @kinds_checked
    @implemented_in("fmilin.linear_model.delay_spectrum:find_eigenvalues")
    def eigenvalues(self, count: int = DEFAULT_EIGENVALUE_COUNT) -> NDArray[np.complex128]:
        """Return the ``count`` rightmost eigenvalues in 1/s, shape (count,), sorted by real part, then imaginary part.

        A system with a delay in a loop has infinitely many; one more is returned where a conjugate pair would be split.
        Where no delay is on a loop, they are all eigenvalues of the system. Spectral discretization of the generator,
        corrected by Newton's method on the characteristic equation. UsageError for neutral systems, NumericalError
        where two meshes do not lead to the same eigenvalues.
        """
        ...

    @kinds_checked
    @implemented_in("fmilin.linear_model.delay_spectrum:find_eigenvalue_errors")
    def eigenvalue_errors(self, count: int = DEFAULT_EIGENVALUE_COUNT) -> FloatArray:
        """Return how far each of the ``count`` rightmost :meth:`eigenvalues` may be off, shape (count,), in 1/s.

        By the errors of the entries and by rounding. UsageError and NumericalError as there.
        """
        ...

    @kinds_checked
    @implemented_in("fmilin.linear_model.delay_spectrum:count_right_eigenvalues")
    def count_eigenvalues_right_of(self, abscissa: float) -> int | None:
        """Return how many eigenvalues have a real part above ``abscissa`` in 1/s, by the argument principle.

        None where the contour around all of them would be too long, and of a neutral system left of the line near
        which infinitely many of its eigenvalues lie.
        """
        ...

    @implemented_in("fmilin.linear_model.delay_spectrum:judge_model")
    def stability(self) -> Stability:
        """Return whether deviations grow, from the rightmost eigenvalues; None where their errors leave it open."""
        ...

    @kinds_checked
    @implemented_in("fmilin.linear_model.delay_spectrum:make_delayed_modes")
    def modes(self, count: int | None = None, *, near: complex = 0.0) -> Modes:
        """Return the modes of the ``count`` rightmost eigenvalues, slowest first.

        The number ``near`` in 1/s has no meaning here: UsageError where it is given, and for neutral systems.
        """
        ...

    @kinds_checked
    @implemented_in("fmilin.linear_model.delay_approximation:approximate_by_pade")
    def pade(self, order: int = DEFAULT_PADE_ORDER) -> LinearModel:
        """Return a linear model without delays: Padé approximations [order/order] in their places.

        A warning says up to which frequency each delay is off by less than one percent. UsageError where ``order`` is
        not positive; NumericalError where the approximations close an algebraic loop without a solution.
        """
        ...

    @kinds_checked
    @implemented_in("fmilin.linear_model.delay_responses:compute_step_response")
    def step_response(
        self,
        input: str | None = None,  # noqa: A002 - the word of python-control and MATLAB
        *,
        amplitude: float = 1.0,
        stop_time: float | None = None,
        times: FloatArray | None = None,
    ) -> TimeResponse:
        """Return the deviations of states and outputs after a step of one input, exact in the delays.

        The ``input`` may be left out where there is one. The step has the ``amplitude`` in the unit of the input.
        ``stop_time`` in seconds is chosen by the slowest mode by default; ``times``, shape (k,), in seconds, are those
        of the samples, 401 by default. UsageError for neutral systems, UnknownNameError of other inputs, NumericalError
        where too many steps are needed.
        """
        ...

    @kinds_checked
    @implemented_in("fmilin.linear_model.delay_responses:compute_time_response")
    def time_response(
        self, times: FloatArray, inputs: Mapping[str, FloatArray], *, hold: str = "zero", rate: bool = True
    ) -> TimeResponse:
        """Return the deviations for inputs that are constant (``hold="zero"``) or linear ("first") between ``times``.

        The ``times`` have the shape (k,), in seconds. ``inputs`` are deviations from the point at these times, by name,
        zero before the first one; others stay. Where the point moves, ``rate`` adds its own motion f0. UsageError for
        neutral systems and inputs of another shape, UnknownNameError of other inputs, NumericalError where too many
        steps are needed.
        """
        ...

    @implemented_in("fmilin.export.python_control:approximate_in_control")
    def to_control(self) -> control.StateSpace:
        """Return a ``control.StateSpace`` by :meth:`pade`; a Python warning names the range in which it holds."""
        ...


class DelayedPlots(Plots, Pictures[LinearModel]):
    """Draws a linear model with delays; the delays are exact in each picture."""

    @implemented_in("fmilin.report.delays:draw_eigenvalues", subject=extract_result)
    def eigenvalues(self, naive: LinearModel | None = None) -> Figure:
        """Return the rightmost eigenvalues with rays of equal damping."""
        ...


def describe_delays(delays: Mapping[str, float]) -> str:
    """Return delays in words."""
    return join_first([f"{name} by {seconds:g} s" for name, seconds in delays.items()], MAX_DELAYS_IN_WORDS)
