"""Charts that the browser draws: eigenvalues, and the frequency response of one channel, here and at a second point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fmilin.linear_model.model import LinearModel
from fmilin.output.report.figures import COLORS

HERE, KEPT = COLORS[0], COLORS[7]
DIGITS = 6  # of numbers that are drawn
MOST_FREQUENCIES = 200


def eigenvalue_chart(points: Mapping[str, LinearModel]) -> dict[str, Any]:
    """Return the eigenvalues of linear models by name, the present one first."""
    series = []
    for symbol, (name, linear) in zip(("circle", "diamond"), points.items(), strict=False):
        data = [[_short(v.real), _short(v.imag)] for v in linear.eigenvalues()]
        series.append({"name": name, "type": "scatter", "symbol": symbol, "data": data})
    every = np.concatenate([linear.eigenvalues() for linear in points.values()])
    margin = 0.1 * float(np.max(np.abs(every), initial=0.0)) or 1.0
    axes = {
        "xAxis": _axis("real part [1/s]", 26) | _around_zero(every.real, margin),
        "yAxis": _axis("imaginary part [1/s]", 48) | _around_zero(every.imag, margin),
    }
    return _chart(series) | axes | {"grid": {"left": 70, "right": 20, "top": 34, "bottom": 48}}


def bode_chart(points: Mapping[str, LinearModel], output: str, input: str) -> dict[str, Any]:  # noqa: A002
    """Return magnitude and phase over frequency."""
    import control

    series: list[dict[str, Any]] = []
    for name, linear in points.items():
        i, j = linear.outputs.index_of(output), linear.inputs.index_of(input)
        answer = control.frequency_response(linear.to_control()[i, j], omega_num=MOST_FREQUENCIES)
        omega, response = np.asarray(answer.frequency), np.asarray(answer.complex).ravel()
        decibels = 20 * np.log10(np.maximum(np.abs(response), 1e-300))
        phase = np.degrees(np.unwrap(np.angle(response * np.exp(1e-9j))))  # which falls where it jumps by half a turn
        for k, values in enumerate((decibels, phase)):
            data = [[_short(w), _short(v)] for w, v in zip(omega, values, strict=True)]
            line = {"name": name, "type": "line", "showSymbol": False, "data": data, "lineStyle": {"width": 2}}
            series.append(line | {"xAxisIndex": k, "yAxisIndex": k})
    across = [{**_axis("", 0), "type": "log", "gridIndex": k} for k in (0, 1)]
    across[1] |= {"name": "frequency [rad/s]", "nameGap": 26}
    up = [{**_axis(name, 48), "gridIndex": k} for k, name in enumerate(("magnitude [dB]", "phase [°]"))]
    grids = [
        {"left": 70, "right": 20, "top": 34, "height": "34%"},
        {"left": 70, "right": 20, "bottom": 48, "height": "34%"},
    ]
    return _chart(series) | {"xAxis": across, "yAxis": up, "grid": grids}


def _chart(series: list[dict[str, Any]]) -> dict[str, Any]:
    names = list(dict.fromkeys(s["name"] for s in series))
    return {
        "animation": False,
        "backgroundColor": "transparent",
        "color": [HERE, COLORS[1]],
        "legend": {"data": names, "top": 0, "right": 10, "show": len(names) > 1, "textStyle": {"color": KEPT}},
        "tooltip": {"trigger": "item"},
        "series": series,
    }


def _axis(name: str, gap: int) -> dict[str, Any]:
    line = {"lineStyle": {"color": KEPT, "opacity": 0.25}}
    words = {"color": KEPT}
    return {
        "type": "value", "name": name, "nameLocation": "middle", "nameGap": gap, "scale": True, "splitLine": line,
        "axisLabel": words, "nameTextStyle": words,
    }  # fmt: skip


def _around_zero(values: np.ndarray, margin: float) -> dict[str, float]:
    low, high = np.min(values, initial=0.0) - margin, np.max(values, initial=0.0) + margin
    return {"min": float(f"{low:.2g}"), "max": float(f"{high:.2g}")}


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
