"""A family of linear models with delays as names, numbers and texts: the format ``fmilin-delay-family/1``."""

from __future__ import annotations

from pathlib import Path

from fmilin.errors import UsageError
from fmilin.export.strict_json import format_document
from fmilin.families.delayed_family import DelayedFamily
from fmilin.support.files import write_file

FORMAT = "fmilin-delay-family/1"


def to_record(family: DelayedFamily) -> dict[str, object]:
    """Return the family in grid order; eigenvalues are pairs of real and imaginary part, missing ones null."""
    points = []
    for number, point in enumerate(family.points):
        points.append(
            {
                "index": list(family.grid.index(number)),
                "values": family.grid.values(number),
                "ok": point.linear is not None,
                "reason": point.reason,
                "delays": {} if point.linear is None else dict(point.linear.delays),
                "eigenvalues": point.eigenvalues,
                "errors": point.errors,
                "unstable": point.unstable,
            }
        )
    changes = [
        {
            "at": dict(change.at),
            "delays": dict(change.delays),
            "frequency": change.frequency,
            "unstable_before": change.unstable_before,
            "unstable_after": change.unstable_after,
        }
        for change in family.changes
    ]
    return {
        "format": FORMAT,
        "model": family.name,
        "axes": {name: values.tolist() for name, values in family.axes.items()},
        "delay_axes": list(family.delay_names),
        "points": points,
        "changes": changes,
    }


def encode_family(family: DelayedFamily) -> str:
    """Return the record as strict JSON."""
    return format_document(to_record(family))


def save_family(family: DelayedFamily, path: str | Path) -> None:
    """Write a .json file; see :meth:`DelayedFamily.save`."""
    require_json(path)
    write_file(Path(path), encode_family(family).encode("ascii"))


def require_json(path: str | Path) -> None:
    """Raise UsageError for a file of another format."""
    if Path(path).suffix.lower() != ".json":
        raise UsageError(
            f"'{path}': eigenvalues over delays are written as .json; the other formats hold the matrices of families "
            "without delays."
        )
