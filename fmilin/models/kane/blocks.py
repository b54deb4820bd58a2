"""Matrices whose entries are atoms of a program: constants are filled in once, the others at each point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fmilin.codegen.program import Atom, Program
from fmilin.models.kane.form import Row
from fmilin.signals import FloatArray

__all__ = ["AtomMatrix"]


class AtomMatrix:
    """A matrix of atoms.

    Parameters
    ----------
    shape : tuple of int
    entries : mapping of (int, int) to Atom
        The others are zero.

    Attributes
    ----------
    atoms : list of Atom
        Those that have to be computed.
    template : array
        The matrix with zeros in their places.
    is_identity : bool
        Whether it is the identity, everywhere.
    """

    def __init__(self, shape: tuple[int, int], entries: Mapping[tuple[int, int], Atom]) -> None:
        self.template = np.zeros(shape)
        places: list[int] = []
        self.atoms: list[Atom] = []
        for (i, j), atom in entries.items():
            if atom.is_Number:
                self.template[i, j] = float(atom)
            else:
                places.append(i * shape[1] + j)
                self.atoms.append(atom)
        self._places: NDArray[np.intp] = np.array(places, dtype=np.intp)
        self.is_identity = not self.atoms and np.array_equal(self.template, np.eye(*shape))

    @classmethod
    def of_rows(cls, program: Program, rows: Sequence[Row], symbols: Sequence[Any]) -> Self:
        """Return the coefficients of ``symbols`` in ``rows``."""
        column = {w: j for j, w in enumerate(symbols)}
        entries = {(i, column[w]): program.add(c) for i, row in enumerate(rows) for w, c in row.coefficients.items()}
        return cls((len(rows), len(symbols)), entries)

    def filled(self, values: FloatArray) -> FloatArray:
        """Return the matrix, with the values of :attr:`atoms`; a stack of matrices for values (k, atoms)."""
        stack = values.shape[:-1]
        matrix = np.empty((*stack, self.template.size))
        matrix[...] = self.template.ravel()
        matrix[..., self._places] = values
        return matrix.reshape(*stack, *self.template.shape)

    def cut(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the matrix, and the values that follow those of its atoms."""
        size = len(self.atoms)
        return self.filled(values[..., :size]), values[..., size:]
