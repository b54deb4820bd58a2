"""A verification in a report."""

from __future__ import annotations

from fmilin.linear_model.verification import Verification
from fmilin.output.report.numbers import shortened
from fmilin.output.report.verification_picture import verification_figure
from fmilin.output.report.verification_table import limit_text
from fmilin.output.report.web.blocks import Cell, Section, number, picture, table, text

__all__ = ["verification_section"]


def verification_section(verification: Verification) -> Section:
    """Return what the comparison with the nonlinear model found, channel by channel."""
    failed = len(verification.failed)
    verdict = (
        f"The linear model is right to first order in all {len(verification.channels)} channels."
        if not failed
        else f"The linear model is WRONG to first order in {failed} of {len(verification.channels)} channels."
    )
    rows = (
        [
            Cell(shortened(c.label)), Cell("yes" if c.passed else "NO", alarm=not c.passed),
            number(c.slope_error, digits=2), number(c.tolerance, digits=2), number(c.amplitude, c.unit, digits=3),
            number(c.order, digits=3),
            Cell(limit_text(c), None if c.validity is None else c.validity.limit),
            Cell("" if c.validity is None else shortened(c.validity.limited_by)),
        ]
        for c in verification.channels
    )  # fmt: skip
    heads = ["Channel", "Right", "Slope error", "Tolerance", "Amplitude", "Order", "Within 5 % up to", "Limited by"]
    return Section(
        "Verification",
        [
            text(verdict, alarm=bool(failed)),
            text(
                f"Responses were followed over {verification.horizon:.3g} s; {verification.evaluations} visits to the "
                "nonlinear model.",
                *(r.message for r in verification.remarks),
            ),
            table("Channel by channel, against the nonlinear model on its manifold", heads, rows),
            picture(
                "Both responses of each channel, and how far each holds", lambda: verification_figure(verification)
            ),
        ],
    )
