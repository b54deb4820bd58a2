"""Verdicts on stability: against matrices made of known Jordan blocks, and eigenvalues of perturbed matrices."""

import numpy as np
import pytest
from scipy.linalg import block_diag, expm
from scipy.optimize import linear_sum_assignment

import fmilin as fl
from fmilin.linear_model.stability import judge_stability
from fmilin.models import OdeModel
from fmilin.signals import FloatArray


def turning(w: float) -> FloatArray:
    """Return a rotation at the rate w."""
    return np.array([[0.0, w], [-w, 0.0]])


def made_of(block: FloatArray, rest: int, random: np.random.Generator) -> FloatArray:
    """Return a matrix similar to a block beside ``rest`` decaying modes."""
    J = block_diag(block, -np.diag(random.uniform(0.1, 4.0, rest)))
    S = random.normal(size=J.shape)
    return np.asarray(np.linalg.solve(S, J @ S))


@pytest.mark.parametrize("seed", range(20))
def test_jordan_blocks_at_the_limit_grow_and_equal_modes_with_their_own_directions_do_not(seed: int) -> None:
    random = np.random.default_rng(seed)
    w, coupling, rest = random.uniform(0.3, 3.0), random.uniform(0.3, 3.0), int(random.integers(0, 3))
    blocks = {
        False: (
            np.array([[0.0, coupling], [0.0, 0.0]]),
            np.block([[turning(w), coupling * np.eye(2)], [np.zeros((2, 2)), turning(w)]]),
            np.array([[1e-6, w], [-w, 1e-6]]),
        ),
        True: (np.zeros((2, 2)), turning(w), np.array([[-1e-6, w], [-w, -1e-6]])),
    }
    for stable, of_kind in blocks.items():
        for block in of_kind:
            A = made_of(block, rest, random)
            assert judge_stability(A).stable is stable
            assert judge_stability(expm(A), sampled=True, structured=False).stable is stable


@pytest.mark.parametrize("seed", range(40))
def test_eigenvalues_are_within_their_errors_of_those_of_the_true_matrix(seed: int) -> None:
    random = np.random.default_rng(seed)
    P = int(random.integers(1, 9))
    A: FloatArray = np.asarray(random.normal(size=(P, P)) * (random.random((P, P)) < 0.6))
    if seed % 2:  # multiple eigenvalues, defective ones among them
        J = np.diag(random.integers(-1, 2, P).astype(float)) + np.diag(random.integers(0, 2, P - 1).astype(float), 1)
        S = random.normal(size=(P, P))
        A = np.asarray(np.linalg.solve(S, J @ S))
    error = 10.0 ** random.integers(-12, -3) * np.abs(A) * random.random(A.shape)
    judged = judge_stability(A + error * random.uniform(-1, 1, A.shape), error)
    gaps = np.abs(np.linalg.eigvals(A)[:, None] - judged.eigenvalues)
    gaps = gaps / (judged.errors + 1e-7 * (seed % 2) + 1e-14)
    assert gaps[linear_sum_assignment(gaps)].max() <= 3.0


def test_a_slow_oscillation_is_no_double_zero_and_a_free_mass_drifts() -> None:
    assert judge_stability(np.array([[0.0, 1.0], [-1e-12, 0.0]])).stable is True
    free = judge_stability(np.array([[0.0, 1.0], [0.0, 0.0]]))
    assert (free.stable, free.unstable, free.defective) == (False, 0, 2)
    assert "grow in proportion to time" in free.text


def test_what_errors_leave_open_cannot_be_told() -> None:
    damped = np.array([[0.0, 1.0], [-1.0, -1e-9]])
    assert judge_stability(damped).stable is True
    open_ = judge_stability(damped, 1e-6)
    assert open_.stable is None
    assert open_.text.startswith("cannot be determined: the eigenvalue 0 +- 1i is accurate to")
    assert judge_stability(np.array([[1.0, 6.0], [0.0, 1.0]]), 1e-3, sampled=True).stable is None


def test_an_error_of_the_stiffness_does_not_make_an_undamped_oscillator_undecided() -> None:
    error = np.array([[0.0, 0.0], [1e-6, 0.0]])
    assert judge_stability(np.array([[0.0, 1.0], [-1.0, 0.0]]), error).text.startswith("neutral")


@pytest.mark.parametrize(
    ("rates", "stable"),
    [
        ({"x": "v", "v": "0"}, False),
        ({"x": "v", "v": "-x"}, True),
        ({"x": "v", "v": "-x - 0.1*v"}, True),
        ({"x": "v", "v": "x"}, False),
        ({"x": "v", "v": "-x", "y": "w", "w": "-y + 0.5*x"}, False),
        ({"x": "v", "v": "-x", "y": "w", "w": "-y"}, True),
        ({"x": "v", "v": "-x + y", "y": "w", "w": "x - y"}, False),
    ],
)
def test_equilibria_and_linear_models_have_one_verdict(rates: dict[str, str], *, stable: bool) -> None:
    model = OdeModel("m", rates)
    report = fl.trim(model).report
    lin = fl.linearize(model)
    assert report.stable is lin.stability().stable is stable
    assert ("unstable" in str(report)) == (not stable)
