"""The formulations for thousands of coordinates: nothing made dense, a few eigenvalues around a frequency."""

from fmilin.formulations.of_model import sparse_form_of
from fmilin.formulations.sparse.elimination import SparseNullSpace, sparse_null_space
from fmilin.formulations.sparse.iterations import Around
from fmilin.formulations.sparse.nearest import eigenvalues_near

__all__ = ["Around", "SparseNullSpace", "eigenvalues_near", "sparse_form_of", "sparse_null_space"]
