"""The saddle-point system, redundant constraints included, against the full matrix and its least-squares solution."""

from __future__ import annotations

import numpy as np
import pytest

from fmilin.adapters import NullSpaceFactors, require_regular
from fmilin.errors import NumericalError
from fmilin.numerics.null_space import MultiplierFactors
from fmilin.signals import FloatArray


def system(redundant: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """M, G and a right-hand side that the constraints do not contradict."""
    rng = np.random.default_rng(5)
    F, G = rng.standard_normal((6, 6)), rng.standard_normal((3, 6))
    G = np.vstack((G, rng.standard_normal((redundant, 3)) @ G))
    return F @ F.T + np.eye(6), G, np.vstack((rng.standard_normal((6, 2)), G @ rng.standard_normal((6, 2))))


def full(M: FloatArray, G: FloatArray) -> FloatArray:
    return np.block([[M, G.T], [G, np.zeros((len(G), len(G)))]])


@pytest.mark.parametrize("redundant", [0, 2])
def test_accelerations_and_the_least_multipliers(redundant: int) -> None:
    M, G, right = system(redundant)
    factors = NullSpaceFactors(M, G)
    w = factors.solve(right)
    assert factors.rank == 3
    assert full(M, G) @ w == pytest.approx(right, abs=1e-10)
    assert w == pytest.approx(np.linalg.lstsq(full(M, G), right, rcond=1e-10)[0], abs=1e-9)
    assert factors.solve(right[:, 0]) == pytest.approx(w[:, 0], abs=1e-12)
    if not redundant:
        assert MultiplierFactors(M, G).solve(right) == pytest.approx(w, abs=1e-10)


def test_many_points_of_which_some_are_singular() -> None:
    """Each point alone is the oracle: full rank, one row twice, no constraint, and a row of zeros."""
    M, G, _ = system(0)
    twice, zero = G.copy(), G.copy()
    twice[2], zero[1] = G[0], 0.0
    Gs, Ms = np.stack((G, twice, 0 * G, zero)), np.stack((M, 2 * M, M + np.eye(6), M))
    right = np.random.default_rng(8).standard_normal((4, 9, 2))
    together = NullSpaceFactors(Ms, Gs)
    alone = [NullSpaceFactors(*one) for one in zip(Ms, Gs, strict=True)]
    assert together.rank.tolist() == [int(one.rank) for one in alone] == [3, 2, 0, 2]
    expected = np.stack([one.solve(r) for one, r in zip(alone, right, strict=True)])
    assert together.solve(right) == pytest.approx(expected, abs=1e-10)
    assert not np.any(together.is_singular)
    assert NullSpaceFactors(M, G).solve(right) == pytest.approx(
        np.stack([alone[0].solve(r) for r in right]), abs=1e-10
    )  # one matrix and many right-hand sides


def test_without_constraints_the_motion_is_free_and_without_freedoms_there_is_none() -> None:
    M, _, _ = system(0)
    assert NullSpaceFactors(M, np.empty((0, 6))).solve(M @ np.ones(6)) == pytest.approx(np.ones(6))
    w = NullSpaceFactors(M, np.eye(6)).solve(np.ones(12))
    assert w == pytest.approx(np.concatenate((np.ones(6), 1 - M.sum(axis=1))))
    assert NullSpaceFactors(np.empty((0, 0)), np.empty((2, 0))).solve(np.ones((2, 1))).tolist() == [[0.0], [0.0]]


def test_least_multipliers_and_least_squares_for_contradicting_rates() -> None:
    """Two equal rows that ask for different accelerations: their mean is what least squares gives."""
    M, G = np.diag([1.0, 2.0]), np.array([[1.0, 0.0], [1.0, 0.0]])
    w = NullSpaceFactors(M, G).solve(np.array([5.0, 4.0, 1.0, 3.0]))
    np.testing.assert_allclose(w, [2.0, 2.0, 1.5, 1.5], atol=1e-15)
    assert MultiplierFactors(M, G).is_singular


def test_scales_do_not_change_what_is_determined() -> None:
    M, G, right = system(0)
    sizes = np.array([1e-3, 1.0, 50.0, 1.0, 7.0, 0.2])
    np.testing.assert_allclose(
        NullSpaceFactors(M, G, scales=sizes).solve(right), NullSpaceFactors(M, G).solve(right), rtol=1e-9
    )


def test_scales_decide_what_is_small() -> None:
    G = np.diag([1.0, 1e-9])
    assert NullSpaceFactors(np.eye(2), G).rank == 1
    assert NullSpaceFactors(np.eye(2), G, scales=np.array([1.0, 1e9])).rank == 2
    assert NullSpaceFactors(np.eye(2), G, threshold=1e-10).rank == 2


def test_what_is_no_number_goes_through_at_its_point_alone() -> None:
    M, G, right = system(0)
    for lost in (np.stack((M, M * np.nan)), np.stack((G, G * np.inf))):
        Ms, Gs = (lost, np.stack((G, G))) if lost.shape[1] == 6 else (np.stack((M, M)), lost)
        with np.errstate(invalid="ignore"):
            factors = NullSpaceFactors(Ms, Gs)
            result = factors.solve(np.stack((right, right)))
            alone = NullSpaceFactors(Ms[1], Gs[1]).solve(right)
        assert np.isnan(result[1]).all()
        assert np.isnan(alone).all()
        assert result[0] == pytest.approx(NullSpaceFactors(M, G).solve(right))
        assert not np.any(factors.is_singular)


def test_a_motion_without_mass_is_refused_by_name_unless_it_is_held() -> None:
    M = np.diag([1.0, 0.0, 1.0])
    names = ("der(vx)", "der(vy)", "der(vz)", "lambda[1]")
    free, held = np.array([[1.0, 0, 0]]), np.array([[0, 1.0, 0]])
    for M_k, G in ((M, free), (np.stack((np.eye(3), M)), np.stack((free, free)))):
        with pytest.raises(NumericalError, match="The equations have no unique solution at this point") as caught:
            require_regular(NullSpaceFactors(M_k, G), "The equations", names)
        assert caught.value.condition_number == np.inf
    for factors in (NullSpaceFactors(M, free), MultiplierFactors(M, free)):
        with pytest.raises(NumericalError, match=r"leaves der\(vy\) undetermined") as caught:
            require_regular(factors, "The equations", names)
        assert caught.value.variable == "der(vy)"
    require_regular(NullSpaceFactors(M, held), "The equations", names)
    twice = MultiplierFactors(np.eye(3), np.vstack((free, free)))
    with pytest.raises(NumericalError, match=r"leaves lambda\[.\], lambda\[.\] undetermined"):
        require_regular(twice, "The equations", (*names, "lambda[2]"))


@pytest.mark.parametrize("least", [0.0, 0.3, 0.99, 1.01, 3.0, 30.0, 1e6])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_the_rank_is_that_of_singular_values_however_near_to_the_threshold(least: float, scale: float) -> None:
    """Orthogonal factors settle clear cases, singular values the others: the count of these is the oracle of all."""
    rng, threshold = np.random.default_rng(3), 1e-8
    U, V = (np.linalg.qr(rng.standard_normal((k, k)))[0] for k in (4, 7))
    near = scale * U * [1.0, 0.7, 0.2, least * threshold] @ V[:4]
    clear = rng.standard_normal((4, 7))
    M = np.eye(7)
    rank = 3 + (least > 1)
    alone = NullSpaceFactors(M, near, threshold=threshold)
    together = NullSpaceFactors(np.stack((M, M)), np.stack((near, clear)), threshold=threshold)
    assert alone.rank == rank
    assert together.rank.tolist() == [rank, 4]
    assert alone.K.shape == (7, 7 - rank)
    assert together.K.shape == (2, 7, 7 - rank)
    for K, N, G, kept in ((alone.K, alone.N, near, rank), (together.K[1], together.N[1], clear, 4)):
        assert np.abs(G @ K).max() < 2 * threshold * np.abs(G).max()
        sigma = np.linalg.svd(G, compute_uv=False)
        np.testing.assert_allclose(
            N, np.linalg.pinv(G, rcond=1.0001 * threshold * (kept < 4)), atol=1e-7 / sigma[kept - 1]
        )
    np.testing.assert_allclose(
        alone.singular_values, np.linalg.svd(near, compute_uv=False), rtol=1e-12, atol=1e-15 * scale
    )


def test_what_forces_cause_obeys_the_constraints() -> None:
    M, G, right = system(1)
    factors = NullSpaceFactors(M, G)
    zero = np.zeros((len(G), 2))
    result = factors.accelerations(right[:6])
    assert result == pytest.approx(factors.solve(np.vstack((right[:6], zero)))[:6], abs=1e-12)
    assert np.abs(G @ result).max() < 1e-13
    free = NullSpaceFactors(M, np.empty((0, 6)))
    assert free.accelerations(M) == pytest.approx(np.eye(6), abs=1e-12)


def test_a_light_freedom_that_nothing_pushes_stays_at_rest() -> None:
    """Orthogonal bases mix it with others: without a second step it took 3e-7 and 5e-4 from forces that cancel."""
    rng = np.random.default_rng(4)
    M, G = np.diag([1e-9, 2.0, 3.0, 1.0, 2.0]), rng.standard_normal((2, 5))
    G[:, 0] = 0.0
    right = np.concatenate((50.0 * rng.standard_normal(5), rng.standard_normal(2)))
    right[0] = 0.0
    for scales, limit in ((None, 1e-12), (np.array([0.1, 1.0, 2.0, 3.0, 4.0]), 1e-6)):
        assert abs(NullSpaceFactors(M, G, scales=scales).solve(right)[0]) < limit
