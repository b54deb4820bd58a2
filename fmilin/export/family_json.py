"""A family of linear models as plain data, format ``fmilin-family/1``, and as strict JSON with one object per point.

What the points share stands once, in the words of a linear model; what differs and is a number is an array with one row
per point in the order of the grid; ``choices`` are coordinates and method of the points whose ``chosen`` names them.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from functools import partial
from typing import Any

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, ModelError
from fmilin.export import document
from fmilin.export.document import derivative_from_part, derivative_to_part, details_of, object_in, plain, signals_of
from fmilin.families.family import LinearFamily, PointCoordinates
from fmilin.families.grid import Grid
from fmilin.families.rows import Layout, Template
from fmilin.linear_model.descriptor import Derivative
from fmilin.model.interface import ModelInfo
from fmilin.signals import FloatArray
from fmilin.version import __version__

FORMAT = "fmilin-family/1"
require_format = partial(document.require_format, wanted=FORMAT, what="family of linear models")
GROUPS = ("full_states", "inputs", "outputs")


def texts_of(family: LinearFamily) -> dict[str, Any]:
    """Return everything in a family that is not in its rows."""
    template = family.template
    groups = {group: getattr(template, group) for group in GROUPS}
    everything = (*family.states, *(s for signals in groups.values() for s in signals))
    distinct = list(dict.fromkeys(r for remarks in family.remarks.values() for r in remarks))
    number = {remark: i for i, remark in enumerate(distinct)}
    return {
        "format": FORMAT,
        "fmilin_version": __version__,
        "axes": {name: values.tolist() for name, values in family.axes.items()},
        "zipped": family.grid.zipped,
        "shape": list(family.shape),
        "dimensions": list(family.grid.dimensions),
        "states": list(family.states.names),
        **{group: list(signals.names) for group, signals in groups.items()},
        "parameters": list(template.parameters),
        "units": {s.name: s.unit for s in everything},
        "sample_time": template.sample_time,
        "order": template.order,
        "model": asdict(template.model),
        "signals": {group: details_of(signals) for group, signals in groups.items()},
        "choices": [
            {"states": list(c.states.names), "signals": details_of(c.states), "method": list(c.method)}
            for c in family.choices
        ],
        "distinct_remarks": [{"kind": r.kind, "message": r.message} for r in distinct],
        "remarks": {str(k): [number[r] for r in remarks] for k, remarks in family.remarks.items()},
        "reasons": {str(k): str(family.reasons.flat[k]) for k in np.flatnonzero(~family.ok.ravel()).tolist()},
        **_derivative_texts(family),
    }


def _derivative_texts(family: LinearFamily) -> dict[str, Any]:
    """Return the derivatives by parameters, by the number of the point; nothing without any."""
    points = {
        str(number): {name: derivative_to_part(derivative) for name, derivative in derivatives.items()}
        for number, derivatives in family.point_derivatives.items()
    }
    return {"derivatives": plain(points)} if points else {}


def _derivatives_from_texts(texts: Mapping[str, Any], template: Template) -> dict[int, dict[str, Derivative]]:
    """Return the derivatives that :func:`_derivative_texts` described."""
    order, inputs, outputs = template.order, len(template.inputs), len(template.outputs)
    shapes = {
        "A": (order, order),
        "B": (order, inputs),
        "C": (outputs, order),
        "D": (outputs, inputs),
        "states": (len(template.full_states),),
        "inputs": (inputs,),
    }
    return {
        int(number): {str(name): derivative_from_part(part, shapes) for name, part in parts.items()}
        for number, parts in texts.get("derivatives", {}).items()
    }


def from_texts(texts: Mapping[str, Any], rows: Any, ok: Any, chosen: Any, origin: str) -> LinearFamily:
    """Return the family of :func:`texts_of`: ok, chosen (n,), ``rows`` (n, width) or what makes them from a layout."""
    require_format(texts, origin)
    try:
        template = Template(
            int(texts["order"]),
            signals_of(texts, "full_states"),
            signals_of(texts, "inputs"),
            signals_of(texts, "outputs"),
            tuple(map(str, texts["parameters"])),
            ModelInfo(**{f.name: str(texts["model"][f.name]) for f in fields(ModelInfo)}),
            float(texts["sample_time"]),
        )
        grid = Grid({str(n): np.array(v, dtype=np.float64) for n, v in texts["axes"].items()}, bool(texts["zipped"]))
        layout = Layout(template)
        table = np.asarray(rows(layout) if callable(rows) else rows, dtype=np.float64).reshape(grid.size, layout.width)
        good = np.asarray(ok, dtype=bool).reshape(grid.shape)
        _require_numbers(table[good.ravel()], layout)
        groups = [{"states": c["states"], "signals": {"states": c["signals"]}} for c in texts["choices"]]
        methods = [tuple(c["method"]) for c in texts["choices"]]
        choices = tuple(PointCoordinates(signals_of(g, "states"), m) for g, m in zip(groups, methods, strict=True))
        remarks = [Remark(str(r["kind"]), str(r["message"]), is_read=True) for r in texts["distinct_remarks"]]
        reasons = np.full(grid.size, "", dtype=object)
        for k, reason in texts["reasons"].items():
            reasons[int(k)] = str(reason)
        return LinearFamily(
            grid,
            template,
            table,
            good,
            reasons.reshape(grid.shape),
            choices,
            np.asarray(chosen, dtype=np.intp).reshape(grid.size),
            {int(k): tuple(remarks[i] for i in numbers) for k, numbers in texts["remarks"].items()},
            point_derivatives=_derivatives_from_texts(texts, template),
        )
    except KeyError as missing:
        raise ModelError(f"'{origin}' is damaged: the field {missing} is missing. Save it again.") from None
    except (FmilinError, TypeError, ValueError, AttributeError, OverflowError, IndexError) as error:
        raise ModelError(f"'{origin}' is damaged: {error}. Save it again.") from None


def _require_numbers(rows: FloatArray, layout: Layout) -> None:
    for name in "ABCD":
        if not np.isfinite(rows[:, layout.slices[name]]).all():
            raise ValueError(f"{name} has NaN or infinite entries at a point that is good")


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
    row, layout = family.rows[number], family.layout
    numbers = {name: np.reshape(row[columns], layout.shapes[name]) for name, columns in layout.slices.items()}
    return {
        **head,
        **numbers,
        "time": float(numbers["time"]),
        "eigenvalues": family.eigenvalues.reshape(-1, family.template.order)[number],
        "states": list(family.choices[family.chosen[number]].states.names),
        "choice": int(family.chosen[number]),
        "equilibrium": family.linear_model(number).is_equilibrium,  # None: not tested
        "warnings": [{"kind": r.kind, "message": r.message} for r in family.remarks.get(number, ())],
    }


def loads(content: bytes, origin: str) -> LinearFamily:
    """Read what :func:`dumps` wrote."""
    document = object_in(content, origin, "family of linear models")
    require_format(document, origin)
    try:
        points = document["points"]
        distinct: dict[tuple[str, str], int] = {}
        document["remarks"] = {
            str(k): [distinct.setdefault((w["kind"], w["message"]), len(distinct)) for w in p["warnings"]]
            for k, p in enumerate(points)
            if p["ok"] and p["warnings"]
        }
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
            for name, columns in layout.slices.items():
                row[columns] = np.ravel(np.array(point[name], dtype=np.float64))
    return rows
