"""A family of linear models as strict JSON: one object per point, in the order of the grid."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fmilin.families.family import LinearFamily
from fmilin.families.rows import Layout
from fmilin.ground.errors import ModelError
from fmilin.ground.signals import FloatArray
from fmilin.output.export.family_document import from_texts, require_format, texts_of
from fmilin.output.export.json_file import plain

__all__ = ["dumps", "loads", "pieces"]

_PER_POINT = ("remarks", "reasons", "distinct_remarks")


def dumps(family: LinearFamily) -> bytes:
    """Return the file's content."""
    return "".join(pieces(family)).encode("ascii")


def pieces(family: LinearFamily) -> Iterator[str]:
    """Yield the document, one point after the other: a family need not be in memory twice."""
    texts = {k: v for k, v in texts_of(family).items() if k not in _PER_POINT}
    yield "{\n" + "".join(f"{json.dumps(k)}: {json.dumps(plain(v), allow_nan=False)},\n" for k, v in texts.items())
    yield '"points": [\n'
    for number in range(len(family)):
        point = json.dumps(plain(_point(family, number)), allow_nan=False)
        yield point + (",\n" if number + 1 < len(family) else "\n")
    yield "]\n}\n"


def _point(family: LinearFamily, number: int) -> dict[str, Any]:
    head = {
        "index": list(family.grid.index(number)),
        "values": family.grid.values(number),
        "ok": bool(family.ok.flat[number]),
        "reason": str(family.reasons.flat[number]),
    }
    if not head["ok"]:
        return head
    choice = family.choices[family.chosen[number]]
    row = family.rows[number]
    layout = family.layout
    numbers = {name: np.reshape(row[place], layout.shapes[name]) for name, place in layout.places.items()}
    numbers["time"] = float(numbers["time"])  # type: ignore[assignment]
    remarks = [{"kind": r.kind, "message": r.message} for r in family.remarks.get(number, ())]
    return {
        **head,
        **numbers,
        "eigenvalues": family.eigenvalues.reshape(-1, family.template.order)[number],
        "states": list(choice.states.names),
        "choice": int(family.chosen[number]),
        "warnings": remarks,
    }


def loads(content: bytes, origin: str) -> LinearFamily:
    """Read what :func:`dumps` wrote."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"'{origin}' is no JSON document: {error}.") from None
    if not isinstance(document, dict):
        raise ModelError(f"'{origin}' is no family of linear models: the document is no object.")
    require_format(document, origin)
    try:
        points = document["points"]
        distinct: dict[tuple[str, str], int] = {}
        remarks = {
            str(k): [distinct.setdefault((w["kind"], w["message"]), len(distinct)) for w in p["warnings"]]
            for k, p in enumerate(points)
            if p["ok"] and p["warnings"]
        }
        document["remarks"] = remarks
        document["distinct_remarks"] = [{"kind": k, "message": m} for k, m in distinct]
        document["reasons"] = {str(k): p["reason"] for k, p in enumerate(points) if not p["ok"]}
        ok = [bool(p["ok"]) for p in points]
        chosen = [int(p["choice"]) if p["ok"] else -1 for p in points]
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"'{origin}' is damaged: {error!r} while reading its points. Save it again.") from None
    return from_texts(document, lambda layout: _rows(points, layout), ok, chosen, origin)


def _rows(points: list[Mapping[str, Any]], layout: Layout) -> FloatArray:
    rows = np.full((len(points), layout.width), np.nan)
    for row, point in zip(rows, points, strict=True):
        if point["ok"]:
            for name, place in layout.places.items():
                row[place] = np.ravel(np.array(point[name], dtype=np.float64))
    return rows
