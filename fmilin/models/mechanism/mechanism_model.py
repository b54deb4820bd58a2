"""A mechanism as a Model, of a description or of files."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from fmilin.codegen.implicit import ImplicitSystem
from fmilin.diagnostics import Remark
from fmilin.errors import ModelError, NumericalError, UsageError
from fmilin.model.capabilities import HasGivenStates, HasParameterSignals, HasVariedGraph
from fmilin.model.interface import UNCHANGED, Changes, Evaluation, ExactSlopes, OperatingPoint, TangentBatch
from fmilin.models.batch_graph import check_threads, stack_points, states_to_keep
from fmilin.models.mechanism.changes import list_parameter_units
from fmilin.models.mechanism.independence import Independence
from fmilin.models.mechanism.local_form import Choice, LocalFormMatrices, MechanismDerivatives, MechanismEquations
from fmilin.models.mechanism.loop_assembly import close_loops
from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.models.mechanism.mechanism_engine import MechanismEngine
from fmilin.models.mechanism.mechanism_evaluator import ManyPoints, MechanismQuantities
from fmilin.models.mechanism.mjcf_file import read_mjcf_description
from fmilin.models.mechanism.multibody_system import Columns, ForwardDynamics, State, System
from fmilin.models.mechanism.robot_file import find_additions
from fmilin.models.mechanism.rolling import add_wheels, read_rolling_shape
from fmilin.models.mechanism.sdf_file import read_sdf_description
from fmilin.models.mechanism.source_lines import SourceLines
from fmilin.models.mechanism.start_values import describe_moved_starts
from fmilin.models.mechanism.symbolic_parameters import find_valid_values
from fmilin.models.mechanism.toml_file import Parts, build_description, read_parts
from fmilin.models.mechanism.tree import Array
from fmilin.models.mechanism.urdf_file import read_urdf_description
from fmilin.models.native_model import NativeModel
from fmilin.numerics.rounding import move_some_bits
from fmilin.signals import FloatArray, Signal

Kind = TypeVar("Kind")


def read_mechanism(
    kind: Callable[[MechanismDescription], Kind],
    path: Path,
    additions: Path | None = None,
    *,
    floating_base: bool = False,
    fixed_joints: Collection[str] = (),
    roll: Sequence[str] = (),
) -> Kind:
    """Return the mechanism of a file, as :func:`read_mechanism_file` reads it, of a ``kind`` that closes its loops."""
    description, source = read_mechanism_file(path, additions, floating_base=floating_base, fixed_joints=fixed_joints)
    if roll:
        robot = find_robot_file(path)
        description = add_wheels(description, roll, lambda name: read_rolling_shape(robot, name) if robot else None)
    with source.add_location():
        return kind(description)


def read_mechanism_file(
    path: Path, additions: Path | None = None, *, floating_base: bool = False, fixed_joints: Collection[str] = ()
) -> tuple[MechanismDescription, SourceLines]:
    """Read a ``.toml``, ``.urdf`` or ``.sdf`` file, with the TOML file of ``additions``, and where its parts stand."""
    if path.suffix.lower() in ROBOT_READERS:
        extra = find_additions(path) if additions is None else additions
        parts = None if extra is None else read_parts(extra)
        for key in ROBOT_KEYS:
            if parts is not None and key in parts.content:
                what = (
                    f"this file is read for '{path.name}' and names a robot itself: remove '{key}', or open this file"
                )
                raise parts.wrong((key,), what)
        return _read_robot(path, parts, floating_base=floating_base, fixed_joints=fixed_joints)
    if additions is not None:
        raise ModelError(
            f"'{path}' is not a URDF or SDFormat file: write everything into it, instead of into '{additions}'."
        )
    parts = read_parts(path)
    robots = {key: parts.content[key] for key in ROBOT_KEYS if parts.content.get(key) is not None}
    if len(robots) > 1:
        raise parts.wrong((next(iter(robots)),), "one of 'urdf', 'sdf' and 'mjcf' can be named, not several")
    for key, name in robots.items():
        return _read_robot(
            path.parent / name, parts, reader=f".{key}", floating_base=floating_base, fixed_joints=fixed_joints
        )
    if floating_base:
        raise UsageError(
            f"'{path}' names no robot's file with a base that could float: give its first body a free joint."
        )
    if fixed_joints:
        raise UsageError(
            f"'{path}' names no URDF or SDFormat file: write 'fixed' as the type of a joint that is to be fixed."
        )
    return build_description(parts), parts.source


def find_robot_file(path: Path) -> Path | None:
    """Return the URDF or SDFormat file itself, or that which a TOML file names; None where it names none."""
    if path.suffix.lower() in ROBOT_READERS:
        return path
    content = read_parts(path).content
    keys = [suffix.removeprefix(".") for suffix in ROBOT_READERS]
    return next((path.parent / content[key] for key in keys if content.get(key)), None)


ROBOT_READERS = {".urdf": read_urdf_description, ".sdf": read_sdf_description}
NAMED_READERS = ROBOT_READERS | {".mjcf": read_mjcf_description}  # of files that a TOML file names
ROBOT_KEYS = tuple(suffix.removeprefix(".") for suffix in NAMED_READERS)


def _read_robot(
    path: Path,
    parts: Parts | None,
    reader: str | None = None,
    *,
    floating_base: bool,
    fixed_joints: Collection[str],
) -> tuple[MechanismDescription, SourceLines]:
    read = NAMED_READERS[reader or path.suffix.lower()]
    return read(path, parts, floating_base=floating_base, fixed_joints=fixed_joints)


def require_no_delays(description: MechanismDescription) -> None:
    """Raise ModelError for a description with delays: a model of this class has none."""
    for name, seconds in description.input_delays.items():
        raise ModelError(
            f"The input '{name}' of the mechanism '{description.name}' has a delay of {seconds:g} s. Open the file "
            "with fl.load, or the description with fmilin.models.mechanism.build_model: they return a model with "
            "delays."
        )


class Mechanism(NativeModel, HasGivenStates, HasParameterSignals, HasVariedGraph):
    """Bodies, joints and loops with the dynamics and the exact linearization of Spencer (thesis), chapter 4.

    The states are the positions of all joints of the open tree, in the order in which the joints were given, then
    their velocities. The loops, wheels and skates, and the unit length of quaternions, are constraints; they are
    kept all the same when others are declared. The positions of joints are a first guess where loops are open:
    :func:`assemble` closes them.

    In addition to sensors, states, inputs and ``der(state)`` there are as outputs ``BODY.x .. BODY.z``, ``BODY.vx ..``,
    ``BODY.ax ..`` of the origin of every body's frame; ``SPRING.length``; for loops, wheels and skates
    ``LOOP.gap[1]``, ``LOOP.slip[1]`` and ``LOOP.reaction[1]``, ...; and ``kinetic_energy``, ``potential_energy``,
    ``energy``. Masses, springs, lengths and gravity are ``parameters``; after a change of them loops may be open at
    the start values.

    >>> import fmilin as fl
    >>> from fmilin.models.mechanism import Body, Joint, Mechanism, MechanismDescription
    >>> rod = Body("rod", 1.0, center=(0, 0, -0.75), inertia=(0, 0, 0))
    >>> pin = Joint("pin", "revolute", "ground", "rod", axis=(0, 1, 0))
    >>> pendulum = Mechanism(MechanismDescription("pendulum", [rod], [pin], gravity=(0, 0, -12)))
    >>> [complex(round(s.real, 9), round(s.imag, 9)) for s in fl.linearize(pendulum).eigenvalues()]
    [-4j, 4j]
    """

    engine: MechanismEngine

    def __init__(self, description: MechanismDescription) -> None:
        require_no_delays(description)
        engine = MechanismEngine(description)
        assembled = close_loops(description)
        super().__init__(engine if assembled is description else MechanismEngine(assembled))

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """Return the mechanism that a TOML file describes (``docs/mechanism.md``), its loops closed."""
        return read_mechanism(cls, Path(path))

    @classmethod
    def from_urdf(
        cls,
        path: str | Path,
        additions: str | Path | None = None,
        *,
        floating_base: bool = False,
        fixed_joints: Sequence[str] = (),
        roll: Sequence[str] = (),
    ) -> Self:
        """Return the mechanism of a URDF file, with what a TOML file, by default ``STEM.fmilin.toml`` next to it, adds.

        ``floating_base`` lets the root link move freely, by a joint of that name; ``fixed_joints`` stay at zero.
        Bodies of ``roll``, ``BODY`` or ``BODY:RADIUS``, roll on the ground, a plane through the origin across gravity.
        """
        extra = None if additions is None else Path(additions)
        return read_mechanism(cls, Path(path), extra, floating_base=floating_base, fixed_joints=fixed_joints, roll=roll)

    @classmethod
    def from_sdf(
        cls,
        path: str | Path,
        additions: str | Path | None = None,
        *,
        fixed_joints: Sequence[str] = (),
        roll: Sequence[str] = (),
    ) -> Self:
        """Return the mechanism of an SDFormat file, with what a TOML file, ``STEM.fmilin.toml`` by default, adds.

        Models without a joint to the world float; ``fixed_joints=["floating_base"]`` fixes such a base.
        Bodies of ``roll`` roll as in :meth:`from_urdf`.
        """
        extra = None if additions is None else Path(additions)
        return read_mechanism(cls, Path(path), extra, fixed_joints=fixed_joints, roll=roll)

    def describe_parameters(self) -> Mapping[str, Signal]:
        """Return parameters with their units, by name."""
        return {name: Signal(name, unit) for name, unit in list_parameter_units(self.description).items()}

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return derivatives, outputs and residuals, by compiled code as soon as there is some.

        One point of a mechanism with constraints is left to the recursion, which tells singular configurations.
        """
        if not len(self.constraints):
            compiled = self._evaluate_compiled(np.array([t]), x[None], u[None])
            if compiled is not None:
                return Evaluation(compiled.derivatives[0], compiled.outputs[0], compiled.residuals[0])
        return super().evaluate(t, x, u)

    def _evaluate_compiled(self, t: FloatArray, x: FloatArray, u: FloatArray) -> Evaluation | None:
        return self._many_points.values(x, u) if self.engine.compilable and self._answers_for_many_points else None

    def exact_slopes(self, t: float, x: FloatArray, u: FloatArray) -> ExactSlopes | None:
        """Return the recursive procedure of Spencer (thesis), section 4.2; None with other constraints than its own."""
        quantities: MechanismQuantities = self._selection
        closure = quantities.closure
        if not self._has_own_constraints or closure is None:
            return None
        states, inputs = self._here_and_nearby(x, u)
        if self._answers_for_many_points:
            self._many_points.compilation.count_linearization()
        try:
            solution = self.solution(states, inputs)
        except NumericalError:  # the point alone says what is singular
            solution = self.solution(x[None], u[None])
        rates, outputs, observed = (part[0] for part in quantities.values(solution))
        values = Evaluation(rates, outputs, self._residuals(t, x, u, observed))

        def gradient(columns: Columns) -> Array:
            return self.constraints.gradient((t, x, u, observed), closure.gradient(solution, columns)[0])

        slopes = MechanismDerivatives(self.equations, solution, values, gradient)
        slopes.smooth = self._is_smooth
        return slopes

    def _here_and_nearby(self, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a point and some bits next to it, which cost hardly more than the point."""
        bits = move_some_bits(x, self.states.scales(x)) - x
        return np.stack((x, x + bits, x - bits)), np.stack((u, u, u))

    def matrices_along(
        self,
        points: Sequence[OperatingPoint],
        *,
        independent: Sequence[str] | None = None,
        threads: int = 1,
        compiled: bool | None = None,
    ) -> TangentBatch:
        """Return A, B, C, D, T and f0 at many points (not verified) at once, stacked along the first axis.

        From so many points on that it pays (ten thousand, about; fewer for a mechanism that was compiled before),
        those of earlier calls counted, or where ``compiled`` says so, the equations are compiled to C: that takes a
        second or a few. By default the recommended states are kept, else those that a partition keeps at the
        first point; positions stand first.

        >>> from fmilin.systems import slider_crank
        >>> crank = slider_crank()
        >>> crank.matrices_along([crank.start] * 3).A.shape
        (3, 2, 2)
        """
        _, x, u = stack_points(self, points)
        choice = Choice.of(states_to_keep(self, points[0], independent), self.system)
        return self._many_points(x, u, choice, threads=check_threads(threads), compiled=compiled)

    def tangents(
        self, t: FloatArray, x: FloatArray, u: FloatArray, independent: Sequence[int], parameters: Changes = UNCHANGED
    ) -> TangentBatch | None:
        """Return values and derivatives at many points: by the recursion, by compiled code where that pays."""
        if parameters:
            return self._differentiate_varied(t, x, u, independent, parameters)
        if not self._answers_for_many_points:
            return super().tangents(t, x, u, independent, parameters)
        tangents = self._many_points(x, u, self._make_choice(tuple(independent))).with_columns(independent)
        return tangents if self._is_smooth else replace(tangents, smooth=False)

    def _differentiate_varied(
        self, t: FloatArray, x: FloatArray, u: FloatArray, independent: Sequence[int], parameters: Changes
    ) -> TangentBatch | None:
        """Return the same with a value of parameters at each point; NaN where the mechanism rejects the values."""
        is_valid = find_valid_values(self.description, parameters)
        if not is_valid.any():
            return None
        # The equations of other points are evaluated with values that the model has.
        values = {name: np.where(is_valid, column, self.parameters[name]) for name, column in parameters.items()}
        tangents = super().tangents(t, x, u, independent, values)
        return tangents if tangents is None or is_valid.all() else tangents.without_points(np.flatnonzero(~is_valid))

    def list_symbolic_parameters(self) -> Collection[str]:
        """Return masses, springs, dampers and gravity: parameters that move no constraint."""
        return self.engine.symbolic_parameters

    def in_varied_graph(self, parameters: Sequence[str]) -> ImplicitSystem | None:
        """Return the equations as a graph with symbols for these parameters; None where these change constraints."""
        system = self.engine.in_varied_graph(self._chosen, self._observed, parameters)
        return None if system is None else system.with_inputs(self._input_indices)

    @property
    def _answers_for_many_points(self) -> bool:
        """Whether the recursion, or its compiled code, has the constraints of the model."""
        return self._has_own_constraints and self._selection.closure is not None

    @property
    def _is_smooth(self) -> bool:
        """Whether the forces have no kink."""
        return self.system.paths is None or self.system.paths.smooth

    def _by_recursion(self, x: FloatArray, u: FloatArray, choice: Choice) -> TangentBatch:
        """Return the derivatives along the states of a choice at x (k, N), u (k, nu)."""
        solution, quantities = self.solution(x, u), self._selection
        columns = self.system.columns(solution)
        models = LocalFormMatrices(self.equations, solution, choice, columns).matrices()
        if not len(self.constraints) or quantities.closure is None:
            return models
        observed = quantities.observing.values(solution)
        H = self.constraints.gradient((0.0, x, u, observed), quantities.closure.gradient(solution, columns))
        return replace(models, residuals=self._residuals(0.0, x, u, observed), gradient=H)

    @cached_property
    def _many_points(self) -> ManyPoints:
        return ManyPoints(self, self._by_recursion)

    def _make_choice(self, independent: tuple[int, ...]) -> Choice:
        """Return the choice that keeps these states, made once."""
        if independent not in self._choices:
            self._choices[independent] = Choice.of(independent, self.system)
        return self._choices[independent]

    @cached_property
    def _choices(self) -> dict[tuple[int, ...], Choice]:
        """What :meth:`_choice_of` has returned."""
        return {}

    def reach_manifold(
        self, t: FloatArray, x: FloatArray, u: FloatArray, independent: Sequence[int], sizes: FloatArray
    ) -> tuple[FloatArray, NDArray[np.bool_]] | None:
        """Return points of the manifold by compiled code of the constraints; None without."""
        return super().reach_manifold(t, x, u, self._make_choice(tuple(independent)).states, sizes)

    def has_compiled_derivatives(self) -> bool:
        """Return whether compiled code answers :meth:`tangents` by now."""
        return self._answers_for_many_points and self._many_points.is_compiled

    @property
    def is_compiled_for_many_points(self) -> bool:
        """Whether linear models at many points come from compiled code by now, no longer from the recursion."""
        return self._many_points.is_compiled

    def solution(self, x: FloatArray, u: FloatArray) -> ForwardDynamics:
        """Return accelerations and multipliers, with everything on the way, at x (..., N) and u (..., nu)."""
        solution: ForwardDynamics = self._selection.solution(x, self._full(u))
        return solution

    def reactions(self, point: OperatingPoint | None = None) -> dict[str, float]:
        """Return all multipliers by name, NaN if undetermined; a constraint pushes its second body with -lambda."""
        point = self.start if point is None else point
        independence = self.independence
        values = {key: float("nan") for key in independence.vanishing}
        multipliers = self.solution(point.states, point.inputs).multipliers.tolist()
        for loop, value in zip(self.system.loop_constraints, multipliers, strict=True):
            key = (loop.of, loop.index)
            values[key] = float("nan") if key in independence.undetermined else value
        return {f"{of}.reaction[{index}]": value for (of, index), value in values.items()}

    def choose_kept_states(self, fixed_states: Collection[str]) -> Mapping[str, bool]:
        """Return the recommended coordinates and the velocities that were given; below velocities all positions.

        Of positions only those of recommended coordinates were given: others are first guesses for closing the loops.
        """
        names, n_q = self.states.names, self.system.tree.n_q
        q = {n: v for j in self.description.joints for n, v in zip(j.state_names[0], j.position, strict=False)}
        given_names = self.description.given_speeds | {name for name in self.independent if q.get(name)}
        rest = () if set(names[:n_q]) & set(fixed_states) else names[:n_q]
        fixed_names = *self.independent, *(name for name in names if name in given_names), *rest
        return {name: name in given_names for name in fixed_names if name not in fixed_states and self.states.has(name)}

    def list_point_remarks(self, point: OperatingPoint) -> tuple[Remark, ...]:
        """Return how feet stand, and at the start itself which values are not those that were given."""
        x, moved = point.states, self.description.moved
        starts = all(np.isclose(x[self.states.positions[m.state]], m.became, rtol=1e-6, atol=1e-9) for m in moved)
        return (*super().list_point_remarks(point), *([describe_moved_starts(moved)] if moved and starts else []))

    def may_have_point_remarks(self) -> bool:
        """Return whether starts have moved, or feet are held."""
        return bool(self.description.moved) or super().may_have_point_remarks()

    @property
    def description(self) -> MechanismDescription:
        """The description."""
        return self.engine.description

    @property
    def independence(self) -> Independence:
        """Which constraints say something, and which are independent."""
        return self.engine.independence

    @property
    def system(self) -> System:
        """The equations with the chosen outputs."""
        system: System = self._selection.system
        return system

    @cached_property
    def equations(self) -> MechanismEquations:
        """The equations that are linearized."""
        return MechanismEquations(self.system, self.independence, self._selection.outputs, self._input_indices)

    def state(self, x: Array, u: Array) -> State:
        """Return what x (..., N) and u (..., nu) determine without solving."""
        state: State = self._selection.state(x, self._full(u))
        return state
