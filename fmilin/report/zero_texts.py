"""Zeros of linear models in words: for the table of a linear model, which is one of its own reports."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.modes import EigenvalueCluster, Mode, cluster_modes
from fmilin.linear_model.zeros import SAFETY_FACTOR, ZeroStructure
from fmilin.report.numbers import cluster_text
from fmilin.signals import FloatArray

Complex = NDArray[np.complex128]

AT_LIMIT = "at the stability limit"
MAX_ZEROS = 12  # in one line
MAX_STATES = 150  # of a linear model up to which its table has a line of zeros: they take many times the eigenvalues


def has_zeros(linear: LinearModel) -> bool:
    """Whether zeros are defined, and can be computed in the time that a table may take."""
    if not (len(linear.inputs) and len(linear.outputs) and 0 < len(linear.states) <= MAX_STATES):
        return False
    return all(np.isfinite(matrix).all() for matrix in (linear.A, linear.B, linear.C, linear.D))


def cluster_zeros(values: Complex, errors: FloatArray) -> list[EigenvalueCluster]:
    """Return zeros, those together that their errors do not keep apart, smallest first."""
    nothing = np.zeros(0, dtype=np.complex128)
    pairs = zip(values.tolist(), errors.tolist(), strict=True)
    return cluster_modes([Mode(value, nothing, error) for value, error in pairs if value.imag >= 0])


def describe_side(cluster: EigenvalueCluster, *, sampled: bool) -> str:
    """Return where a zero is, if that is not where it does no harm."""
    growth = abs(cluster.eigenvalue) - 1.0 if sampled else cluster.eigenvalue.real
    if growth > SAFETY_FACTOR * cluster.error:
        return "outside the unit circle" if sampled else "right half-plane"
    if growth >= -SAFETY_FACTOR * cluster.error:
        return AT_LIMIT
    return ""


def describe_zeros(structure: ZeroStructure) -> Iterator[str]:
    """Yield the transmission zeros, each with the side of the stability limit if it is not the harmless one."""
    is_sampled = structure.sample_time > 0
    for cluster in cluster_zeros(structure.zeros, structure.errors):
        side = describe_side(cluster, sampled=is_sampled)
        text = f"z = {cluster_text(cluster)}" if is_sampled else cluster_text(cluster)
        yield f"{text} ({side})" if side and side != AT_LIMIT else text
