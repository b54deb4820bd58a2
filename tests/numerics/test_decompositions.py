"""Decompositions without the import of ``scipy.linalg``: the same numbers as its functions, and the same patterns."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import linalg
from scipy.sparse import csgraph

from fmilin.numerics import decompositions
from fmilin.numerics.components import MAX_SQUARED, find_connected_components, strong_components


def matrices(*shapes: tuple[int, int]) -> list[np.ndarray]:
    """Return matrices with rows of different sizes, the last of them without full rank."""
    random = np.random.default_rng(3)
    some = [random.standard_normal(shape) * 10.0 ** random.integers(-6, 6, (shape[0], 1)) for shape in shapes]
    return [*some, np.outer(np.arange(1.0, 5.0), np.arange(1.0, 5.0))]


@pytest.mark.parametrize("matrix", matrices((3, 5), (5, 3), (40, 7), (0, 4), (4, 0)))
def test_singular_values_and_subspaces_are_those_of_scipy(matrix: np.ndarray) -> None:
    for full in (True, False):
        ours = decompositions.decompose_by_singular_values(matrix, full_matrices=full)
        for mine, reference in zip(ours, linalg.svd(matrix, full_matrices=full), strict=True):
            np.testing.assert_array_equal(mine, reference)
    np.testing.assert_array_equal(decompositions.null_space(matrix), linalg.null_space(matrix))
    np.testing.assert_array_equal(decompositions.column_space(matrix, 1e-3), linalg.orth(matrix, 1e-3))


@pytest.mark.parametrize("matrix", matrices((1, 1), (2, 2), (7, 7), (30, 30)))
def test_eigenvectors_schur_forms_and_scales_are_those_of_scipy(matrix: np.ndarray) -> None:
    for mine, reference in zip(decompositions.eigenvectors(matrix), linalg.eig(matrix, left=True), strict=True):
        np.testing.assert_array_equal(mine, reference)
    turned = matrix.astype(np.complex128) * np.exp(0.3j)
    for mine, reference in zip(decompositions.schur_complex(turned), linalg.schur(turned, "complex"), strict=True):
        np.testing.assert_array_equal(mine, reference)
    scales = linalg.matrix_balance(matrix, permute=False, separate=True)[1][0]
    np.testing.assert_array_equal(decompositions.compute_balancing_scales(matrix), scales)


def test_eigenvectors_of_a_pencil_are_those_of_scipy_also_at_infinity() -> None:
    A, B = np.random.default_rng(5).standard_normal((2, 6, 6))
    B[-2:] = 0.0
    values, left, right = decompositions.compute_generalized_eigenvectors(A, B)
    expected, *vectors = linalg.eig(A, B, left=True)
    np.testing.assert_array_equal(np.isfinite(values), np.isfinite(expected))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(values[finite], expected[finite])
    for mine, reference in zip((left, right), vectors, strict=True):
        np.testing.assert_allclose(mine / np.linalg.norm(mine, axis=0), reference, atol=1e-14)


def test_entries_that_are_not_finite_are_rejected() -> None:
    wrong = np.array([[1.0, np.nan], [0.0, 1.0]])
    for decompose in (decompositions.null_space, decompositions.eigenvectors, decompositions.compute_balancing_scales):
        with pytest.raises(ValueError, match="not finite"):
            decompose(wrong)


@pytest.mark.parametrize("n", [0, 1, 2, 9, 60, MAX_SQUARED + 1])
@pytest.mark.parametrize("edges", [0.5, 1.0, 3.0])
def test_components_are_those_of_scipy(n: int, edges: float) -> None:
    pattern = np.random.default_rng(n).random((n, n)) < edges / max(n, 1)
    for components, options in (
        (find_connected_components(pattern), {"directed": False}),
        (strong_components(pattern), {"directed": True, "connection": "strong"}),
    ):
        labels = csgraph.connected_components(pattern, **options)[1] if n else np.empty(0)
        expected = {frozenset(np.flatnonzero(labels == label).tolist()) for label in labels}
        assert {frozenset(component.tolist()) for component in components} == expected
        assert sorted(components, key=lambda component: component[0]) == list(components)


def test_lapack_is_loaded_without_scipy_which_uses_it_when_it_is_imported_later() -> None:
    code = (
        "import sys; from fmilin.numerics.lapack import lapack; print('scipy.linalg' in sys.modules)\n"
        "import scipy.linalg.lapack as full; print(full.dgesdd is lapack.dgesdd)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_lapack_is_imported_as_documented_where_the_extension_has_another_name() -> None:
    code = (
        "from importlib import util\n"
        "util.find_spec = lambda name, find=util.find_spec: None if name == 'scipy' else find(name)\n"
        "from fmilin.numerics.lapack import lapack\n"
        "print(lapack.__name__, lapack.dgesdd([[3.0]], compute_uv=0)[1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["scipy.linalg.lapack", "[3.]"]
