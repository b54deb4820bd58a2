"""Checks whether the options of a linearization suit a model, whatever the operating point."""

from __future__ import annotations

from contextlib import suppress

from fmilin.errors import NumericalError, UsageError
from fmilin.linearization.request import Request
from fmilin.model.capabilities import HasDelays, HasSamples
from fmilin.model.interface import Model
from fmilin.model.stepping import Stepped

CONTINUOUS_MODELS_ONLY = (
    "Derivatives by parameters require a continuous model: a stepped model has only responses in time."
)


DELAYED_DERIVATIVES = (
    "Derivatives by parameters are not computed of models with delays or with sampled members. Leave parameters= out, "
    "or sweep the parameter (fl.sweep)."
)


class FamilyOfDelaysError(UsageError):
    """A model has delays, and a family of matrices is requested."""


def require_suitable_model(model: Model, request: Request) -> None:
    """Raise UsageError if no operating point of a model can be linearized with these options.

    A sweep checks this before its first point: otherwise every point would fail for the same reason.
    """
    if isinstance(model, HasSamples):  # delays of sampled signals are states
        if request.parameters:
            raise UsageError(DELAYED_DERIVATIVES)
        return
    if isinstance(model, HasDelays):
        raise FamilyOfDelaysError(
            f"'{model.info.name}' has delays, and families hold matrices, which linear models with delays do not have. "
            "Sweep its rightmost eigenvalues with delays={}, or linearize single points (fl.linearize)."
        )
    is_lifted = request.stepping is not None and request.stepping.lifted
    if request.formulation is not None:
        _require_equations_of_formulations(model)
    elif isinstance(model, Stepped) or is_lifted:
        require_options_of_steps(request)
        if not isinstance(model, Stepped):
            from fmilin.identification.sampled_model import require_events

            require_events(model)
    elif request.at_singularity:
        _require_equations_at_singularity(model)
    if request.parameters and (isinstance(model, Stepped) or is_lifted):
        raise UsageError(CONTINUOUS_MODELS_ONLY)


RATES_FOR_TOTALS = (
    "keep_totals=True needs the rates of the model at many points: leave it out for a model that is stepped, or load "
    "the FMU with interface='me'."
)

MAX_DENSE_STATES = 5_000
"""States beyond which the general algorithm is not begun: it holds forty matrices with a row and a column for each of
them, and works a minute for 3,000."""
MAX_MATRICES = 40  # of N x N numbers, held at once


def require_dense_size(model: Model) -> None:
    """Raise NumericalError if the dense matrices of the general algorithm would be too large."""
    count = len(model.states)
    if count > MAX_DENSE_STATES:
        # 8 bytes for each number, in gigabytes
        memory = MAX_MATRICES * 8 * count**2 / 1e9
        raise NumericalError(
            f"'{model.info.name}' is too large for a linear model of dense matrices: {count:,} states would take "
            f"{memory:.0f} GB and more than five minutes, and {MAX_DENSE_STATES:,} is the limit. Leave out parts that "
            "do not affect the result (MuJoCo's contacts are always left out), and linearize the others."
        )


def require_options_of_steps(request: Request) -> None:
    """Raise UsageError if options have no meaning for a model that is stepped."""
    if request.at_singularity:
        raise UsageError("at_singularity=True is for native models, not for models that are stepped. Leave it out.")
    if request.keep_totals:
        raise UsageError(RATES_FOR_TOTALS)
    if request.hold_modes:
        raise UsageError(
            "hold_modes=True is for model exchange: a solver inside a model handles its events itself. Load the model "
            "with interface='me'."
        )
    _require_checks_of_responses(request)


MEASURING_METHODS = ("step", "response", "multisine")
"""Methods of ``fl.Stepping`` that measure responses, whatever derivatives the model may have."""


def _require_checks_of_responses(request: Request) -> None:
    """Raise UsageError if no check is wanted of a linear model that is sure to be identified from responses.

    Derivatives that are read (method "direct", or "auto" where the model allows it) are checked as those of other
    models are. An identification verifies everything at every point, so that "all" is what it does.
    """
    stepping = request.stepping
    if request.checks != "none" or stepping is None:
        return
    if stepping.lifted:
        cause = "lifted=True"
    elif stepping.method in MEASURING_METHODS:
        cause = f"method='{stepping.method}'"
    else:
        return
    raise UsageError(
        f"checks='none' has no meaning with {cause}: a linear model that is identified from responses needs "
        "confirmation by other responses. Leave checks= out, or read derivatives with method='direct'."
    )


def _require_equations_of_formulations(model: Model) -> None:
    from fmilin.formulations.of_model import second_order

    with suppress(NumericalError):  # the equations may be singular at the start and regular at the points
        second_order(model, model.start)


def _require_equations_at_singularity(model: Model) -> None:
    from fmilin.linearization.singular_configuration import require_second_order_form

    with suppress(NumericalError):
        require_second_order_form(model, model.start)
