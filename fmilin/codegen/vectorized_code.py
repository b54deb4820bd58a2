"""Compiled code of quantities and their derivatives at many points, called from NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.signals import FloatArray

ALIGNMENT_BYTES = 64  # vectors are aligned to multiples of so many bytes


@dataclass(frozen=True)
class Reduction:
    """Which states are kept, and which of the invariants among the quantities determine the others, by number.

    The quantities are the rates of all states, outputs, and invariants.
    """

    states: int  # how many there are
    outputs: int
    invariants: int
    independent: tuple[int, ...]
    dependent: tuple[int, ...]
    rows: tuple[int, ...]  # as many invariants as there are others

    @cached_property
    def numbers(self) -> NDArray[np.intc]:
        """The same as compiled code takes it."""
        sizes = self.states, self.outputs, self.invariants, len(self.independent)
        return np.array([*sizes, *self.independent, *self.dependent, *self.rows], dtype=np.intc)

    @cached_property
    def address(self) -> int:
        """The address of ``numbers``."""
        return self.numbers.ctypes.data


class ReducedDerivatives(NamedTuple):
    """Quantities (k, nz) and derivatives along the kept states and the inputs at k points."""

    z: FloatArray
    gradient: FloatArray  # (k, invariants, N), of the invariants along all states
    T: FloatArray  # (k, N, P); not to be written to where all states are kept
    rates: FloatArray  # (k, N, P + nu)
    outputs: FloatArray  # (k, ny, P + nu)
    # (k,), where unknowns are not good, or dz/dy is beyond the limit; None where that is nowhere
    doubtful: NDArray[np.bool_] | None


class _WorkArea(NamedTuple):
    """Memory of one call of :meth:`VectorizedCode.along`, with its addresses."""

    work: int
    slopes: int
    elimination: int
    owners: tuple[object, ...]  # kept alive as long as the addresses are used


class VectorizedCode:
    """Quantities with their derivatives at many points: ``template`` (nz, N + nu) holds the constant ones."""

    def __init__(
        self, code: ctypes.CDLL, arguments: int, template: FloatArray, *, solves_invariants: bool = False
    ) -> None:
        self._template, self._points = template, arguments
        self.solves_invariants = solves_invariants  # whether :meth:`reach` is available
        self._size = template.shape
        code.run.argtypes, code.run.restype = [ctypes.c_void_p] * 4 + [ctypes.c_long, ctypes.c_void_p], None
        code.work_size.argtypes, code.work_size.restype = [], ctypes.c_size_t
        code.width.argtypes, code.width.restype = [], ctypes.c_int
        pointer = ctypes.c_void_p
        code.run_along.argtypes = [pointer, ctypes.c_long, pointer, ctypes.c_double, *[pointer] * 9]
        code.run_along.restype = ctypes.c_long
        iteration = ctypes.c_double, ctypes.c_int
        code.run_reach.argtypes = [pointer, ctypes.c_long, pointer, pointer, *iteration, *[pointer] * 3]
        code.run_reach.restype = ctypes.c_long
        self._run_reach = code.run_reach
        self._run, self._run_along, self._width = code.run, code.run_along, int(code.width())
        self._work_size = int(code.work_size()) + ALIGNMENT_BYTES
        self._free: list[_WorkArea] = []  # work areas that no call uses

    def __call__(self, s: FloatArray, threads: int = 1) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """Return quantities (k, nz), derivatives (k, nz, N + nu) and where they hold (k,), for s = (t, x, u, p)."""
        k, (nz, columns) = len(s), self._size
        z, J, good = np.empty((k, nz)), np.empty((k, nz, columns)), np.empty(k, dtype=np.uint8)
        parts = [slice(k * i // threads, k * (i + 1) // threads) for i in range(threads)]
        if threads == 1:
            self._fill(s, z, J, good)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(lambda part: self._fill(s[part], z[part], J[part], good[part]), parts))
        return z, J, good.astype(bool)

    def along(self, s: FloatArray, reduction: Reduction, limit: float, threads: int = 1) -> ReducedDerivatives:
        """Return quantities and their derivatives along kept states for rows s = (t, x, u, p).

        Points are doubtful where a derivative of the other states is larger than ``limit``.
        """
        k, n, p = len(s), reduction.states, len(reduction.independent)
        width = p + self._size[1] - n
        z, gradient = np.empty((k, self._size[0])), np.empty((k, reduction.invariants, n))
        rates, outputs = np.empty((k, n, width)), np.empty((k, reduction.outputs, width))
        flags = np.empty(k, dtype=np.uint8)
        T = np.empty((k, n, p)) if reduction.dependent else np.broadcast_to(_unit(n, reduction.independent), (k, n, p))
        arrays = s, z, gradient, T, rates, outputs, flags
        if threads == 1:
            count = self._fill_reduced(reduction, limit, *arrays)
        else:
            parts = [slice(k * i // threads, k * (i + 1) // threads) for i in range(threads)]
            with ThreadPoolExecutor(threads) as pool:
                fill = partial(self._fill_reduced, reduction, limit)
                count = sum(pool.map(lambda part: fill(*(array[part] for array in arrays)), parts))
        return ReducedDerivatives(z, gradient, T, rates, outputs, flags.astype(bool) if count else None)

    def _fill_reduced(self, reduction: Reduction, limit: float, *arrays: Any) -> int:
        """Fill z, gradient, T, rates, outputs and flags for s; return how many points are doubtful."""
        s, z, gradient, T, rates, outputs, flags = map(_find_address, arrays)
        area = self._take_work_area(reduction.states)
        count, numbers = len(arrays[0]), reduction.address
        rooms = area.slopes, area.elimination
        filled = z, gradient, T, rates, outputs, flags
        doubtful: int = self._run_along(s, count, numbers, limit, *rooms, *filled, area.work)
        self._free.append(area)
        return doubtful

    def reach(
        self, s: FloatArray, reduction: Reduction, sizes: FloatArray, limit: float, iterations: int
    ) -> NDArray[np.bool_]:
        """Solve the invariants for the states that are not kept, in rows s = (t, x, u, p), by Newton's method.

        Returns where the last step is at most ``limit`` in ``sizes`` of the states, both contiguous, (k, N).
        """
        failed = np.empty(len(s), dtype=np.uint8)
        area = self._take_work_area(reduction.states)
        addresses = reduction.address, _find_address(sizes)
        memory = area.elimination, _find_address(failed), area.work
        failures = self._run_reach(_find_address(s), len(s), *addresses, limit, iterations, *memory)
        self._free.append(area)
        return failed == 0 if failures else np.ones(len(s), dtype=bool)

    def _take_work_area(self, states: int) -> _WorkArea:
        """Return a work area that no other thread uses; it is given back to ``_free``."""
        try:
            return self._free.pop()
        except IndexError:  # all are in use
            return self._make_work_area(states)

    def _make_work_area(self, states: int) -> _WorkArea:
        work = np.empty(self._work_size, dtype=np.uint8)
        slopes, elimination = np.tile(self._template, (self._width, 1, 1)), np.empty(states * (states + 1) + 1)
        aligned = work.ctypes.data + -work.ctypes.data % ALIGNMENT_BYTES
        return _WorkArea(aligned, slopes.ctypes.data, elimination.ctypes.data, (work, slopes, elimination))

    def values(self, s: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the quantities (k, nz) alone, the same to the last bit, and where they are good (k,)."""
        z, good = np.empty((len(s), self._size[0])), np.empty(len(s), dtype=np.uint8)
        self._fill(s, z, None, good)
        return z, good.astype(bool)

    def _fill(self, s: FloatArray, z: FloatArray, J: FloatArray | None, good: NDArray[np.uint8]) -> None:
        """Fill quantities, derivatives unless they are None, and where both are good."""
        if J is not None:
            J[...] = self._template
        work = np.empty(self._work_size, dtype=np.uint8)
        aligned = work.ctypes.data + -work.ctypes.data % ALIGNMENT_BYTES
        slopes = None if J is None else J.ctypes.data
        self._run(s.ctypes.data, z.ctypes.data, slopes, good.ctypes.data, len(good), aligned)

    def at_one_point(self) -> tuple[FloatArray, FloatArray, FloatArray, Callable[[], bool]]:
        """Return s (ns,), z (nz,), J (nz, N + nu), and what fills z and J for s and says whether they are good."""
        ns, (nz, columns) = self._points, self._size
        s, z, good = np.zeros(ns), np.empty(nz), np.zeros(1, dtype=np.uint8)
        J, room = np.array(self._template), np.empty(self._work_size, dtype=np.uint8)
        run = partial(
            self._run,
            *(array.ctypes.data for array in (s, z, J, good)),
            1,
            room.ctypes.data + -room.ctypes.data % ALIGNMENT_BYTES,
        )
        buffers = (good, room)  # as long as what runs in them

        def fill() -> bool:
            run()
            return bool(buffers[0][0])

        return s, z, J.reshape(nz, columns), fill


def _find_address(array: NDArray[Any]) -> int:
    """Return where an array lies in memory, in half the time of ``array.ctypes.data``."""
    address: int = array.__array_interface__["data"][0]
    return address


@cache
def _unit(n: int, independent: tuple[int, ...]) -> FloatArray:
    """Return the derivatives of n states along those that are kept, all of them."""
    unit = np.zeros((n, len(independent)))
    unit[list(independent), range(len(independent))] = 1.0
    return unit
