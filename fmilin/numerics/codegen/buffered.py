"""CasADi functions called at the price of their arithmetic.

``f(x)`` converts arguments and results and costs a tenth of a millisecond; the same function on arrays that were
handed over once costs what its operations cost (Andersson et al., Mathematical Programming Computation 11, 2019;
the user guide's "FunctionBuffer").
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from fmilin.ground.signals import FloatArray

__all__ = ["Buffered"]


class Buffered:
    """A ``casadi.Function`` of one or more arguments whose numbers lie in arrays made once.

    Fill :attr:`arguments`, call :attr:`run`, read :attr:`results`: each holds the nonzeros of one argument or
    result, column by column. The next run overwrites them: copy what shall last.

    >>> import casadi as ca
    >>> x = ca.SX.sym("x", 2)
    >>> f = Buffered(ca.Function("f", [x], [ca.vertcat(x[0] * x[1], x[0] - x[1])]))
    >>> f.arguments[0][:] = 3.0, 2.0
    >>> f.run()
    >>> f.results[0]
    array([6., 1.])
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._buffer, self.run = function.buffer()
        self.arguments: tuple[FloatArray, ...] = tuple(np.zeros(function.nnz_in(i)) for i in range(function.n_in()))
        self.results: tuple[FloatArray, ...] = tuple(np.zeros(function.nnz_out(i)) for i in range(function.n_out()))
        for i, array in enumerate(self.arguments):
            if array.size:  # an empty array has no address to hand over
                self._buffer.set_arg(i, array.data)
        for i, array in enumerate(self.results):
            if array.size:
                self._buffer.set_res(i, array.data)
        self._mapped = lru_cache(maxsize=4)(lambda points: Buffered(function.map(points)))

    def at_points(self, arguments: FloatArray) -> FloatArray:
        """Return the result of a function of one argument at many points.

        Shapes: arguments (points, nonzeros of the argument). Returns (points, nonzeros of the result).
        """
        points = len(arguments)
        if points == 0:
            return np.zeros((0, self.results[0].size))
        mapped = self._mapped(points)
        mapped.arguments[0][:] = arguments.ravel()
        mapped.run()
        found: FloatArray = mapped.results[0].reshape(points, -1).copy()
        return found
