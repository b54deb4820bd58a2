"""Batches on a GPU: the generated code of a model as CUDA C++, with what its kernel has to be given."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fmilin.codegen.vectorized_code import Reduction
from fmilin.errors import UsageError
from fmilin.linearization.reference import Reference
from fmilin.models.batch_graph import MAX_DEPENDENT_DERIVATIVE, StatePartition, batch_graph
from fmilin.support.dataclass import dataclass
from fmilin.support.files import write_atomically


@dataclass(frozen=True, eq=False)
class DeviceCode:
    """A kernel that linearizes one point a thread, in double precision and without checks of the points.

    Its arguments are ``points`` (count, columns), ``count`` (a 64-bit integer), ``numbers``, ``limit``, then the arrays
    of :meth:`shapes` in their order. As plain C, where no CUDA compiler defines ``__CUDACC__``, the same text computes
    all points in turn.
    """

    cuda_source: str  #: CUDA C++ for NVRTC (CuPy's ``RawModule``) or nvcc; needs no headers
    columns: tuple[str, ...]  #: what a row of points holds: ``time``, states, inputs, parameters
    numbers: NDArray[np.intc]  #: sizes, then which states are kept, and which invariants give the others
    limit: float  #: a point is flagged where a derivative of dependent states is larger
    reduction: Reduction  #: the same as ``numbers``
    input_count: int
    kernel_name: str = "linearize_points"

    def shapes(self, count: int) -> Mapping[str, tuple[int, ...]]:
        """Return the shapes of the arrays that the kernel fills at ``count`` points.

        ``values``: rates of all states, outputs, invariants. ``gradient``: of the invariants by all states. ``T``:
        states by coordinates, not filled where all states are independent. ``rates`` and ``outputs``: derivatives
        along coordinates and inputs: the rows of ``rates`` that belong to the coordinates are [A B], ``outputs`` is
        [C D]. ``flags`` (bytes): 1 where the point has to be computed on the processor.
        """
        r = self.reduction
        width = len(r.independent) + self.input_count
        return {
            "values": (count, r.states + r.outputs + r.invariants),
            "gradient": (count, r.invariants, r.states),
            "T": (count, r.states, len(r.independent)),
            "rates": (count, r.states, width),
            "outputs": (count, r.outputs, width),
            "flags": (count,),
        }

    def save(self, path: str | Path) -> None:
        """Write the source to a file."""
        write_atomically(path, self.cuda_source.encode())


def make_device_code(reference: Reference) -> DeviceCode:
    """Return the kernel of a model along the coordinates of a reference; UsageError without a graph of equations."""
    model, varied = reference.point_model, tuple(reference.varied)
    graph = batch_graph(model, varied)
    if graph is None or not reference.is_usable:
        raise UsageError(
            f"There is no code of '{model.info.name}' for a GPU: that takes a native model of equations with exact "
            "derivatives, and a point that can be linearized together with others."
        )
    partition = StatePartition(graph, model, reference.independent, reference.point)
    columns = ("time", *model.states.names, *model.inputs.names, *graph.names)
    return DeviceCode(
        cuda_source=graph.stacks.write_device_source(),
        columns=columns,
        numbers=partition.reduction.numbers,
        limit=MAX_DEPENDENT_DERIVATIVE,
        reduction=partition.reduction,
        input_count=len(model.inputs),
    )
