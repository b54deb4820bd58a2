"""Zeros of a linear model from its inputs to its outputs, finite and infinite, and what they say about control."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import join_first
from fmilin.numerics.system_pencil import (
    SystemPencil,
    ZeroEstimates,
    compute_transmission_zeros,
    compute_zeros,
    count_differentiations,
)
from fmilin.signals import FloatArray, Signals
from fmilin.support.dataclass import dataclass
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr

Complex = NDArray[np.complex128]

SAFETY_FACTOR = 3.0  # errors are estimates: a zero is on one side of the stability limit beyond so many of them
MAX_LISTED_ZEROS = 6  # zeros in a diagnostic


@dataclass(frozen=True, eq=False, repr=False)
class ZeroStructure(TableRepr):
    """Where inputs cannot move outputs: finite zeros, zeros at infinity, relative degrees.

    >>> import fmilin as fl
    >>> cart = fl.models.OdeModel(
    ...     "cart", {"x": "v", "phi": "w", "v": "F - phi", "w": "11*phi - F"}, inputs=["F"], outputs={"position": "x"}
    ... )
    >>> zeros = fl.linearize(cart).zero_structure()
    >>> zeros.zeros.real.round(6).tolist(), zeros.relative_degree.tolist(), zeros.minimum_phase
    ([-3.162278, 3.162278], [2.0], False)
    """

    _attributes = ".zeros, .errors, .invariant, .infinite_orders, .relative_degree, .warnings"

    inputs: Signals  #: the nu inputs
    outputs: Signals  #: the ny outputs
    sample_time: float  #: 0 of a continuous model, the zeros of which are in 1/s; those of a sampled one are in z
    decoupling_matrix: FloatArray
    """Shape (ny, nu): of each output the derivative of the order of its relative degree (of a sampled model the value
    after so many samples) by the inputs; a row of zeros where no input ever moves the output."""
    _pencil: SystemPencil

    @implemented_in("fmilin.report.zeros_report:show_zero_structure")
    def _print_table(self, page: Sheet) -> None: ...

    @property
    def zeros(self) -> Complex:
        """The transmission zeros, sorted by real part, then imaginary part: those of the minimal part."""
        return self._transmission.values

    @property
    def errors(self) -> FloatArray:
        """How far each of ``zeros`` may be off; infinite where the second way does not confirm the zero."""
        return self._transmission.errors

    @property
    def invariant(self) -> Complex:
        """The invariant zeros: the transmission zeros, and eigenvalues that no input reaches or no output shows."""
        return self._invariant.values

    @property
    def invariant_errors(self) -> FloatArray:
        """How far each of ``invariant`` may be off."""
        return self._invariant.errors

    @property
    def infinite_orders(self) -> tuple[int, ...]:
        """The orders of the zeros at infinity, ascending; 0 for each direction in which inputs move outputs at once."""
        return self._invariant.infinite_orders

    @property
    def normal_rank(self) -> int:
        """The rank of the transfer matrix at all but single points."""
        return self._invariant.normal_rank

    @cached_property
    def relative_degree(self) -> FloatArray:
        """How often each output must be differentiated until an input shows, shape (ny,); infinite where never."""
        return count_differentiations(self._pencil)

    @property
    def decouples(self) -> bool:
        """Whether the decoupling matrix has full row rank: then there is a vector relative degree.

        The orders at infinity tell, which come from the same reduction as the zeros: their sum is that of the relative
        degrees, and larger where derivatives of several outputs depend on the inputs in the same way.
        """
        if self.normal_rank < len(self.outputs):
            return False
        return float(sum(self.infinite_orders)) == float(self.relative_degree.sum())

    @property
    def minimum_phase(self) -> bool | None:
        """Whether all invariant zeros are inside the stability limit; None where their errors leave it open."""
        growth, errors = self._growth, SAFETY_FACTOR * self.invariant_errors
        if (growth > errors).any():
            return False
        return True if (growth < -errors).all() else None

    @property
    def _growth(self) -> FloatArray:
        return np.abs(self.invariant) - 1.0 if self.sample_time > 0 else self.invariant.real

    @property
    def warnings(self) -> tuple[Remark, ...]:
        """Warnings: zeros that the second method does not confirm, and doubtful counts."""
        return tuple(self._list_remarks())

    @cached_property
    def _invariant(self) -> ZeroEstimates:
        return compute_zeros(self._pencil)

    @cached_property
    def _transmission(self) -> ZeroEstimates:
        return compute_transmission_zeros(self._pencil, self._invariant)

    def _list_remarks(self) -> Iterator[Remark]:
        estimates = self._transmission
        if estimates.unresolved:
            count = estimates.unresolved
            yield Remark(
                "zeros",
                f"{count} more {'zero is' if count == 1 else 'zeros are'} left out: their distance from all others is "
                "due to rounding. They come from relatively weak couplings, such as dampers beside stiff springs; set "
                "these to zero if they do not matter.",
            )
        elif estimates.is_doubtful or not estimates.is_consistent:
            yield Remark(
                "zeros",
                "The number of zeros cannot be determined: couplings between inputs and outputs are so weak that they "
                "may be zero. Zeros may be missing or be far from all others. Take exact derivatives, or set "
                "couplings that should be zero to zero.",
            )
        if estimates.uncertified.any():
            names = _list_values(estimates.values[estimates.uncertified])
            yield Remark(
                "zeros", f"The zeros {names} are not confirmed: the rank of the system pencil does not drop there."
            )
        if estimates.disagreeing.any():
            names = _list_values(estimates.values[estimates.disagreeing])
            yield Remark(
                "zeros",
                f"Two methods differ for the zeros {names}: the system pencil corrects the result of its reduction by "
                "more than the errors of the entries explain. The errors include the difference.",
            )


def _list_values(values: Complex) -> str:
    texts = (f"{v.real:.5g}" if v.imag == 0 else f"{v.real:.5g} ± {v.imag:.5g} i" for v in values if v.imag >= 0)
    return join_first(texts, MAX_LISTED_ZEROS)
