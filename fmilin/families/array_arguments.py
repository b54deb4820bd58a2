"""Arrays that users give, of NumPy or of another library, as arrays of finite numbers."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from fmilin.errors import UsageError
from fmilin.signals import FloatArray


@runtime_checkable
class HasDlpack(Protocol):
    """An array of another library, which is read without a copy where it lies in memory."""

    def __dlpack__(self, /, *, stream: None = None) -> Any:
        """Return the array as a capsule."""
        ...

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the kind and the number of the device that holds the array."""
        ...


def read_numbers(values: ArrayLike, name: str) -> FloatArray:
    """Return an array of finite numbers, without a copy where the values are one."""
    try:
        if not isinstance(values, np.ndarray) and isinstance(values, HasDlpack):
            values = np.from_dlpack(values)
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        raise UsageError(f"The values of {name} cannot be read as an array of numbers: {error}") from None
    if not np.isfinite(array).all():
        raise UsageError(f"{np.count_nonzero(~np.isfinite(array))} of the numbers given for {name} are not finite.")
    return array


def read_rows(values: ArrayLike, name: str, columns: int) -> FloatArray:
    """Return an array (k, columns)."""
    array = read_numbers(values, name)
    if array.ndim != 2 or array.shape[1] != columns:
        raise UsageError(f"An array of a wrong shape was given for {name}: {array.shape}, not (points, {columns}).")
    return np.ascontiguousarray(array)


def read_column(values: ArrayLike, name: str, count: int) -> FloatArray:
    """Return one number for each of ``count`` points; a single one is that of all."""
    array = read_numbers(values, name)
    if array.ndim == 0:
        return np.full(count, float(array))
    if array.shape != (count,):
        raise UsageError(f"An array of a wrong shape was given for {name}: {array.shape}, not ({count},).")
    return array
