"""Functions of CasADi that call a model: of an FMU, a system with FMUs, an engine or a Python function.

CasADi asks for values, Jacobians and directional derivatives of forward and reverse mode; each is one evaluation of
:class:`ManifoldFunction` at k points together. Second derivatives are differences of exact first ones, by CasADi.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from fmilin.models.manifold_values import ManifoldDerivatives, ManifoldFunction
from fmilin.signals import FloatArray

Shapes = Iterable[tuple[str, Any]]  # names and casadi.Sparsity
Buffers = Sequence[Any]  # memory views of CasADi's nonzeros; None where an argument is zero or a result unused


@dataclass(frozen=True)
class CallSignature:
    """A function of columns y (P, k), u (nu, k) and maybe one time: ``quantity`` (rows, k)."""

    function: ManifoldFunction
    quantity: str  # a field of ManifoldValues
    result: str  # the name of the output
    rows: int
    count: int = 1  # k points
    takes_time: bool = False

    @property
    def inputs(self) -> list[tuple[str, int, int]]:
        """Names and shapes of the arguments."""
        p, nu = self.function.y0.size, len(self.function.model.inputs)
        return [("y", p, self.count), ("u", nu, self.count), *([("t", 1, 1)] if self.takes_time else [])]

    @property
    def shapes(self) -> list[Any]:
        """Sparsities of the arguments, then of the value."""
        sizes = [argument[1:] for argument in self.inputs]
        return [ca.Sparsity.dense(*size) for size in (*sizes, (self.rows, self.count))]

    def read(self, buffers: Buffers) -> tuple[float, FloatArray, FloatArray]:
        """Return time, y (k, P) and u (k, nu)."""
        arrays = [read_buffer(buffers[i], rows * columns) for i, (_, rows, columns) in enumerate(self.inputs)]
        time = float(arrays[2][0]) if self.takes_time else self.function.point.time
        return time, arrays[0].reshape(self.count, -1), arrays[1].reshape(self.count, -1)

    def evaluate(self, buffers: Buffers) -> FloatArray:
        """Return the quantity, (k, rows)."""
        values: FloatArray = getattr(self.function.evaluate(*self.read(buffers)), self.quantity)
        return values

    def differentiate(self, buffers: Buffers) -> FloatArray:
        """Return its derivatives (k, rows, P + nu + 1)."""
        derivatives: ManifoldDerivatives = self.function.differentiate(*self.read(buffers), along_time=self.takes_time)
        values: FloatArray = getattr(derivatives, self.quantity)
        return values

    def find_jacobian_sparsity(self, i: int) -> Any:
        """Return where the Jacobian along the i-th argument has entries: one block for each point."""
        name, columns, _ = self.inputs[i]
        if name == "t":
            return ca.Sparsity.dense(self.rows * self.count, 1)
        return ca.diagcat(*[ca.Sparsity.dense(self.rows, columns)] * self.count)

    @property
    def columns(self) -> list[slice]:
        """Where the arguments are in the last axis of the derivatives."""
        p, nu = self.function.y0.size, len(self.function.model.inputs)
        return [slice(0, p), slice(p, p + nu), slice(p + nu, p + nu + 1)][: len(self.inputs)]


def read_buffer(buffer: Any, size: int) -> FloatArray:
    """Return the numbers of an argument; zeros where CasADi leaves it out."""
    return np.zeros(size) if buffer is None else np.frombuffer(buffer, dtype=np.float64).copy()


class ModelCallback(ca.Callback):
    """A function of CasADi that calls a model: names and shapes of its arguments and results."""

    def __init__(
        self, name: str, arguments: Sequence[tuple[str, Any]], results: Sequence[tuple[str, Any]], options: Any
    ) -> None:
        ca.Callback.__init__(self)
        self._arguments, self._results = arguments, results
        self.construct(name, options)

    def count_arguments(self) -> int:
        """Return how many there are."""
        return len(self._arguments)

    def count_results(self) -> int:
        """Return how many there are."""
        return len(self._results)

    def name_argument(self, i: int) -> str:
        """Return the name of an argument."""
        return str(self._arguments[i][0])

    def name_result(self, i: int) -> str:
        """Return the name of a result."""
        return str(self._results[i][0])

    def shape_argument(self, i: int) -> Any:
        """Return the sparsity of an argument."""
        return self._arguments[i][1]

    def shape_result(self, i: int) -> Any:
        """Return the sparsity of a result."""
        return self._results[i][1]

    def has_eval_buffer(self) -> bool:
        """Say that numbers are exchanged in memory."""
        return True

    # as CasADi calls them
    get_n_in, get_n_out = count_arguments, count_results
    get_name_in, get_name_out = name_argument, name_result
    get_sparsity_in, get_sparsity_out = shape_argument, shape_result


class ValueCallback(ModelCallback):
    """The quantity itself."""

    def __init__(self, name: str, signature: CallSignature) -> None:
        self.signature = signature
        self._derivatives: list[Any] = []  # CasADi refers to them, and does not own them
        arguments = zip((argument[0] for argument in signature.inputs), signature.shapes, strict=False)
        super().__init__(name, list(arguments), [(signature.result, signature.shapes[-1])], {})

    def eval_buffer(self, arguments: Buffers, results: Buffers) -> int:
        """Write the quantity."""
        if results[0] is not None:
            np.frombuffer(results[0], dtype=np.float64)[:] = self.signature.evaluate(arguments).ravel()
        return 0

    def has_jac_sparsity(self, result: int, i: int) -> bool:
        """Say that the structure of the Jacobian is known."""
        return True

    def get_jac_sparsity(self, result: int, i: int, symmetric: Any) -> Any:
        """Return it for an argument."""
        return self.signature.find_jacobian_sparsity(i)

    def has_jacobian(self) -> bool:
        """Say that there is one."""
        return True

    def get_jacobian(self, name: str, inputs: Sequence[str], outputs: Sequence[str], options: Any) -> Any:
        """Return it as a function."""
        blocks = [self.signature.find_jacobian_sparsity(i) for i in range(len(self.signature.inputs))]
        return self._keep(
            JacobianCallback, name, zip(inputs, self.signature.shapes, strict=True), zip(outputs, blocks, strict=True)
        )

    def has_forward(self, count: int) -> bool:
        """Say that there are directional derivatives."""
        return True

    def get_forward(self, count: int, name: str, inputs: Sequence[str], outputs: Sequence[str], options: Any) -> Any:
        """Return those along ``count`` directions as a function."""
        *arguments, value = self.signature.shapes
        seeds = [ca.repmat(shape, 1, count) for shape in arguments]
        shapes = [*arguments, value, *seeds]
        results = [(outputs[0], ca.repmat(value, 1, count))]
        return self._keep(ForwardCallback, name, zip(inputs, shapes, strict=True), results)

    def has_reverse(self, count: int) -> bool:
        """Say that there are adjoint derivatives."""
        return True

    def get_reverse(self, count: int, name: str, inputs: Sequence[str], outputs: Sequence[str], options: Any) -> Any:
        """Return those of ``count`` weights as a function."""
        *arguments, value = self.signature.shapes
        shapes = [*arguments, value, ca.repmat(value, 1, count)]
        results = zip(outputs, (ca.repmat(shape, 1, count) for shape in arguments), strict=True)
        return self._keep(ReverseCallback, name, zip(inputs, shapes, strict=True), results)

    def _keep(self, kind: type[DerivativeCallback], name: str, arguments: Shapes, results: Shapes) -> Any:
        derivative = kind(name, self.signature, list(arguments), list(results))
        self._derivatives.append(derivative)
        return derivative


class DerivativeCallback(ModelCallback):
    """Derivatives at (y, u[, t]), of which CasADi passes the value, too; then come seeds."""

    def __init__(
        self,
        name: str,
        signature: CallSignature,
        arguments: Sequence[tuple[str, Any]],
        results: Sequence[tuple[str, Any]],
    ) -> None:
        self.signature = signature
        super().__init__(name, arguments, results, {"enable_fd": True})


class JacobianCallback(DerivativeCallback):
    """The Jacobians along y and u, with one block for each point, and along time."""

    def eval_buffer(self, arguments: Buffers, results: Buffers) -> int:
        """Write the blocks, each column by column."""
        J = self.signature.differentiate(arguments)
        for result, columns in zip(results, self.signature.columns, strict=True):
            if result is not None:
                np.frombuffer(result, dtype=np.float64)[:] = J[..., columns].swapaxes(1, 2).ravel()
        return 0


class ForwardCallback(DerivativeCallback):
    """Directional derivatives, Jacobians times vectors."""

    def eval_buffer(self, arguments: Buffers, results: Buffers) -> int:
        """Write J v for each direction."""
        if results[0] is None:
            return 0
        signature, J = self.signature, self.signature.differentiate(arguments)
        sensitivity = np.frombuffer(results[0], dtype=np.float64).reshape(-1, signature.count, signature.rows)
        sensitivity[:] = 0.0
        first = len(signature.inputs) + 1
        for buffer, columns, shape in zip(arguments[first:], signature.columns, signature.inputs, strict=True):
            if buffer is not None:
                seeds = np.frombuffer(buffer, dtype=np.float64).reshape(-1, shape[2], shape[1])
                sensitivity += (J[..., columns] @ seeds[..., None])[..., 0]
        return 0


class ReverseCallback(DerivativeCallback):
    """Adjoint derivatives, transposed Jacobians times vectors."""

    def eval_buffer(self, arguments: Buffers, results: Buffers) -> int:
        """Write J' w for each vector of weights."""
        signature, J = self.signature, self.signature.differentiate(arguments)
        size = self.shape_argument(self.count_arguments() - 1).numel()
        seeds = read_buffer(arguments[-1], size).reshape(-1, signature.count, signature.rows)
        weighted = (seeds[..., None, :] @ J)[..., 0, :]  # (seeds, k, P + nu + 1)
        for result, columns, shape in zip(results, signature.columns, signature.inputs, strict=True):
            if result is not None:
                part = weighted[..., columns]
                part = part.sum(axis=1) if shape[0] == "t" else part
                np.frombuffer(result, dtype=np.float64)[:] = part.ravel()
        return 0
