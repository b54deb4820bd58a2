"""A verification as a person reads it on a terminal, or in a file of 80 columns."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

import numpy as np

from fmilin.linear_model.verification import Channel, Verification
from fmilin.output.report.numbers import rough, shortened
from fmilin.output.report.table import Fact, console_on, fact, simple_table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from fmilin.output.report.page import Page

__all__ = ["limit_text", "print_verification", "show_verification", "verification_text"]


MOST_REASONS = 6
"""More failed channels are counted, not explained."""


def verification_text(verification: Verification) -> str:
    """Return the table as text, 80 columns wide."""
    stream = io.StringIO()
    print_verification(verification, stream)
    return stream.getvalue()


def print_verification(verification: Verification, stream: TextIO) -> None:
    """Print what was found, channel by channel."""
    with console_on(stream) as console:
        show_verification(verification, console)


def show_verification(verification: Verification, page: Console | Page) -> None:
    """Print the same on a console or a page."""
    for word, pieces in _facts(verification):
        page.print(fact(word, pieces, page.width))
    page.print()
    page.print(_table(verification))
    failed = verification.failed
    if failed or verification.remarks:
        page.print()
    for channel in failed[:MOST_REASONS]:
        page.print(fact("Failed", [_reason(channel)], page.width, separator=" "))
    if len(failed) > MOST_REASONS:
        page.print(fact("", [f"and {len(failed) - MOST_REASONS} more"], page.width))
    for remark in verification.remarks:
        page.print(fact("Warning", str(remark).split(), page.width, separator=" "))


def limit_text(channel: Channel) -> str:
    """Return how far a channel holds, ``"0.22 m"`` or ``"> 98 m"``; a dash where nothing is said."""
    validity = channel.validity
    if validity is None:
        return "-"
    sign = "> " if validity.at_least else ""
    return f"{sign}{rough(validity.limit)} {channel.unit}".rstrip()


def _facts(verification: Verification) -> Iterator[Fact]:
    count = len(verification.channels)
    yield "Model", [shortened(verification.model.name)]
    if verification.passed:
        yield "Verdict", [f"right to first order in all {count} channels"]
    else:
        yield "Verdict", [f"WRONG in {len(verification.failed)} of {count} channels"]
    yield "Followed", [f"{verification.horizon:.4g} s", f"{verification.evaluations} evaluations"]


def _table(verification: Verification) -> Table:
    table = simple_table()
    table.add_column("Channel", max_width=30)
    table.add_column("rad/s", justify="right")
    table.add_column("")
    table.add_column("Error", justify="right")
    table.add_column("Order", justify="right")
    table.add_column("Within 5% to", justify="right")
    table.add_column("Limited by", max_width=14)
    for channel in verification.channels:
        table.add_row(
            shortened(channel.label.partition(", ")[0] if channel.kind == "sine" else channel.label),
            "" if channel.frequency is None else f"{channel.frequency:.4g}",
            "pass" if channel.passed else "FAIL",
            f"{channel.slope_error:.1e}" if np.isfinite(channel.slope_error) else "-",
            f"{channel.order:.2f}" if np.isfinite(channel.order) else "-",
            limit_text(channel),
            _limiting(channel),
        )
    return table


def _limiting(channel: Channel) -> str:
    """Return the signal that limits a channel; a reason in words has no place in a column."""
    if channel.validity is None:
        return ""
    text = channel.validity.limited_by
    return shortened(text) if " " not in text else "end of the model"


def _reason(channel: Channel) -> str:
    if not np.isfinite(channel.slope_error):
        return f"{channel.label}: {channel.worst}"
    if channel.kind == "point":
        return f"{channel.label}: '{channel.worst}' is off by {channel.slope_error:.2g} of its size."
    if channel.kind == "drift":
        return (
            f"{channel.label}: the rate of '{channel.worst}' or its change is off by {channel.slope_error:.2g} of "
            "its size."
        )
    return (
        f"{channel.label}: in the limit of small amplitudes '{channel.worst}' is off by {channel.slope_error:.2g} of "
        "the largest response."
    )
