"""Linear models with delays as names with arrays, numbers and texts: the format ``fmilin-delayed/1``.

It is the record of the linear model between the delays; its last inputs and outputs are the delayed signals, with the
delays in seconds. Eigenvalues are the rightmost ones.
"""

from __future__ import annotations

from dataclasses import replace

from fmilin.errors import FmilinError
from fmilin.export import linear_record
from fmilin.export.record import ByName, Labelled, Record, Stored, describe_restore_errors, read_by_name, require_format
from fmilin.linear_model.model import DelayedLinearModel, LinearModel

FORMAT = "fmilin-delayed/1"


def to_arrays(linear: DelayedLinearModel) -> Record:
    """Return everything in a linear model with delays, and its rightmost eigenvalues where they are found."""
    core = linear_record.to_arrays(linear.core)
    arrays = {name: value for name, value in core.arrays.items() if name not in ("eigenvalues", "eigenvalue_errors")}
    facts = {**core.facts, "delays": ByName(linear.delays), "stable": None, "format": FORMAT}
    try:
        arrays["eigenvalues"] = Labelled(linear.eigenvalues(), ("mode",))
        arrays["eigenvalue_errors"] = Labelled(linear.eigenvalue_errors(), ("mode",))
        facts["stable"] = linear.stability().stable
    except FmilinError:  # of a neutral system infinitely many eigenvalues lie near a vertical line
        facts |= {"eigenvalues": None, "eigenvalue_errors": None}
    return replace(core, format=FORMAT, arrays=arrays, facts=facts, additions={})


def from_arrays(stored: Stored, origin: str) -> DelayedLinearModel:
    """Return the model that :func:`to_arrays` described; ``origin`` names the file in messages."""
    require_format(stored, origin, FORMAT, "linear model with delays")
    with describe_restore_errors(origin):
        delays = read_by_name(stored.facts["delays"])
        core = linear_record.read_linear_model(stored)
        return DelayedLinearModel.of_core(core, list(delays), list(delays.values()))


def restore_linear_model(stored: Stored, origin: str) -> LinearModel:
    """Return a linear model, with delays or without: files of both have the same suffixes."""
    if stored.facts.get("format") == FORMAT:
        return from_arrays(stored, origin)
    return linear_record.from_arrays(stored, origin)
