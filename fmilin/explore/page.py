"""The page: sliders at the left, at the right charts of what comes of them, and below the command line."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from nicegui import ui
from nicegui.events import ValueChangeEventArguments
from numpy.typing import NDArray

from fmilin.errors import FmilinError
from fmilin.export.files import dumps
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.modes import Mode, cluster_modes
from fmilin.models.mechanism import MechanismDescription
from fmilin.report.figures import COLORS, render_figure
from fmilin.report.loop_margins import describe_feedback
from fmilin.report.mechanism_picture import describe_eigenvalue, find_moving_modes, mechanism_figure, mechanism_motion
from fmilin.report.mechanism_shapes import Shapes
from fmilin.report.numbers import cluster_text

GRAY = COLORS[7]
DIGITS = 6  # of numbers that are drawn
MAX_FREQUENCIES = 200


def eigenvalue_chart(points: Mapping[str, LinearModel]) -> dict[str, Any]:
    """Return the eigenvalues of linear models by name, the present one first."""
    series = []
    for symbol, (name, linear) in zip(("circle", "diamond"), points.items(), strict=False):
        data = [[_short(v.real), _short(v.imag)] for v in _list_eigenvalues(linear)]
        series.append({"name": name, "type": "scatter", "symbol": symbol, "data": data})
    eigenvalues = np.concatenate([_list_eigenvalues(linear) for linear in points.values()])
    margin = 0.1 * float(np.max(np.abs(eigenvalues), initial=0.0)) or 1.0
    axes = {
        "xAxis": _axis("real part [1/s]", 26) | _around_zero(eigenvalues.real, margin),
        "yAxis": _axis("imaginary part [rad/s]", 48) | _around_zero(eigenvalues.imag, margin),
    }
    return _chart(series) | axes | {"grid": {"left": 70, "right": 20, "top": 34, "bottom": 48}}


def _list_eigenvalues(linear: LinearModel) -> NDArray[np.complex128]:
    """Return the eigenvalues in 1/s, each cluster once, with a real part of 0 where that is within the error."""
    values: list[complex] = []
    for cluster in cluster_modes(linear.modes()):
        value = complex(cluster.real, cluster.eigenvalue.imag)
        values += [value, value.conjugate()] if cluster.is_pair else [value]
    return np.array([value for value in values if np.isfinite(value)], dtype=np.complex128)


def list_modes(modes: Sequence[Mode]) -> list[str]:
    """Return a line for each cluster of eigenvalues, with the numbers of its modes."""
    lines, first = [], 1
    for cluster in cluster_modes(modes):
        last = first + cluster.count - 1
        numbers = f"{first}" if last == first else f"{first} to {last}"
        lines.append(f"{numbers}: {cluster_text(cluster)} 1/s")
        first = last + 1
    return lines


def bode_chart(points: Mapping[str, LinearModel], output: str, input: str) -> dict[str, Any]:  # noqa: A002
    """Return magnitude and phase over frequency."""
    import control

    series: list[dict[str, Any]] = []
    for name, linear in points.items():
        i, j = linear.outputs.index_of(output), linear.inputs.index_of(input)
        answer = control.frequency_response(linear.to_control()[i, j], omega_num=MAX_FREQUENCIES)
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
        "color": list(COLORS[:2]),
        "legend": {"data": names, "top": 0, "right": 10, "show": len(names) > 1, "textStyle": {"color": GRAY}},
        "tooltip": {"trigger": "item"},
        "series": series,
    }


def _axis(name: str, gap: int) -> dict[str, Any]:
    line = {"lineStyle": {"color": GRAY, "opacity": 0.25}}
    words: dict[str, Any] = {"color": GRAY}
    return {
        "type": "value", "name": name, "nameLocation": "middle", "nameGap": gap, "scale": True, "splitLine": line,
        "axisLabel": words | {"hideOverlap": True}, "nameTextStyle": words,
    }  # fmt: skip


def _around_zero(values: np.ndarray, margin: float) -> dict[str, float]:
    low, high = np.min(values, initial=0.0) - margin, np.max(values, initial=0.0) + margin
    return {"min": float(f"{low:.2g}"), "max": float(f"{high:.2g}")}


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


HERE, COMPARED = "here", "kept"
STEPS = 200  # of a slider
HEADINGS = {"axis": "Axes", "state": "States", "input": "Inputs", "parameter": "Parameters"}
ENDINGS = (".json", ".mat", ".py", ".mo", ".html")


@dataclass(frozen=True)
class Slider:
    """A quantity that can be changed on the page: its name, unit, value at the start and range."""

    name: str
    kind: str
    unit: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PageChoice:
    """The choices on the page: values that differ from the start, and coordinates."""

    values: Mapping[str, float]
    independent: Sequence[str] = ()
    projects: bool = False  # whether parameters have moved, after which start values need not satisfy the constraints


@dataclass(frozen=True)
class ExploredModel:
    """The explored model, with its sliders and coordinates."""

    title: str
    start: LinearModel
    sliders: Sequence[Slider]
    coordinates: Sequence[str]  # states among which coordinates may be chosen
    answer: Callable[[PageChoice], LinearModel]
    line: Callable[[PageChoice, str], str]  # the command that does the same, and writes a file with such a suffix
    mechanism: Any = None  # the model where it is one, which is drawn


class _Bar(ui.slider):
    """A slider that does not receive its own value again while it moves."""

    LOOPBACK = False


class ExplorePage:
    """The page of one browser."""

    def __init__(self, subject: ExploredModel) -> None:
        self._subject, self._linear = subject, subject.start
        self._compared: LinearModel | None = None
        self._values: dict[str, float] = {}
        self._busy = self._again = False
        self._build()
        self._show(subject.start)
        ui.timer(0.0, self._draw, once=True)

    def _build(self) -> None:
        subject = self._subject
        ui.add_css("html:has(body.body--dark) { color-scheme: dark }")  # of scroll bars
        ui.query(".nicegui-content").classes("p-0 gap-0")
        with ui.row().classes("w-full items-center px-4 pt-3 gap-4"):
            ui.label(subject.title).classes("text-xl font-bold")
            self._order = ui.label().classes("text-gray-500")
            ui.space()
            ui.button("Keep this point", on_click=self._keep).props("outline dense no-caps").classes("px-2")
            ui.button("Back to the start", on_click=self._back).props("outline dense no-caps").classes("px-2")
        with ui.element("div").classes("w-full grid grid-cols-1 md:grid-cols-[20rem_1fr] items-start gap-4 p-4"):
            with ui.column().classes("w-full gap-1 max-h-[40vh] md:max-h-[80vh] overflow-auto flex-nowrap pr-3"):
                self._sliders: dict[str, ui.slider] = {}
                for kind, group in groupby(subject.sliders, key=lambda slider: slider.kind):
                    ui.label(HEADINGS.get(kind, kind)).classes("font-bold text-gray-500 pt-2")
                    self._sliders |= {slider.name: self._slider(slider) for slider in group}
                if subject.coordinates:
                    choose = ui.select(list(subject.coordinates), multiple=True, label="Coordinates", value=[])
                    self._coordinates = choose.classes("w-full").props("use-chips dense").on_value_change(self._ask)
            with ui.element("div").classes("w-full grid grid-cols-1 lg:grid-cols-2 items-start gap-4 min-w-0"):
                with self._card("Eigenvalues"):
                    self._eigenvalues = ui.echart({}).classes("w-full h-72")
                    self._modes = ui.column().classes("gap-0 w-full").props("id=modes")
                with self._card("Frequency response").classes("lg:row-span-2"):
                    self._build_bode()
                if subject.mechanism is not None:
                    with self._card("Mechanism"):
                        swing = ui.select({0: "at the point"}, value=0, label="drawn", on_change=self._draw)
                        self._mode = swing.props("dense id=swing").classes("w-full")
                        self._picture = (
                            ui.image()
                            .classes("w-full dark:invert dark:hue-rotate-180 dark:mix-blend-screen")
                            .props("fit=contain id=picture")
                        )
        with ui.column().classes("w-full px-4 pb-4 gap-1"):
            self._problem = ui.label().classes("text-red-700 dark:text-red-300 font-medium").props("id=problem")
            self._remarks = ui.column().classes("gap-0 text-sm text-amber-800 dark:text-amber-200")
            with ui.row().classes("w-full items-center gap-2"):
                self._ending = ui.toggle(["table", *ENDINGS], value="table", on_change=self._write_line)
                self._ending.props("dense no-caps")
                for name, action in (("Copy the line", self._copy), ("Save the file", self._save)):
                    ui.button(name, on_click=action).props("outline dense no-caps").classes("px-2")
                self._time = ui.label().classes("text-sm text-gray-500").props("id=time")
            self._line = ui.label().classes("font-mono text-sm break-all select-all").props("id=line")

    def _card(self, title: str) -> ui.card:
        card = ui.card().classes("w-full p-3 gap-1 min-w-0").props("flat bordered")
        with card:
            ui.label(title).classes("font-bold")
        return card

    def _build_bode(self) -> None:
        start = self._subject.start
        self._bode: ui.echart | None = None
        if not (len(start.inputs) and len(start.outputs)):
            ui.label("The linear model has no input or no output.").classes("text-gray-500")
            return
        with ui.row().classes("w-full gap-4"):
            inputs, outputs = list(start.inputs.names), list(start.outputs.names)
            self._input = ui.select(inputs, value=inputs[0], label="from", on_change=self._draw_charts)
            self._output = ui.select(outputs, value=outputs[0], label="to", on_change=self._draw_charts)
            for select in (self._input, self._output):
                select.props("dense").classes("grow")
        self._bode = ui.echart({}).classes("w-full h-96")
        self._margins = ui.label().classes("text-sm").props("id=margins")

    def _slider(self, slider: Slider) -> ui.slider:
        with ui.row().classes("w-full items-center justify-between no-wrap gap-2"):
            unit = f" [{slider.unit}]" if slider.unit else ""
            ui.label(f"{slider.name}{unit}").classes("truncate").tooltip(f"{slider.kind} {slider.name}{unit}")
            number = ui.number(format="%.6g").props("dense borderless input-class=text-right").classes("w-28")
        step = (slider.high - slider.low) / STEPS
        bar = _Bar(min=slider.low, max=slider.high, step=step, value=slider.value)
        bar.props("dense").classes("w-full -mt-3")
        # In a text of props, a quote in the name would end the value.
        bar.props["aria-label"] = slider.name
        number.bind_value(bar)
        bar.on_value_change(partial(self._move_slider, slider))
        return bar

    async def _move_slider(self, slider: Slider, event: ValueChangeEventArguments[float | None]) -> None:
        if event.value is None:  # the field of its number is empty
            return
        if event.value == slider.value:
            self._values.pop(slider.name, None)
        else:
            self._values[slider.name] = event.value
        await self._ask()

    @property
    def _choice(self) -> PageChoice:
        subject = self._subject
        chosen = self._coordinates.value if subject.coordinates else ()
        kinds = {s.kind for s in subject.sliders if s.name in self._values}
        return PageChoice(dict(self._values), tuple(chosen), bool(subject.coordinates) and "parameter" in kinds)

    async def _ask(self) -> None:
        """Have the present choice answered; what is chosen meanwhile is answered next, what lies between is not."""
        self._again = True
        if self._busy:
            return
        self._busy = True
        try:
            while self._again:
                self._again, choice = False, self._choice
                begin = time.perf_counter()
                try:
                    linear = await asyncio.to_thread(self._subject.answer, choice)
                except FmilinError as error:
                    self._problem.text = str(error)
                    self._write_line()
                    continue
                self._show(linear)
                self._time.text = f"computed in {1000 * (time.perf_counter() - begin):.0f} ms"
                await self._draw()
        finally:
            self._busy = False

    def _show(self, linear: LinearModel) -> None:
        self._linear = linear
        self._problem.text = ""
        self._order.text = f"{len(linear.states)} independent of {len(linear.full_states)} states"
        self._draw_charts()
        self._write_line()
        for column, texts in (
            (self._modes, list_modes(linear.modes())),
            (self._remarks, [f"{w.heading}: {w}" for w in linear.warnings]),
        ):
            column.clear()
            with column:
                for text in texts:
                    ui.label(text)

    def _draw_charts(self) -> None:
        points = {HERE: self._linear} | ({} if self._compared is None else {COMPARED: self._compared})
        _replace(self._eigenvalues, eigenvalue_chart(points))
        if self._bode is not None:
            _replace(self._bode, bode_chart(points, self._output.value, self._input.value))
            self._margins.text = describe_feedback(self._linear, self._output.value, self._input.value)

    async def _draw(self) -> None:
        """Draw the mechanism at the point, and then moving in the mode that is chosen."""
        model, linear = self._subject.mechanism, self._linear
        if model is None or self._again:
            return
        parameters = {n: v for n, v in linear.point.parameters.items() if n in model.parameters}
        drawn = (model.with_parameters(parameters) if parameters else model).description
        self._picture.set_source(await asyncio.to_thread(_picture, drawn, linear, 0))
        named_modes = enumerate(map(describe_eigenvalue, find_moving_modes(linear, Shapes(drawn))), 1)
        modes = {0: "at the point"} | {k: f"{k}: {name}" for k, name in named_modes}
        if modes != self._mode.options:
            self._mode.set_options(modes, value=self._mode.value if self._mode.value in modes else 0)
        if self._mode.value and not self._again:
            self._picture.set_source(await asyncio.to_thread(_picture, drawn, linear, self._mode.value))

    def _write_line(self) -> None:
        ending = self._ending.value
        self._line.text = self._subject.line(self._choice, "" if ending == "table" else ending)

    def _copy(self) -> None:
        ui.clipboard.write(self._line.text)

    def _save(self) -> None:
        """Let the browser keep the file that the line would write."""
        name = f"linear{'.json' if self._ending.value == 'table' else self._ending.value}"
        ui.download.content(dumps(self._linear, name), name)

    def _keep(self) -> None:
        self._compared = self._linear
        self._draw_charts()

    def _back(self) -> None:
        for slider in self._subject.sliders:
            self._sliders[slider.name].set_value(slider.value)
        if self._subject.coordinates:
            self._coordinates.set_value([])


def _picture(drawn: MechanismDescription, linear: LinearModel, number: int) -> str:
    """Return the address of a picture at the point, or of one that swings in a mode."""
    if number:
        content, kind = mechanism_motion(drawn, linear, numbers=[number]), "gif"
    else:
        content, kind = render_figure(mechanism_figure(drawn, linear, modes=0), dpi=100), "png"
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def _replace(chart: ui.echart, options: dict[str, Any]) -> None:
    chart.options.clear()
    chart.options.update(options)
    chart.update()
