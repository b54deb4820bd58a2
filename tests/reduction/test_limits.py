"""What just counts as reached, shown, growing, decaying or separable, and what just does not any more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fmilin import LinearModel
from fmilin.errors import UsageError
from fmilin.linear_model.model import Accuracy
from fmilin.reduction import balanced_truncation, keep_frequencies, minimal_realization, modal_form
from tests.reduction.cases import from_matrices, response


def in_a_row(coupling: float) -> LinearModel:
    """The input reaches the second state through the first, by a coupling."""
    return from_matrices(np.array([[-1.0, 0.0], [coupling, -2.0]]), np.eye(2)[:, :1], np.ones((1, 2)))


@pytest.mark.parametrize(("coupling", "order"), [(1.0, 2), (1e-10, 2), (1e-11, 2), (1e-15, 1), (0.0, 1)])
def test_a_coupling_without_errors_is_dropped_as_rounding_only(coupling: float, order: int) -> None:
    assert len(minimal_realization(in_a_row(coupling)).states) == order


@pytest.mark.parametrize(("coupling", "order"), [(1.0, 2), (1e-4, 2), (1e-7, 2), (3e-11, 1), (0.0, 1)])
def test_a_coupling_of_unknown_error_is_dropped_when_it_is_small(coupling: float, order: int) -> None:
    unknown = replace(in_a_row(coupling), accuracy=Accuracy(*[np.nan] * 8))
    assert len(minimal_realization(unknown).states) == order


@pytest.mark.parametrize(("coupling", "order"), [(1.0, 2), (1e-4, 2), (1e-6, 2), (3e-9, 1), (0.0, 1)])
def test_a_coupling_far_beyond_its_error_is_one(coupling: float, order: int) -> None:
    linear = in_a_row(coupling)
    measured = replace(linear, errors=replace(linear.errors, A=np.full((2, 2), 1e-9)))
    assert len(minimal_realization(measured).states) == order


@pytest.mark.parametrize(("part", "name"), [(0.1, "z[1]"), (1e-4, "z[1]"), (3e-8, "z[1]"), (1e-12, "x[1]")])
def test_a_state_with_a_part_in_what_was_dropped_loses_its_name(part: float, name: str) -> None:
    """No output shows ``part * x[1] + x[2]``: what remains is ``x[1] - part * x[2]``."""
    Q = np.array([[1.0, part], [-part, 1.0]]) / np.hypot(1.0, part)  # what is shown, what is not
    linear = from_matrices(Q @ np.diag([-1.0, -2.0]) @ Q.T, np.ones((2, 1)), Q[:, :1].T)
    assert minimal_realization(linear).states.names == (name,)


@pytest.mark.parametrize(("part", "names"), [(1.0, "x"), (1e-3, "x"), (1e-5, "x"), (3e-8, "z"), (0.0, "z")])
def test_states_that_hardly_tell_what_remains_lose_their_names(part: float, names: str) -> None:
    """What is dropped leaves x[1] and x[2] as they are, and they differ by ``part`` in what remains."""
    unseen = np.array([0.0, 0.0, 1.0, 1.0]) / np.sqrt(2)
    unreached = np.array([1.0, -1.0, part, -part])
    Q = np.linalg.qr(np.column_stack((unseen, unreached, np.eye(4))))[0]  # unseen, unreached, and two that remain
    A = np.diag([-1.0, -2.0, -3.0, -4.0])
    B = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    linear = from_matrices(Q @ A @ Q.T, Q @ B, np.eye(4)[2:] @ Q.T)
    small = minimal_realization(linear)
    assert [name[0] for name in small.states.names] == [names] * 2
    w = np.array([0.0, 0.5, 3.0])
    np.testing.assert_allclose(response(small, w), response(linear, w), atol=1e-9)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize(("growth", "said"), [(1.0, True), (1e-3, True), (3e-6, True), (1e-9, False), (0.0, False)])
def test_what_grows_slowly_is_said_to_grow(growth: float, *, said: bool, sampled: bool) -> None:
    A = np.diag([0.5, 1 + growth]) if sampled else np.diag([-1.0, growth])
    linear = replace(from_matrices(A, np.eye(2)[:, :1], np.ones((1, 2))), sample_time=0.1 if sampled else 0.0)
    small = minimal_realization(linear)
    assert len(small.states) == 1
    assert ("grows" in small.warnings[-1].message) == said


@pytest.mark.parametrize(("growth", "order"), [(1e-1, 2), (1e-3, 2), (3e-6, 2), (1e-9, 1), (0.0, 1)])
def test_a_mode_that_grows_slowly_is_in_every_range(growth: float, order: int) -> None:
    linear = from_matrices(np.diag([-1.0, growth]), np.ones((2, 1)), np.ones((1, 2)))
    assert len(keep_frequencies(linear, 0.5, 2.0).states) == order


@pytest.mark.parametrize(("decay", "decays"), [(1e-1, True), (3e-3, True), (3e-5, True), (3e-7, True), (1e-9, False)])
def test_what_decays_slowly_can_be_truncated(decay: float, *, decays: bool) -> None:
    linear = from_matrices(np.diag([-1.0, -decay]), np.ones((2, 1)), np.ones((1, 2)))
    if decays:
        assert balanced_truncation(linear, 0).states.names == ()
    else:
        with pytest.raises(UsageError, match="1 of the 2 eigenvalues do not decay"):
            balanced_truncation(linear, 0)


@pytest.mark.parametrize(("gain", "order"), [(1e-1, 2), (1e-5, 2), (1e-6, 2), (1e-8, 1), (0.0, 1)])
def test_a_truncated_model_has_no_states_that_do_nothing(gain: float, order: int) -> None:
    """Three decoupled states, each with an input and an output of its own: Hankel singular values 1/2, gain^2/4, 0."""
    part = np.diag([1.0, gain, 0.0])
    assert len(balanced_truncation(from_matrices(np.diag([-1.0, -2.0, -3.0]), part, part), 2).states) == order


@pytest.mark.parametrize(("gap", "modes"), [(1.0, 2), (1e-3, 2), (1e-5, 2), (3e-8, 1), (0.0, 1)])
def test_modes_that_are_nearly_the_same_share_a_block(gap: float, modes: int) -> None:
    """The eigenvectors (1, 0) and (1, -gap) have a condition number of 2 / gap."""
    linear = from_matrices(np.array([[-1.0, 1.0], [0.0, -1.0 - gap]]), np.ones((2, 1)), np.eye(2))
    modal = modal_form(linear)
    assert len({name.split("[")[0] for name in modal.states.names}) == modes
    np.testing.assert_allclose(response(modal, np.array([0.0, 1.0])), response(linear, np.array([0.0, 1.0])), rtol=1e-8)
