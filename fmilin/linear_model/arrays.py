"""Linear models of one plant at many points: one array for each quantity, with a leading axis over the points.

Errors of models that were linearized together are kept as factors: the error of an entry is that of its row over the
size of its column, and entries that are zero by the structure of the model have none. They take a tenth of the memory
of the matrices, which are formed when they are read.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import EllipsisType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import EPS

Mask = NDArray[np.bool_]
Points = slice | NDArray[np.intp] | NDArray[np.bool_] | EllipsisType

MATRICES = ("A", "B", "C", "D", "T")
"""Matrices with errors."""

ALONG_INPUTS = ("B", "D")
"""Those among them that have a column for each input; the others have one for each coordinate."""

OF_INPUTS = ("B", "D", "T_u", "u0", "error_B", "error_D", "input_size")
"""Quantities with the inputs as their last axis."""

MAY_BE_SHARED = ("C", "D", "T", "T_u")
"""Quantities that are often the same at all points, and stored once then."""

NOT_WRITTEN_CODE = -2  # there is no linear model
ENTRY_ERRORS_CODE = -1  # errors are stored as matrices
NUMBERS_PER_BLOCK = 2**20  # 8 MiB


@dataclass(frozen=True, eq=False)
class LinearArrays:
    """Linear models at ``count`` points.

    ``stored`` has arrays of shape (count, ...) by name: the quantities of a linear model and their errors
    ``"error_A"`` to ``"error_T"`` or, in factors, ``"row_error_A"`` to ``"row_error_T"``, ``"coordinate_size"`` and
    ``"input_size"``. ``pattern`` is the number of the structural zeros of each point among ``zeros``, or
    :data:`ENTRY_ERRORS_CODE` where errors are matrices, or :data:`NOT_WRITTEN_CODE`.
    """

    count: int
    stored: dict[str, FloatArray]
    pattern: NDArray[np.intp]  # shape (count,)
    zeros: list[Mapping[str, Mask]] = field(default_factory=list)  # by name of the matrix, of its shape
    file: mmap.mmap | None = None  # where the arrays lie, if not in memory

    @classmethod
    def empty(cls, count: int) -> Self:
        """Return arrays of so many points, into which linear models are put."""
        return cls(count, {}, np.full(count, NOT_WRITTEN_CODE, dtype=np.intp))

    @classmethod
    def of_batch(cls, arrays: Mapping[str, FloatArray], zeros: Mapping[str, Mask]) -> Self:
        """Return linear models with errors in factors and one structure."""
        count = len(arrays["time"])
        return cls(count, dict(arrays), np.zeros(count, dtype=np.intp), [zeros])

    @classmethod
    def of_points(cls, arrays: Mapping[str, FloatArray]) -> Self:
        """Return linear models with the errors of their entries as matrices."""
        count = len(arrays["time"])
        return cls(count, dict(arrays), np.full(count, ENTRY_ERRORS_CODE, dtype=np.intp))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, points: Points) -> LinearArrays:
        pattern = self.pattern[points]
        stored = {name: array[points] for name, array in self.stored.items()}
        return replace(self, count=len(pattern), stored=stored, pattern=pattern)

    def __getstate__(self) -> dict[str, Any]:
        stored = {name: _store_once(name, array) for name, array in self.stored.items()}
        return {**vars(self), "stored": stored, "file": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        count = state["count"]
        stored = {
            name: np.broadcast_to(array, (count, *array.shape[1:])) if len(array) == 1 < count else array
            for name, array in state["stored"].items()
        }
        vars(self).update(state, stored=stored)

    # -- reading ---------------------------------------------------------------------------------------

    def read(self, name: str) -> FloatArray:
        """Return a quantity of all points, shape (count, ...); not to be written to."""
        matrix = name.removeprefix("error_")
        if matrix != name and matrix in MATRICES and self.zeros:
            return self._form_errors(matrix)
        if name == "accuracy" and self.zeros:
            return self._compute_accuracy()
        return self.stored[name]

    def read_point(self, number: int) -> dict[str, FloatArray]:
        """Return all quantities of one point by name, with its errors as matrices."""
        one = self[number : number + 1]
        values = {name: np.array(array[0]) for name, array in one.stored.items()}
        if one.pattern[0] >= 0:
            errors = {name: one._form_errors(name) for name in MATRICES}
            values["accuracy"] = one.summarize_errors(errors)[0]
            values |= {f"error_{name}": each[0] for name, each in errors.items()}
        return values

    def unshare(self, name: str) -> FloatArray:
        """Return a quantity of all points, to be written to; what was stored once is stored for each point."""
        array = self.stored.get(name)
        if array is None or not _is_shared(array):
            return self.read(name)
        self.stored[name] = np.array(array)
        return self.stored[name]

    def _form_errors(self, matrix: str) -> FloatArray:
        """Return the errors of the entries of a matrix."""
        values = self.stored[matrix]
        if len(self.zeros) == 1 and not self.pattern.any():
            return self._multiply_factors(matrix, self.zeros[0], ...)
        errors = np.full(values.shape, np.nan)
        has_error = self.pattern == ENTRY_ERRORS_CODE
        if has_error.any():
            errors[has_error] = self.stored[f"error_{matrix}"][has_error]
        for number, zeros in enumerate(self.zeros):
            points = self.pattern == number
            if points.any():
                errors[points] = self._multiply_factors(matrix, zeros, points)
        return errors

    def _multiply_factors(self, matrix: str, zeros: Mapping[str, Mask], points: Points) -> FloatArray:
        rows, columns = self._read_factors(matrix, points)
        errors = rows[..., None] / columns[:, None]
        if matrix in zeros:
            errors[zeros[matrix] & (self.stored[matrix][points] == 0)] = 0.0
        return errors

    def _read_factors(self, matrix: str, points: Points | int) -> tuple[FloatArray, FloatArray]:
        """Return the errors of rows (k, r) and the sizes of columns (k, c)."""
        columns = "input_size" if matrix in ALONG_INPUTS else "coordinate_size"
        return self.stored[f"row_error_{matrix}"][points], self.stored[columns][points]

    def read_errors(self, matrix: str, row: int, column: int) -> FloatArray:
        """Return the errors of one entry where errors are factors, without structural zeros, shape (count,)."""
        rows, columns = self._read_factors(matrix, ...)
        return np.asarray(rows[:, row] / columns[:, column])

    def read_row_errors(self, matrix: str, number: int) -> FloatArray:
        """Return the errors of a matrix at one point where errors are factors, without structural zeros."""
        rows, columns = self._read_factors(matrix, number)
        return np.asarray(rows[:, None] / columns)

    def read_first_errors(self) -> dict[str, FloatArray]:
        """Return the errors of the matrices of the first point, by name."""
        if self.pattern[0] < 0:
            return {name: self.stored[f"error_{name}"][0] for name in MATRICES}
        zeros, errors = self.zeros[self.pattern[0]], {}
        for name in MATRICES:
            errors[name] = self.read_row_errors(name, 0)
            if name in zeros:
                errors[name][zeros[name] & (self.stored[name][0] == 0)] = 0.0
        return errors

    def summarize_first(self, errors: Mapping[str, FloatArray]) -> list[float]:
        """Return the accuracy of the first point with these errors of its matrices, 8 numbers."""
        accuracy: list[float] = self.stored["accuracy"][0].tolist()
        for k, name in enumerate(MATRICES):
            largest = float(np.maximum.reduce(np.abs(self.stored[name][0]), axis=None, initial=0.0))
            worst = float(np.maximum.reduce(errors[name], axis=None, initial=0.0))
            accuracy[k] = worst / largest if largest > 0 else worst
        accuracy[len(MATRICES)] = EPS if self.stored["f0"][0].any() else 0.0
        return accuracy

    def _compute_accuracy(self) -> FloatArray:
        """Return the accuracy of all points, shape (count, 8)."""
        accuracy = self.stored["accuracy"].copy()
        factored = self.pattern >= 0
        for block in self.list_blocks():
            part, points = self[block], factored[block]
            errors = {name: part._form_errors(name) for name in MATRICES}
            accuracy[block][points] = part.summarize_errors(errors)[points]
        return np.asarray(accuracy)

    def summarize_errors(self, errors: Mapping[str, FloatArray]) -> FloatArray:
        """Return the accuracy (count, 8) with these errors of the matrices, over their largest entries."""
        accuracy = self.stored["accuracy"].copy()
        largest = [np.abs(self.stored[name]).max(axis=(1, 2), initial=0.0) for name in errors]
        worst = [each.max(axis=(1, 2), initial=0.0) for each in errors.values()]
        accuracy[:, : len(errors)] = divide_errors(np.array(largest), np.array(worst)).T
        accuracy[:, len(MATRICES)] = np.where(self.stored["f0"].any(axis=1), EPS, 0.0)
        return np.asarray(accuracy)

    def list_blocks(self) -> Iterator[slice]:
        """Yield runs of points of about 8 MiB; the memory of those that lie in a file is released after each."""
        numbers = 2 * sum(array[0].size for array in self.stored.values()) if self.count else 1
        size = max(1, NUMBERS_PER_BLOCK // max(numbers, 1))
        for begin in range(0, self.count, size):
            yield slice(begin, min(begin + size, self.count))
            self.release()

    def release(self) -> None:
        """Give back the memory of arrays that lie in a file, so that a large family does not take more and more."""
        if self.file is not None and hasattr(self.file, "madvise"):
            self.file.madvise(mmap.MADV_DONTNEED)

    # -- writing ---------------------------------------------------------------------------------------

    def put(self, numbers: NDArray[np.intp], models: LinearArrays) -> None:
        """Write linear models of other arrays as those of the points with these numbers."""
        if not len(numbers):
            return
        is_run = int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1 and bool((np.diff(numbers) == 1).all())
        points: Points = slice(int(numbers[0]), int(numbers[-1]) + 1) if is_run else numbers
        for name, values in models.stored.items():
            if name in MAY_BE_SHARED and self._share(name, values):
                continue
            self._writable(name, values.shape[1:])[points] = values
        numbers_of_zeros = [self._number_zeros(zeros) for zeros in models.zeros]
        translated = np.array(
            [*numbers_of_zeros, NOT_WRITTEN_CODE, ENTRY_ERRORS_CODE], dtype=np.intp
        )  # the last ones are < 0
        self.pattern[points] = translated[models.pattern]

    def clear(self, points: Mask) -> None:
        """Write NaN to points without a linear model."""
        if not points.any():
            return
        for name, array in self.stored.items():
            self._writable(name, array.shape[1:])[points] = np.nan
        self.pattern[points] = NOT_WRITTEN_CODE

    def _writable(self, name: str, shape: tuple[int, ...]) -> FloatArray:
        array = self.stored.get(name)
        if array is not None and not _is_shared(array):
            return array
        filled = np.empty((self.count, *shape))
        if array is not None:
            filled[self.pattern != NOT_WRITTEN_CODE] = array[0]
        self.stored[name] = filled
        return filled

    def _share(self, name: str, values: FloatArray) -> bool:
        """Store values that are the same at all points once; return whether they are the same as those before."""
        array = self.stored.get(name)
        if array is None:
            if not (_is_shared(values) or len(values) == 1):
                return False
            self.stored[name] = np.broadcast_to(values[0].copy(), (self.count, *values.shape[1:]))
            return True
        if not _is_shared(array):
            return False
        return np.array_equal(array[0], values[0]) if _is_shared(values) else bool((values == array[0]).all())

    def _number_zeros(self, zeros: Mapping[str, Mask]) -> int:
        for number, other in enumerate(self.zeros):
            if zeros is other or all(np.array_equal(zeros[name], other[name]) for name in zeros):
                return number
        self.zeros.append(zeros)
        return len(self.zeros) - 1

    # -- other interfaces ------------------------------------------------------------------------------

    def with_inputs(self, chosen: Sequence[int]) -> LinearArrays:
        """Return the same linear models with some of their inputs."""
        columns = list(chosen)
        stored = {name: array[..., columns] if name in OF_INPUTS else array for name, array in self.stored.items()}
        zeros: list[Mapping[str, Mask]] = [
            {name: mask[:, columns] if name in ALONG_INPUTS else mask for name, mask in each.items()}
            for each in self.zeros
        ]
        return replace(self, stored=stored, zeros=zeros)


def _store_once(name: str, values: FloatArray) -> FloatArray:
    """Return values (count, ...) as they are sent and stored: (1, ...) where they are the same at all points."""
    if len(values) > 1 and (_is_shared(values) or (name in MAY_BE_SHARED and (values == values[0]).all())):
        return values[:1]
    return values


def _is_shared(values: FloatArray) -> bool:
    """Whether an array has the same values at all points by its memory layout."""
    return values.ndim > 1 and values.strides[0] == 0


def divide_errors(largest: FloatArray, worst: FloatArray) -> FloatArray:
    """Return the largest error over the largest entry at each point; the error itself where all entries are zero."""
    return np.asarray(np.where(largest > 0, worst / np.where(largest > 0, largest, 1.0), worst))
