"""Zeros, relative degrees and zero dynamics of linear models, against closed forms, planted zeros and other tools."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import control
import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

import fmilin as fl
from fmilin.linear_model.model import EntryErrors
from fmilin.models import OdeModel
from fmilin.numerics.system_pencil import (
    SystemPencil,
    ZeroEstimates,
    compute_transmission_zeros,
    compute_zeros,
    count_differentiations,
)
from fmilin.reduction import discretize
from fmilin.signals import FloatArray
from tests.hand_made import sized
from tests.linear_model.planted_zeros import PlantedSystem, plant_zeros
from tests.systems.test_bicycle import C1, K0, K2, G, M

Complex = NDArray[np.complex128]
Matrices = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def linear_of(
    A: FloatArray, B: FloatArray, C: FloatArray, D: FloatArray, *, sample_time: float = 0.0
) -> fl.LinearModel:
    """A linear model with these matrices, at an equilibrium, with exact entries."""
    base = sized(len(A), 0, B.shape[1], len(C))
    zeros = EntryErrors(*(np.zeros_like(matrix) for matrix in (A, B, C, D, base.T)))
    return replace(
        base,
        A=A,
        B=B,
        C=C,
        D=D,
        errors=zeros,
        f0=np.zeros(len(A)),
        sample_time=sample_time,
        warnings=(),
        descriptor=None,
    )


def of_control(system: control.StateSpace) -> fl.LinearModel:
    return linear_of(system.A, system.B, system.C, system.D, sample_time=float(system.dt or 0.0))


def farthest(values: Complex, expected: Complex) -> FloatArray:
    """How far each of the expected zeros is from its partner."""
    assert len(values) == len(expected)
    distances = np.abs(np.asarray(values)[:, None] - np.asarray(expected))
    rows, columns = linear_sum_assignment(distances)
    return distances[rows, columns]


def pencil_of(matrices: Matrices) -> SystemPencil:
    errors = tuple(np.zeros_like(matrix) for matrix in matrices)
    return SystemPencil.build(matrices, errors, errors_known=False)  # type: ignore[arg-type]


# -- planted zeros -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", range(0, 240, 24))
def test_planted_zeros_come_back_to_1e_8_and_within_their_errors(start: int) -> None:
    for seed in range(start, start + 24):
        system = plant_zeros(seed)
        pencil = pencil_of(system.matrices)
        invariant = compute_zeros(pencil)
        check_zeros(system, invariant, system.invariant)
        check_zeros(system, compute_transmission_zeros(pencil, invariant), system.transmission)
        if system.orders is not None:
            assert invariant.infinite_orders == system.orders, system.description


def check_zeros(system: PlantedSystem, estimates: ZeroEstimates, expected: Complex) -> None:
    assert not estimates.is_doubtful, system.description
    assert estimates.is_consistent, system.description
    assert not estimates.uncertified.any()
    assert not estimates.disagreeing.any()
    assert len(estimates.values) == len(expected), system.description
    if not len(expected):
        return
    distances = np.abs(estimates.values[:, None] - expected)
    rows, columns = linear_sum_assignment(distances)
    off = distances[rows, columns]
    sizes = np.maximum(np.abs(expected[columns]), 1e-3 * np.abs(expected).max() or 1.0)  # a zero at 0 has no size
    assert (off <= 1e-8 * sizes).all(), system.description
    assert (off <= estimates.errors[rows]).all(), system.description


def test_the_planted_systems_are_of_every_kind() -> None:
    kinds = Counter(part for seed in range(240) for part in plant_zeros(seed).description.split(", "))
    for kind in ("D = 0", "D singular", "D regular", "square", "more outputs", "more inputs", "integrators", "sampled"):
        assert kinds[kind] >= 20, kind
    assert sum(kinds[f"{count} hidden"] for count in (1, 2)) >= 50


# -- closed forms ------------------------------------------------------------------------------------------------------


def mass_chain(count: int, *, damping: float = 0.0) -> fl.LinearModel:
    """Equal masses in a row that springs (and dampers) join, free at both ends, a force on the first."""
    rates: dict[str, str] = {}
    for i in range(count):
        neighbours = [j for j in (i - 1, i + 1) if 0 <= j < count]
        forces = [f"4*(x{j} - x{i}) + {damping}*(v{j} - v{i})" for j in neighbours] + ["F"] * (i == 0)
        rates |= {f"x{i}": f"v{i}", f"v{i}": " + ".join(forces)}
    model = OdeModel("chain", rates, inputs=["F"], outputs={f"y{i}": f"x{i}" for i in range(count)})
    return fl.linearize(model)


def test_collocated_zeros_of_a_chain_are_the_frequencies_with_the_driven_mass_held() -> None:
    # n - 1 masses, fixed at one end and free at the other: w_k = 2 sqrt(4) sin((2 k - 1) pi / (2 (2 n - 1)))
    zeros = mass_chain(4).zeros(outputs=["y0"])
    frequencies = 4.0 * np.sin((2 * np.arange(1, 4) - 1) * np.pi / 14)
    assert farthest(zeros, np.concatenate((1j * frequencies, -1j * frequencies))).max() < 1e-13


def test_zeros_of_a_chain_to_a_mass_further_on_are_those_of_the_part_behind_it() -> None:
    zeros = mass_chain(4).zero_structure(outputs=["y2"])
    assert farthest(zeros.zeros, np.array([2j, -2j])).max() < 1e-13  # one mass at a held one
    assert zeros.relative_degree.tolist() == [6.0]
    assert zeros.infinite_orders == (6,)


def test_without_dampers_the_last_mass_has_no_zero_and_with_dampers_one_of_each() -> None:
    assert mass_chain(4).zeros(outputs=["y3"]).tolist() == []
    assert mass_chain(4).relative_degree(outputs=["y3"]).tolist() == [8.0]
    damped = mass_chain(4, damping=0.5)
    zeros, errors = damped.zeros(outputs=["y3"]), damped.zero_errors(outputs=["y3"])
    off = np.abs(zeros + 8.0)  # (c s + k)^3: they scatter by the third root of rounding
    assert len(zeros) == 3
    assert (off <= errors).all()
    assert errors.max() < 0.01
    assert damped.relative_degree(outputs=["y3"]).tolist() == [5.0]


@pytest.mark.parametrize(("count", "measured"), [(10, 5), (10, 9), (25, 8), (40, 20)])
def test_weak_dampers_in_a_long_chain_do_not_spoil_its_zeros(count: int, measured: int) -> None:
    """Walls at both ends: the zeros are the eigenvalues of the masses between the measured one, held, and the wall.

    Each damper on the way adds a zero at -k/c = -1e4. In one point as many of them cannot be resolved.
    """
    K = 2 * np.eye(count) - np.eye(count, k=1) - np.eye(count, k=-1)
    A = np.block([[np.zeros((count, count)), np.eye(count)], [-100 * K, -0.01 * K]])
    B, C = np.zeros((2 * count, 1)), np.zeros((1, 2 * count))
    B[count], C[0, measured] = 1.0, 1.0
    rest = count - measured
    kappa = 4 * np.sin(np.arange(1, rest) * np.pi / (2 * rest)) ** 2
    roots = -0.005 * kappa + 1j * np.sqrt(100 * kappa - (0.005 * kappa) ** 2)
    structure = linear_of(A, B, C, np.zeros((1, 1))).zero_structure()
    distances = np.abs(structure.invariant[:, None] - np.concatenate((roots, roots.conj())))
    assert len(structure.invariant) == 2 * (rest - 1)
    assert (distances.min(axis=1, initial=np.inf) <= structure.invariant_errors).all()
    assert (structure.invariant_errors < 1e-9).all()
    assert [remark.kind for remark in structure.warnings] == ["zeros"]


def test_a_force_on_a_cart_with_a_pendulum_upright() -> None:
    # m l (v' + l w') - m g phi = 0 and (M + m) v' + m l w' = F: from F to x +- sqrt(g / l)
    g, length = 9.81, 0.6
    rates = {"x": "v", "phi": "w", "v": "(F - 0.3*9.81*phi)/1.2", "w": "((1.5)*9.81*phi - F)/(1.2*0.6)"}
    lin = fl.linearize(OdeModel("cart", rates, inputs=["F"], outputs={"x": "x", "phi": "phi"}))
    assert_allclose(lin.zeros(outputs=["x"]).real, [-np.sqrt(g / length), np.sqrt(g / length)], rtol=1e-14)
    assert lin.zero_structure(outputs=["x"]).minimum_phase is False
    assert (
        lin.zeros(outputs=["phi"]).tolist() == []
    )  # the double zero at 0 cancels the motion of the cart, hidden there
    assert_allclose(lin.invariant_zeros(outputs=["phi"]), 0.0, atol=1e-7)
    assert len(lin.invariant_zeros(outputs=["phi"])) == 2
    assert lin.zero_structure(outputs=["phi"]).minimum_phase is None


@pytest.fixture(scope="module")
def bicycle() -> fl.LinearModel:
    return fl.linearize(fl.systems.bicycle(speed=4.6), outputs=["lean", "steer", "y"])


@pytest.mark.parametrize(
    ("torque", "angle", "i", "j"),
    [("steer_torque", "lean", 0, 1), ("lean_torque", "lean", 1, 1), ("lean_torque", "steer", 1, 0),
     ("steer_torque", "steer", 0, 0)],
)  # fmt: skip
def test_zeros_of_the_bicycle_are_those_of_the_published_matrices(
    bicycle: fl.LinearModel, torque: str, angle: str, i: int, j: int
) -> None:
    # of M s^2 + v C1 s + g K0 + v^2 K2 the cofactors
    v = 4.6
    expected: Complex = np.asarray(
        np.roots([M[i, j], v * C1[i, j], G * K0[i, j] + v**2 * K2[i, j]]), dtype=np.complex128
    )
    structure = bicycle.zero_structure(inputs=[torque], outputs=[angle])
    off = farthest(structure.zeros, expected)
    assert (off <= 1e-8 * np.abs(expected)).all()
    assert structure.warnings == ()


def test_a_bicycle_steers_away_first(bicycle: fl.LinearModel) -> None:
    """To the lateral position from the steering torque there is a zero at v over the trail behind, and +- sqrt(g/h)."""
    structure = bicycle.zero_structure(inputs=["steer_torque"], outputs=["y"])
    right = structure.zeros.real > 1.0
    assert right.sum() == 1
    assert structure.minimum_phase is False
    assert_allclose(structure.zeros[right].real, -structure.zeros.real[np.abs(structure.zeros) < 10].min(), rtol=1e-9)


# -- against other tools -----------------------------------------------------------------------------------------------


def test_zeros_of_a_pade_model_are_those_of_its_polynomial() -> None:
    numerator, denominator = control.pade(1e-3, 4)
    lin = of_control(control.tf2ss(control.tf(numerator, denominator)))
    zeros, errors = lin.zeros(), lin.zero_errors()
    off = farthest(zeros, np.asarray(np.roots(numerator), dtype=np.complex128))
    assert np.abs(zeros).min() > 5e3
    assert off.max() < 1e-8
    assert errors.max() < 1e-6


@pytest.mark.parametrize("seed", range(12))
def test_python_control_agrees_where_a_model_is_well_scaled(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = (6, 2) if seed % 2 else (5, 1)
    D = rng.standard_normal((m, m)) if seed % 3 else np.zeros((m, m))
    system = control.ss(*(rng.standard_normal(shape) for shape in ((n, n), (n, m), (m, n))), D)
    lin = of_control(system)
    expected = np.sort_complex(system.zeros())
    expected = expected[np.abs(expected) < 1e6]
    assert farthest(lin.zeros(), expected).max(initial=0.0) < 1e-8 * (1.0 + np.abs(expected).max(initial=0.0))


def test_units_move_no_zero() -> None:
    lin = mass_chain(3, damping=0.3)
    scale = 10.0 ** np.array([-6.0, 3.0, 5.0, -2.0, 0.0, 4.0])
    A, B, C = scale[:, None] * lin.A / scale, scale[:, None] * lin.B * 1e6, 1e-9 * lin.C[:1] / scale
    scaled = linear_of(A, B, C, np.zeros((1, 1)))
    assert farthest(scaled.zeros(), lin.zeros(outputs=["y0"])).max() < 1e-12


# -- errors ------------------------------------------------------------------------------------------------------------


def test_errors_of_entries_move_zeros_within_their_errors() -> None:
    rng = np.random.default_rng(5)
    for seed in range(20):
        system = control.ss(*(rng.standard_normal(shape) for shape in ((5, 5), (5, 2), (2, 5), (2, 2))))
        lin = of_control(system)
        E = lin.errors
        size = 1e-7
        errors = replace(E, **{name: size * np.abs(getattr(lin, name)) for name in "ABCD"})
        lin = replace(lin, errors=errors)
        zeros, bounds = lin.zeros(), lin.zero_errors()
        most = 0.0
        for _ in range(20):
            moved = {n: getattr(lin, n) * (1 + size * rng.choice([-1.0, 1.0], getattr(lin, n).shape)) for n in "ABCD"}
            off = np.abs(replace(lin, **moved).zeros()[:, None] - zeros).min(axis=0)
            assert (off <= bounds).all(), seed
            most = max(most, float((off / bounds).max()))
        assert most > 1e-2, seed  # the errors are not mere large numbers


def test_an_entry_within_its_error_makes_no_zero() -> None:
    A, B, C, D = np.diag([-1.0, -2.0]), np.ones((2, 1)), np.array([[1.0, 1.0]]), np.array([[1e-6]])
    exact = linear_of(A, B, C, D)
    # s^2 + (3 + 2/D) s + 2 + 3/D = 0
    expected = np.asarray(np.roots([1.0, 3.0 + 2e6, 2.0 + 3e6]), dtype=np.complex128)
    assert (farthest(exact.zeros(), expected) <= exact.zero_errors()).all()
    assert_allclose(exact.zeros().real, np.sort(expected.real), rtol=1e-8)
    doubtful = replace(exact, errors=replace(exact.errors, D=np.array([[1e-5]])))
    assert_allclose(doubtful.zeros(), [-1.5], rtol=1e-5)
    assert doubtful.relative_degree().tolist() == [1.0]


def test_a_zero_that_rounding_makes_infinite_is_left_out_with_a_remark() -> None:
    A, B, C, D = np.diag([-1.0, -2.0]), np.ones((2, 1)), np.array([[1.0, 1.0]]), np.array([[1e-9]])
    structure = linear_of(A, B, C, D).zero_structure()
    assert_allclose(structure.zeros, [-1.5], rtol=1e-8)
    assert ["1 more zero is left out" in remark.message for remark in structure.warnings] == [True]


def test_a_coupling_that_may_be_rounding_is_remarked_on() -> None:
    A, B, C, D = np.diag([-1.0, -2.0]), np.ones((2, 1)), np.array([[1.0, 1.0]]), np.array([[3e-11]])
    lin = linear_of(A, B, C, D)
    lin = replace(lin, accuracy=replace(lin.accuracy, A=np.nan))  # nothing is known of the errors of its entries
    structure = lin.zero_structure()
    assert [remark.kind for remark in structure.warnings] == ["zeros"]
    assert "The number of zeros cannot be determined" in repr(structure)


# -- infinity ----------------------------------------------------------------------------------------------------------


def test_relative_degrees_and_the_decoupling_matrix_of_an_aircraft_like_model() -> None:
    rates = {"a": "b", "b": "u1 + 2*u2", "c": "a + u1"}
    lin = fl.linearize(OdeModel("two", rates, inputs=["u1", "u2"], outputs={"y1": "a", "y2": "c"}))
    structure = lin.zero_structure()
    assert structure.relative_degree.tolist() == [2.0, 1.0]
    assert_allclose(structure.decoupling_matrix, [[1.0, 2.0], [1.0, 0.0]])
    assert structure.decouples
    assert structure.infinite_orders == (1, 2)


def test_a_singular_decoupling_matrix_is_called_so() -> None:
    rates = {"a": "u1 + u2", "b": "u1 + u2 + c", "c": "u2"}
    lin = fl.linearize(OdeModel("coupled", rates, inputs=["u1", "u2"], outputs={"y1": "a", "y2": "b"}))
    structure = lin.zero_structure()
    assert structure.relative_degree.tolist() == [1.0, 1.0]
    assert not structure.decouples
    assert structure.infinite_orders == (1, 2)
    assert "no vector relative degree" in " ".join(repr(structure).split())


def test_an_output_that_no_input_moves_has_an_infinite_relative_degree() -> None:
    lin = fl.linearize(OdeModel("apart", {"a": "-a + u", "b": "-b"}, inputs=["u"], outputs={"y": "b", "z": "a"}))
    assert lin.relative_degree().tolist() == [np.inf, 1.0]
    assert lin.zeros(outputs=["y"]).tolist() == []
    assert lin.zero_structure(outputs=["y"]).normal_rank == 0


def test_delays_of_a_sampled_model_are_its_relative_degree() -> None:
    system = control.tf2ss(control.tf([1.0, 0.5], [1.0, 0.1, 0.2, 0.0, 0.0], 0.1))
    lin = of_control(system)
    assert lin.relative_degree().tolist() == [3.0]
    assert_allclose(lin.zeros(), [-0.5], rtol=1e-12)
    assert lin.zero_structure().minimum_phase is True


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_the_infinite_orders_of_a_single_channel_are_its_relative_degree(seed: int) -> None:
    system = plant_zeros(seed)
    for j in range(system.B.shape[1]):
        pencil = pencil_of((system.A, system.B[:, [j]], system.C[:1], system.D[:1, [j]]))
        assert count_differentiations(pencil).tolist() == list(compute_zeros(pencil).infinite_orders)


# -- zero dynamics -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["y0", "y1", "y2"])
def test_eigenvalues_of_the_zero_dynamics_are_the_invariant_zeros(output: str) -> None:
    lin = mass_chain(4, damping=0.3)
    dynamics = lin.zero_dynamics(outputs=[output])
    structure = lin.zero_structure(outputs=[output])
    off = farthest(dynamics.eigenvalues(), structure.invariant)  # double zeros scatter by the root of rounding
    assert off.max() <= structure.invariant_errors.max() + dynamics.eigenvalue_errors().max() < 1e-3
    assert set(dynamics.states.names) <= set(lin.states.names)
    assert dynamics.outputs.names == ("F",)


def test_the_inputs_of_the_zero_dynamics_hold_the_output() -> None:
    lin = mass_chain(4, damping=0.3)
    dynamics = lin.zero_dynamics(outputs=["y1"])
    # along z' = A z, with x = T z and u = C z: x' = A x + B u, and y stays
    assert_allclose(lin.A @ dynamics.T + lin.B @ dynamics.C, dynamics.T @ dynamics.A, atol=1e-13)
    assert_allclose(lin.C[1:2] @ dynamics.T, 0.0, atol=1e-14)
    assert any(remark.kind == "zero-dynamics" for remark in dynamics.warnings)


def test_zero_dynamics_of_a_steady_motion_move_along_with_it(bicycle: fl.LinearModel) -> None:
    dynamics = bicycle.zero_dynamics(inputs=["steer_torque"], outputs=["lean"])
    assert dynamics.f0[dynamics.states.index_of("x")] == pytest.approx(4.6)
    values = dynamics.eigenvalues()
    for zero in bicycle.zeros(inputs=["steer_torque"], outputs=["lean"]):
        assert np.abs(values - zero).min() < 1e-7


def test_zero_dynamics_where_inputs_are_not_determined_are_rejected() -> None:
    rates = {"a": "u1 + u2", "b": "-b + u2"}
    lin = fl.linearize(OdeModel("wide", rates, inputs=["u1", "u2"], outputs={"y": "a"}))
    with pytest.raises(fl.UsageError, match="The outputs do not determine the inputs: 1 combination"):
        lin.zero_dynamics()
    assert_allclose(lin.zero_dynamics(inputs=["u1"]).A, [[-1.0]])


def test_zero_dynamics_of_a_moving_output_are_rejected() -> None:
    lin = fl.linearize(OdeModel("moving", {"a": "1 + b", "b": "-b + u"}, inputs=["u"], outputs={"y": "a"}))
    assert lin.zeros().tolist() == []
    with pytest.raises(fl.UsageError, match="cannot be held at their values of the point"):
        lin.zero_dynamics()


def test_zero_dynamics_are_nothing_where_outputs_determine_all_states() -> None:
    dynamics = mass_chain(3).zero_dynamics(outputs=["y2"])
    assert dynamics.A.shape == (0, 0)
    assert dynamics.C.shape == (1, 0)


# -- which channels, which models --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("inputs", "outputs", "missing"), [(0, 2, "inputs"), (2, 0, "outputs")])
def test_models_without_inputs_or_outputs_are_rejected(inputs: int, outputs: int, missing: str) -> None:
    with pytest.raises(fl.UsageError, match=f"no {missing}, which zeros require"):
        sized(3, 0, inputs, outputs).zeros()


def test_unknown_channels_are_named_with_the_nearest_name() -> None:
    with pytest.raises(fl.UnknownNameError, match="Did you mean 'y0'"):
        mass_chain(2).zeros(outputs=["Y0"])
    with pytest.raises(fl.UsageError, match=r"write \['y0'\]"):
        mass_chain(2).zeros(outputs="y0")


def test_entries_that_are_not_finite_are_rejected() -> None:
    lin = mass_chain(2)
    with pytest.raises(fl.UsageError, match="NaN or infinite"):
        replace(lin, A=np.full_like(lin.A, np.nan)).zeros()


def test_a_static_model_has_no_finite_zero() -> None:
    lin = linear_of(np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((2, 0)), np.array([[1.0, 2.0], [2.0, 4.0]]))
    structure = lin.zero_structure()
    assert structure.zeros.shape == (0,)
    assert structure.normal_rank == 1
    assert structure.infinite_orders == (0,)


def test_a_sampled_chain_has_the_zeros_of_sampling() -> None:
    """Of 1/s^2 with a held input: (z + 1) over (z - 1)^2 (Astrom, Hagander, Sternby, 1984)."""
    lin = discretize(fl.linearize(OdeModel("double", {"x": "v", "v": "u"}, inputs=["u"], outputs={"y": "x"})), 0.05)
    assert_allclose(lin.zeros(), [-1.0], rtol=1e-12)
    assert "|z|" in repr(lin.zero_structure())
