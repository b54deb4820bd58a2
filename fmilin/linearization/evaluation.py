"""A model evaluated at an operating point: finite numbers, or an error that names the variable."""

from __future__ import annotations

import numpy as np

from fmilin.errors import NumericalError, count_omitted
from fmilin.manifold.rank import describe_singularity
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Evaluation, OperatingPoint

MAX_USABLE_SIZE = 1e150  # rates and outputs with squares that overflow say nothing


def evaluate(evaluator: PointEvaluator, point: OperatingPoint) -> Evaluation:
    """Return rates, outputs and residuals at a point.

    Raises
    ------
    NumericalError
        When one of them is not finite, or rates are undetermined, as at a singular configuration.
    """
    model = evaluator.model
    try:
        base = evaluator.evaluate(point.time, point.states, point.inputs)
    except NumericalError as error:
        singular = describe_singularity(model, point)
        raise NumericalError(singular, condition_number=error.condition_number) if singular else error from None
    for values, signals, what in (
        (base.derivatives, model.states, "derivative of the state"),
        (base.outputs, model.outputs, "output"),
        (base.residuals, model.constraints, "constraint"),
    ):
        usable = np.abs(values) < MAX_USABLE_SIZE
        if usable.all():
            continue
        bad = [name for name, fine in zip(signals.names, usable, strict=True) if not fine]
        value = float(values[~usable][0])
        size = f"{value:.3g}, too large for computation," if np.isfinite(value) else f"{value}".replace("nan", "NaN")
        remaining = count_omitted(len(bad), 1)
        more = f" ({remaining})" if remaining else ""
        raise NumericalError(
            f"The model returns {size} for the {what} '{bad[0]}' at the point{more}. The point may be outside the "
            "model's domain. Choose another: fl.operating_point(model, {'NAME': VALUE}).",
            variable=bad[0],
        )
    return base
