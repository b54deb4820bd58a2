"""A linear model in which no input reaches any output: it reads like a success, and says nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fmilin.linear_model.model import LinearModel
from fmilin.remarks import Remark

__all__ = ["with_remark_on_silence"]


def with_remark_on_silence(linear: LinearModel) -> LinearModel:
    """Return the linear model, with a warning if there are inputs and outputs and no path from one to another.

    Entries no larger than their errors count as none.
    """
    said = any(w.kind == "no-response" for w in linear.warnings)
    if said or not len(linear.inputs) or not len(linear.outputs):
        return linear
    A, B, C, D = (np.abs(getattr(linear, name)) > np.abs(getattr(linear.errors, name)) for name in "ABCD")
    reached = B.any(axis=1)
    for _ in range(len(A)):
        further = reached | A[:, reached].any(axis=1)
        if (further == reached).all():
            break
        reached = further
    if D.any() or C[:, reached].any():
        return linear
    remark = Remark(
        "no-response",
        f"NO INPUT MOVES ANY OUTPUT: none of the {len(linear.inputs)} inputs changes any of the {len(linear.outputs)} "
        "outputs at this point, so the transfer functions are all zero. Usual reasons: outputs that only change at "
        "events or samples (--lifted), inputs that are read once at the start, a part that is switched off; or other "
        "outputs are wanted (--outputs).",
    )
    return replace(linear, warnings=(remark, *linear.warnings))
