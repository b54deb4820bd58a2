"""Nodes of a graph as a function of many points: by CasADi's virtual machine at once, by C where that pays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from fmilin.codegen.compiler import Compiler
from fmilin.signals import FloatArray


@dataclass(frozen=True, slots=True)
class Backend:
    kind: Literal["auto", "c", "vm"] = "auto"
    compiler: Compiler = field(default_factory=lambda: Compiler(flags=("-O1",)))


class Evaluated:
    def __init__(self, point: Any, values: Any, backend: Backend) -> None:
        import casadi as ca

        f = ca.Function("f", [point], [ca.densify(values)])
        self.n = f.n_instructions()
        self.x, self.y = np.zeros(f.nnz_in(0)), np.zeros(f.nnz_out(0))
        self.buffer, self.run = f.buffer()
        if self.x.size:
            self.buffer.set_arg(0, memoryview(self.x))
        if self.y.size:
            self.buffer.set_res(0, memoryview(self.y))

    def __call__(self, points: FloatArray) -> FloatArray:
        found = np.empty((len(points), len(self.y)))
        for x, y in zip(points, found, strict=True):
            self.x[:] = x
            self.run()
            y[:] = self.y
        return found
