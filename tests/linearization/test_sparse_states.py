"""Large models in sparse form: the numbers and remarks of the general algorithm, for work that follows the entries."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import fmilin as fl
from benchmarks.fmu_mass_chain import build_chain, chain_eigenvalues
from fmilin.fmi.read import FmuModel
from fmilin.linear_model.no_response import has_no_response
from fmilin.linear_model.sparse import SparseLinearModel, is_sparse
from fmilin.linear_model.sparse_matrices import SparseErrors
from fmilin.linearization import sparse_states
from fmilin.linearization.request import Request
from fmilin.model.sparse_model_derivatives import SparseJacobian
from tests.composition.plants import mass_chain

N = 500
MATRICES = ("A", "B", "C", "D")


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain of 250 masses with springs that harden."""
    return build_chain(N, tmp_path_factory.mktemp("chain"), hardening=0.3, start=0.2)


@pytest.fixture
def in_arrays(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Called, it leaves all models to the general algorithm."""
    return lambda: monkeypatch.setattr(sparse_states, "MIN_STATES", 10**9)


def test_matrices_errors_and_remarks_are_those_of_the_general_algorithm(
    chain: Path, in_arrays: Callable[[], None]
) -> None:
    outputs = ["squares", "x[3]", "y", "der(v[2])"]
    random = np.random.default_rng(5)
    with fl.load(chain) as large, fl.load(chain) as general:
        moving = replace(large.start, states=random.uniform(-0.3, 0.3, N))
        points = [large.start, moving, replace(large.start, states=np.zeros(N))]
        found = [fl.linearize(large, point, outputs=outputs) for point in points]
        in_arrays()
        expected = [fl.linearize(general, point, outputs=outputs) for point in points]
    for linear, other in zip(found, expected, strict=True):
        assert is_sparse(linear)
        assert not is_sparse(other)
        for name in MATRICES:
            assert np.array_equal(getattr(linear, name), getattr(other, name)), name
            assert np.allclose(getattr(linear.errors, name), getattr(other.errors, name), rtol=1e-6, atol=3e-16), name
        assert np.array_equal(linear.T, other.T)
        assert np.array_equal(linear.f0, other.f0)
        kinds = [remark.kind for remark in linear.warnings]
        assert kinds == [remark.kind for remark in other.warnings]
        assert linear.is_equilibrium == other.is_equilibrium
    assert [w.kind for w in found[0].warnings] == ["off-equilibrium"]
    assert not found[2].warnings


def test_eigenvalues_of_springs_that_do_not_harden_are_those_of_the_closed_form(tmp_path: Path) -> None:
    with fl.load(build_chain(N, tmp_path)) as model:
        linear = fl.linearize(model)
    eigenvalues, expected = linear.eigenvalues(), chain_eigenvalues(N)
    assert np.sort(eigenvalues.imag) == pytest.approx(np.sort(expected.imag), abs=1e-9)
    assert np.sort(eigenvalues.real) == pytest.approx(np.sort(expected.real), abs=1e-9)


def test_some_modes_are_those_of_the_closed_form_and_no_array_is_made(tmp_path: Path) -> None:
    with fl.load(build_chain(N, tmp_path)) as model:
        linear = fl.linearize(model)
    expected = chain_eigenvalues(N)
    for near in (0.0, 1j, -0.05 + 1.5j):
        modes = linear.modes(8, near=near)
        nearest = expected[np.argsort(np.abs(expected - near))[:8]]
        assert sum(1 + mode.is_oscillatory for mode in modes) >= 8
        for mode in modes:
            distance = np.abs(np.concatenate((nearest, nearest.conj())) - mode.eigenvalue).min()
            assert distance <= mode.error < 1e-10
        # A mode of a chain is a sine; its velocities are its positions times the eigenvalue.
        shape = modes[0].shape
        assert shape[N // 2 :] == pytest.approx(modes[0].eigenvalue * shape[: N // 2], abs=1e-9)
    assert "A" not in vars(linear)


def test_memory_follows_the_entries_and_no_array_of_all_states_is_made(chain: Path) -> None:
    with fl.load(chain) as model:
        fl.linearize(model)
        tracemalloc.start()
        try:
            linear = fl.linearize(model)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert isinstance(linear, SparseLinearModel)
    entries = linear.sparse.A.nnz + linear.sparse.C.nnz
    assert entries < 4 * N
    assert peak < 1000 * entries  # bytes; one array of N^2 numbers has 2 MB
    assert not {"A", "C", "T"} & vars(linear).keys()
    assert linear.errors.A.shape == (N, N)  # it can be read all the same
    assert linear.A is linear.A


def test_a_warm_point_costs_four_evaluations_and_a_call_for_each_group_of_columns(chain: Path) -> None:
    with fl.load(chain) as model:
        first = fl.linearize(model)
        warm = fl.linearize(model)
    assert warm.method.evaluations == 4
    # No row depends on two columns of a group, but for one, which is asked for alone.
    assert warm.method.products == 4 + N // 2
    assert first.method.evaluations < 60


def test_chosen_outputs_cost_no_more(chain: Path) -> None:
    with fl.load(chain) as model:
        fl.linearize(model, outputs=["y"])
        warm = fl.linearize(model, outputs=["y"])
    assert (warm.method.evaluations, warm.method.products) == (4, 4)


def test_a_row_that_depends_on_all_states_leaves_the_groups_of_the_others(chain: Path) -> None:
    with fl.load(chain) as model:
        derivatives = read(model.with_interface(None, ["squares"]))
    assert len(derivatives.groups) == 4
    assert derivatives.directions <= N // 2 + 4  # and the row is asked for alone
    row = derivatives.J[[N]].toarray()[0]
    assert row[: N // 2] == pytest.approx(2 * model.start.states[: N // 2], rel=1e-15)
    assert not row[N // 2 :].any()


def test_inputs_and_outputs_can_be_chosen_and_the_form_stays(chain: Path) -> None:
    with fl.load(chain) as model:
        linear = fl.linearize(model, inputs=["u"], outputs=["squares", "y"])
        none = fl.linearize(model, inputs=[], outputs=["y"])
    assert is_sparse(linear)
    assert is_sparse(none)
    assert none.B.shape == (N, 0)
    assert linear.C[1, N // 2 - 1] == 1.0
    assert linear.B[N // 2, 0] == 1.0
    assert linear.B.sum() == 1.0


def test_models_are_copied_pickled_and_replaced(chain: Path) -> None:
    with fl.load(chain) as model:
        linear = fl.linearize(model)
    assert is_sparse(linear)
    for other in (copy.copy(linear), pickle.loads(pickle.dumps(linear)), linear.with_fields(warnings=())):
        assert is_sparse(other)
        assert abs(other.sparse.A - linear.sparse.A).max() == 0
        assert np.array_equal(other.errors.B, linear.errors.B)
    dense = replace(linear, warnings=())
    assert not is_sparse(dense)
    assert np.array_equal(dense.A, linear.A)
    assert abs(dense.sparse.A - linear.sparse.A).max() == 0


def test_the_table_of_a_large_model_computes_no_eigenvalues(chain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fl.load(chain) as model:
        linear = fl.linearize(model)
    monkeypatch.setattr(np.linalg, "eig", None)
    monkeypatch.setattr(np.linalg, "eigvals", None)
    assert f"{N} eigenvalues" in repr(linear)
    assert "A" not in vars(linear)


def read(model: fl.Model) -> SparseJacobian:
    """Return the sparse derivatives of an FMU at its start."""
    assert isinstance(model, FmuModel)
    derivatives = model.sparse_derivatives(0.0, model.start.states, model.start.inputs)
    assert derivatives is not None
    return derivatives


@pytest.mark.parametrize("is_first", [True, False])
def test_a_wrong_derivative_is_in_doubt(chain: Path, monkeypatch: pytest.MonkeyPatch, is_first: bool) -> None:
    with fl.load(chain) as model:
        if not is_first:
            fl.linearize(model)
        derivatives = read(model)
        J = derivatives.J.copy()
        J.data[int(np.argmax(np.abs(J.data)))] *= 1 + 1e-4
        wrong = replace(derivatives, J=J)
        right = fl.linearize(model)
        monkeypatch.setattr(sparse_states, "compute_sparse_derivatives", lambda *_: wrong)
        at = sparse_states.compute_with_sparse_states(model, model.start, Request())
        assert at is None
        assert np.array_equal(fl.linearize(model).A, right.A)  # by the general algorithm


def test_a_dependence_that_is_not_declared_is_in_doubt(chain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fl.load(chain) as model:
        derivatives = read(model)
        J = derivatives.J.tolil()
        J[N // 2 + 7, 6] = 0.0  # v[8] depends on x[7]
        undeclared = replace(derivatives, J=sparse.csr_array(J))
        monkeypatch.setattr(sparse_states, "compute_sparse_derivatives", lambda *_: undeclared)
        assert sparse_states.compute_with_sparse_states(model, model.start, Request()) is None


def test_inputs_that_reach_no_output_are_noticed(chain: Path) -> None:
    with fl.load(chain) as model:
        linear = fl.linearize(model, outputs=["y"])
    assert isinstance(linear, SparseLinearModel)
    assert not has_no_response(linear)
    cut = linear.sparse.A.tolil()
    cut[N // 2 + 100, 99] = 0.0  # no spring between two masses
    apart = linear.with_matrices(replace(linear.sparse, A=sparse.csr_array(cut), errors=without_errors(linear)))
    assert has_no_response(apart)


def without_errors(linear: SparseLinearModel) -> SparseErrors:
    """Return errors of zero for all entries of a linear model, one of which in A is left out."""
    errors = linear.sparse.errors
    kept = errors.A.tolil()
    kept[N // 2 + 100, 99] = 0.0
    return replace(errors, A=sparse.csr_array(kept))


@pytest.fixture(scope="module")
def lags() -> fl.Model:
    """A native model of N lags, each pulled by its neighbors; one pulls another as long as a third one is positive."""
    rates = {f"x{i}": f"-x{i}^3 - x{i}" for i in range(N)}
    for i in range(N - 1):
        rates[f"x{i}"] += f" + sin(x{i + 1} - x{i})"
        rates[f"x{i + 1}"] += f" + sin(x{i} - x{i + 1})"
    rates["x0"] += " + u"
    rates["x5"] += " + max(x9, 0)*x200"
    start = {f"x{i}": 0.1 * (i % 7) - 1.0 for i in range(N)}
    return fl.models.OdeModel("lags", rates, inputs=["u"], outputs={"y": f"x{N - 1}"}, start=start)


def test_the_structure_of_a_native_model_is_learned_and_extended(lags: fl.Model, in_arrays: Callable[[], None]) -> None:
    positive = replace(lags.start, states=np.where(np.arange(N) == 9, 1.0, lags.start.states))
    points = [lags.start, lags.start, positive, lags.start]
    linear = [fl.linearize(lags, point) for point in points]
    assert all(is_sparse(each) for each in linear)
    assert linear[1].method.products == 4  # three groups of columns, and one direction through all
    assert linear[0].sparse.A.nnz == 3 * N - 2
    assert linear[2].sparse.A.nnz == linear[3].sparse.A.nnz == 3 * N
    assert linear[2].A[5, 200] == 1.0
    in_arrays()
    for each, point in zip(linear[1:3], points[1:3], strict=True):
        expected = fl.linearize(lags, point)
        assert np.array_equal(each.A, expected.A)
        assert np.array_equal(each.B, expected.B)
        assert np.allclose(each.errors.A, expected.errors.A, rtol=1e-3, atol=1e-15)


def test_connected_systems_are_linearized_in_the_same_form(in_arrays: Callable[[], None]) -> None:
    members = {f"part{i}": mass_chain(25) for i in range(10)}
    wires = [(f"part{i}.last", f"part{i + 1}.left") for i in range(9)]
    wires += [(f"part{i + 1}.first", f"part{i}.right") for i in range(9)]
    system = fl.connect(members, wires)
    linear = fl.linearize(system)
    assert is_sparse(linear)
    assert linear.sparse.A.nnz == N // 2 + 3 * (N // 2) - 2
    in_arrays()
    expected = fl.linearize(system)
    assert np.array_equal(linear.A, expected.A)
    assert [w.kind for w in linear.warnings] == [w.kind for w in expected.warnings]


def small_lags(further: dict[str, float], start: float, **rates: str) -> fl.Model:
    """Return 40 lags that pull at each other, with ``further`` states that start there, and terms added to rates."""
    every = {f"x{i}": f"-x{i}" for i in range(40)}
    for i in range(39):
        every[f"x{i}"] += f" + sin(x{i + 1} - x{i})"
        every[f"x{i + 1}"] += f" + sin(x{i} - x{i + 1})"
    every["x0"] += " + u"
    for name, term in rates.items():
        every[name] = every.get(name, "0") + f" + {term}"
    values = {f"x{i}": start * ((i * 7) % 5 - 2) for i in range(40)} | further
    return fl.models.OdeModel("lags", every, inputs=["u"], outputs={"y": "x5"}, start=values)


@pytest.mark.parametrize(
    ("model", "kinds"),
    [
        (partial(small_lags, {}, 0.0, x3="sin(time)*x4"), ["periodic"]),
        (partial(small_lags, {"p": 0.3, "v": 1.0}, 0.1, p="v", v="-sin(p)*x5"), ["off-equilibrium", "periodic"]),
        (partial(small_lags, {"p": 0.3, "v": 2.0}, 0.0, p="v", v="2 - v"), ["off-equilibrium"]),
        (
            partial(small_lags, {"a": 0.0, "b": 0.0}, 0.1, a="x1 - x2", b="x1 - x2", x7="a + b"),
            ["off-equilibrium", "dependent-states"],
        ),
    ],
    ids=["time", "speed", "steady", "twins"],
)
def test_motions_and_dependent_states_are_described_as_from_arrays(
    model: Callable[[], fl.Model], kinds: list[str], in_arrays: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse_states, "MIN_STATES", 10)
    linear = fl.linearize(model())
    assert is_sparse(linear)
    in_arrays()
    expected = fl.linearize(model())
    assert [w.kind for w in linear.warnings] == [w.kind for w in expected.warnings] == kinds
    assert linear.is_equilibrium == expected.is_equilibrium
    for one, other in zip(linear.warnings, expected.warnings, strict=True):
        # How fast the fastest eigenvalue is decides when A is compared; it is estimated here.
        assert one.message.split(", as seen")[0] == other.message.split(", as seen")[0]
