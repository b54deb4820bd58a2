"""Chains of bodies with an ill-conditioned mass matrix: differences are inaccurate there, exact derivatives are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import fmilin as fl
from fmilin.families.continuation import ContinuationPoint
from fmilin.families.rows import PointOutcome
from fmilin.families.solver import PointSolver
from fmilin.linearization.checks.derivatives import DerivativesAgree
from fmilin.linearization.dependence import find_unmovable
from fmilin.linearization.linearization_context import AssembledPoint
from fmilin.linearization.reference import Reference
from fmilin.manifold import comparison
from fmilin.manifold.manifold_verification import VerifiedFacts
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.noisy_comparison import confirm_within_noise
from fmilin.manifold.point_arrays import PointBatch
from fmilin.model.interface import Tangent, TangentBatch
from fmilin.models.mechanism import Body, Joint, Loop, Mechanism, MechanismDescription, Placement
from fmilin.models.mechanism.local_form import MechanismDerivatives
from fmilin.numerics.differences.differences import Slopes
from fmilin.signals import FloatArray
from tests.general_way import hide_procedure

LINKS = 40
ANGLES: dict[str, list[float]] = {
    "straight": [1.0] + [0.0] * (LINKS - 1),
    "hanging": [-np.pi / 2] + [0.0] * (LINKS - 1),
    "inverted": [np.pi / 2] + [0.0] * (LINKS - 1),
    "curled up": [0.1] * LINKS,
    "bent": np.random.default_rng(0).uniform(-0.5, 0.5, LINKS).tolist(),
}


def make_chain(angles: Sequence[float], ratio: float = 1.0, loops: Sequence[Loop] = ()) -> Mechanism:
    """Return links of length one in a vertical plane; the last one has ``ratio`` times the mass of the first."""
    count = len(angles)
    masses = ratio ** (np.arange(count) / (count - 1))
    bodies = [
        Body(f"link{i}", float(mass), (0.5, 0, 0), (0.01 * mass, 0.1 * mass, 0.1 * mass))
        for i, mass in enumerate(masses)
    ]
    joints = [
        Joint(
            f"pin{i}",
            "revolute",
            f"link{i - 1}" if i else "ground",
            f"link{i}",
            Placement((1.0 if i else 0.0, 0, 0)),
            position=float(angle),
        )
        for i, angle in enumerate(angles)
    ]
    return Mechanism(MechanismDescription("chain", bodies, joints, loops, gravity=(0, -9.81, 0)))


def make_ring(count: int) -> Mechanism:
    """Return a chain that closes: a regular polygon on two pins of the ground, one length apart."""
    turn = 2 * np.pi / (count + 1)
    end = Loop("closing", "revolute", f"link{count - 1}", "ground", Placement((1.0, 0, 0)), Placement((-1.0, 0, 0)))
    return make_chain([turn] * count, loops=[end])


@pytest.mark.parametrize("ratio", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("shape", ANGLES)
def test_a_long_chain_keeps_its_exact_derivatives(shape: str, ratio: float) -> None:
    chain = make_chain(ANGLES[shape], ratio)
    linear = fl.linearize(chain)
    assert linear.method.derivatives == "exact"
    assert "directional-derivative" not in [warning.kind for warning in linear.warnings]
    assert linear.method.evaluations < 100  # differences in each column would take more than 4 for each state
    np.testing.assert_array_equal(linear.A, fl.linearize(make_chain(ANGLES[shape], ratio), derivatives="exact").A)
    assert fl.linearize(chain).method.evaluations < 20  # what was verified is remembered


def test_a_chain_of_a_hundred_links_keeps_its_exact_derivatives() -> None:
    angles = np.random.default_rng(0).uniform(-0.5, 0.5, 100)
    assert fl.linearize(make_chain(angles.tolist())).method.derivatives == "exact"


@pytest.mark.parametrize("angles", [[0.0] * 30, ANGLES["bent"], [0.1] * 60], ids=["horizontal", "bent", "curled up"])
def test_slopes_at_one_point_say_of_combinations_what_samples_say(angles: list[float]) -> None:
    chain = make_chain(angles)
    by_slopes = fl.linearize(chain, derivatives="exact")
    by_samples = fl.linearize(hide_procedure(chain), derivatives="exact")
    assert by_slopes.states.names == by_samples.states.names
    assert [w.message for w in by_slopes.warnings] == [w.message for w in by_samples.warnings]


def test_a_ring_of_links_keeps_its_exact_derivatives() -> None:
    ring = make_ring(24)
    linear = fl.linearize(ring)
    assert linear.method.derivatives == "exact"
    np.testing.assert_array_equal(linear.A, fl.linearize(make_ring(24), derivatives="exact").A)


def capture(monkeypatch: pytest.MonkeyPatch, chain: Mechanism) -> tuple[Neighbourhood, Slopes, FloatArray]:
    """Return what the comparison within noise is given for a chain that needs it."""
    calls: list[tuple[Neighbourhood, Slopes, FloatArray]] = []

    def record(nearby: Neighbourhood, exact: Slopes, floor: FloatArray) -> bool | None:
        calls.append((nearby, exact, floor))
        return confirm_within_noise(nearby, exact, floor)

    monkeypatch.setattr(comparison, "confirm_within_noise", record)
    fl.linearize(chain)
    assert len(calls) == 1
    return calls[0]


@pytest.mark.parametrize(("shape", "ratio"), [("bent", 1.0), ("bent", 1e6), ("curled up", 1e6), ("hanging", 1e6)])
def test_an_error_of_one_slope_is_no_noise(monkeypatch: pytest.MonkeyPatch, shape: str, ratio: float) -> None:
    nearby, exact, floor = capture(monkeypatch, make_chain(ANGLES[shape], ratio))
    assert confirm_within_noise(nearby, exact, floor) is True
    sizes = np.abs(exact.J).max(axis=1)
    terms = np.maximum(sizes, sizes.max())
    random = np.random.default_rng(7)
    for row in (LINKS, LINKS + LINKS // 2, 2 * LINKS - 1):
        column = int(random.integers(2 * LINKS))
        J = exact.J.copy()
        J[row, column] += 1e-3 * terms[row]
        assert confirm_within_noise(nearby, replace(exact, J=J), floor) is None, (row, column)


def test_a_wrong_slope_of_an_ill_conditioned_chain_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    true, wrong = make_chain(ANGLES["bent"][:8], 1e6), make_chain(ANGLES["bent"][:8], 1e6)
    along = MechanismDerivatives.along

    def lie(slopes: MechanismDerivatives, independent: Sequence[int]) -> Tangent:
        tangent = along(slopes, independent)
        derivatives = tangent.derivatives.copy()
        derivatives[-1, 0] += 0.01 * np.abs(derivatives).max()
        return replace(tangent, derivatives=derivatives)

    expected = fl.linearize(true)
    monkeypatch.setattr(MechanismDerivatives, "along", lie)
    linear = fl.linearize(wrong)
    assert "directional-derivative" in [warning.kind for warning in linear.warnings]
    np.testing.assert_allclose(linear.A, expected.A, atol=1e-4 * np.abs(expected.A).max())


def count_points_alone(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by the number of each point of a sweep that is linearized alone."""
    numbers: list[int] = []
    solve_alone = PointSolver._solve_alone

    def record(
        solver: PointSolver, number: int, predecessor: ContinuationPoint | None
    ) -> tuple[PointOutcome, ContinuationPoint | None]:
        numbers.append(number)
        return solve_alone(solver, number, predecessor)

    monkeypatch.setattr(PointSolver, "_solve_alone", record)
    return numbers


