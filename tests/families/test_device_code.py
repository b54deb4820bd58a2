"""The kernel for GPUs as plain C: the numbers of the processor's code, to the bit where its vectors have width 1."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.codegen.compiler import Compiler, load_library
from fmilin.errors import UsageError
from fmilin.families.device_code import DeviceCode
from fmilin.models.batch_graph import batch_graph
from fmilin.signals import FloatArray
from fmilin.systems import four_bar
from tests.families.plants import oscillator

STRICT = Compiler(flags=("-ffp-contract=off",))


def run_as_c(code: DeviceCode, points: FloatArray) -> dict[str, FloatArray]:
    """Return what the kernel computes as plain C."""
    library = load_library({"kernel.c": code.cuda_source}, "kernel.c", STRICT, ctypes.CDLL)
    kernel = library.linearize_points
    kernel.argtypes = [ctypes.c_void_p, ctypes.c_longlong, ctypes.c_void_p, ctypes.c_double, *[ctypes.c_void_p] * 6]
    kernel.restype = None
    shapes = code.shapes(len(points))
    filled = {name: np.zeros(shape, np.uint8 if name == "flags" else np.float64) for name, shape in shapes.items()}
    addresses = [array.ctypes.data for array in filled.values()]
    kernel(points.ctypes.data, len(points), code.numbers.ctypes.data, code.limit, *addresses)
    return filled


@pytest.fixture
def _scalar_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor's code computes one point after the other, without fused operations."""
    monkeypatch.setattr("fmilin.codegen.vectorized.vector_flags", lambda: (1, ("-ffp-contract=off",)))


@pytest.mark.usefixtures("_scalar_code")
def test_a_closed_chain_has_the_numbers_of_the_processor_to_the_bit() -> None:
    model = four_bar()
    linearize = fl.batch(model)
    family = linearize.at({linearize.coordinates.names[0]: np.linspace(0.5, 2.5, 40)})
    code = linearize.make_device_code()
    graph = batch_graph(model, ())
    assert graph is not None
    assert graph.stacks.compile()
    p = graph.parameters(40, {})
    points = np.ascontiguousarray(np.hstack([family.array("time")[:, None], family.x0, family.u0, p]))
    assert len(code.columns) == points.shape[1]
    kernel = run_as_c(code, points)
    expected = graph.stacks.along((0.0, family.x0, family.u0, p), code.reduction, code.limit)
    assert expected is not None
    assert not kernel["flags"].any()
    for name, array in (("values", expected.z), ("rates", expected.rates), ("outputs", expected.outputs)):
        np.testing.assert_array_equal(kernel[name], array)
    np.testing.assert_array_equal(kernel["T"], expected.T)
    independent = list(code.reduction.independent)
    AB = np.concatenate((family.A, family.B), axis=2)
    np.testing.assert_allclose(kernel["rates"][:, independent], AB, rtol=1e-12, atol=1e-13 * np.abs(AB).max())


def test_parameters_are_columns_of_the_points() -> None:
    code = fl.batch(oscillator(), vary=["k"]).make_device_code()
    assert code.columns == ("time", "q", "v", "F", "k", "d")
    points = np.array([[0.0, 0.1, 0.0, 0.0, k, 0.2] for k in (1.0, 4.0, 9.0)])
    kernel = run_as_c(code, points)
    np.testing.assert_allclose(kernel["rates"][:, 1, :2], [[-1.0, -0.2], [-4.0, -0.2], [-9.0, -0.2]], rtol=1e-15)
    np.testing.assert_array_equal(kernel["outputs"], np.tile([1.0, 0.0, 0.0], (3, 1, 1)))


def test_models_without_equations_have_no_code_for_a_gpu(zoo: Callable[[str], Path]) -> None:
    with fl.load(zoo("pendulum")) as model, pytest.raises(UsageError, match="for a GPU: that takes a native model"):
        fl.batch(model).make_device_code()