def doubt_procedures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no procedure count as verified once for all points, as where noise hides an error of some row."""
    learn = DerivativesAgree.learn

    def forget(check: DerivativesAgree, at: AssembledPoint, facts: VerifiedFacts) -> VerifiedFacts:
        return replace(learn(check, at, facts), procedure=False)

    monkeypatch.setattr(DerivativesAgree, "learn", forget)


def sweep_first_angle(shape: str, ratio: float) -> fl.LinearFamily:
    """Return linear models over half a radian of the first pin's angle."""
    first = ANGLES[shape][0]
    return fl.sweep(make_chain(ANGLES[shape], ratio), {"pin0.q": np.linspace(first, first + 0.5, 20)})


def assert_equal_to_points_alone(family: fl.LinearFamily, shape: str, ratio: float) -> None:
    """Check some members against linear models of chains of their own, within the errors that those state."""
    assert family.ok.all()
    for k in (3, 19):
        angles = [family.axes["pin0.q"][k], *ANGLES[shape][1:]]
        alone = fl.linearize(make_chain(angles, ratio))
        allowed = 1e-9 * np.abs(alone.A).max() + 4 * alone.errors.A.max(axis=1, keepdims=True)
        assert (np.abs(family[k].A - alone.A) <= allowed).all()


@pytest.mark.parametrize(("shape", "ratio"), [("straight", 1e6), ("bent", 1.0)])
@pytest.mark.parametrize("is_verified", [True, False], ids=["verified", "compared"])
def test_sweeps_of_a_long_chain_are_batches(
    monkeypatch: pytest.MonkeyPatch, shape: str, ratio: float, is_verified: bool
) -> None:
    if not is_verified:
        doubt_procedures(monkeypatch)
    alone = count_points_alone(monkeypatch)
    family = sweep_first_angle(shape, ratio)
    assert len(alone) == 1  # where the run starts
    assert_equal_to_points_alone(family, shape, ratio)


def test_a_wrong_derivative_in_a_batch_is_no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    doubt_procedures(monkeypatch)
    differentiate = Reference.differentiate

    def lie(reference: Reference, points: PointBatch) -> TangentBatch:
        tangents = differentiate(reference, points)
        derivatives = tangents.derivatives.copy()
        derivatives[:, -1, 0] += 1e-3 * np.abs(derivatives).max(axis=(1, 2))
        return replace(tangents, derivatives=derivatives)

    monkeypatch.setattr(Reference, "differentiate", lie)
    alone = count_points_alone(monkeypatch)
    angles = ANGLES["bent"][:8]
    family = fl.sweep(make_chain(angles, 1e6), {"pin0.q": [angles[0] + 0.1 * k for k in range(5)]})
    assert len(alone) == 5
    monkeypatch.undo()
    expected = fl.linearize(make_chain([angles[0] + 0.4, *angles[1:]], 1e6))
    np.testing.assert_allclose(family[4].A, expected.A, atol=1e-6 * np.abs(expected.A).max())


@pytest.mark.parametrize("rank", [40, 37, 0])
def test_rows_with_one_entry_are_eliminated_without_another_result(rank: int) -> None:
    random = np.random.default_rng(11)
    n = 40
    stiffness = random.normal(size=(n, rank)) @ random.normal(size=(rank, n))
    zero, one = np.zeros((n, n)), np.eye(n)
    A = np.block([[zero, one], [stiffness, random.normal(size=(n, n))]])
    nothing, none = np.zeros_like(A), np.zeros((2 * n, 0))
    combinations = find_unmovable((A, none), (nothing, none), np.zeros(2 * n), np.ones(2 * n), np.ones(0))
    assert combinations.shape[1] == n - rank
    np.testing.assert_allclose(combinations.T @ A, 0.0, atol=1e-10)
    assert np.linalg.matrix_rank(combinations) == n - rank
