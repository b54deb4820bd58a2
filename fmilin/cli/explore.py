"""``fmilin explore MODEL|FAMILY``: a page in the browser on which a model is linearized as sliders move."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli import model_options
from fmilin.cli.command import Command
from fmilin.cli.derive import MODEL, OPTIONS, options_of_commands, switch, take
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.linear_options import linearization_options
from fmilin.cli.request import CommandRequest, build_request, complete_point, open_model, refuse_points
from fmilin.cli.streams import ResultStream
from fmilin.errors import ModelCrashError, UsageError
from fmilin.fmi.client.restrictions import apply_limits
from fmilin.formats import matches_suffix
from fmilin.loading.source_kind import is_fmu, is_system

if TYPE_CHECKING:
    from fmilin.explore.page import ExploredModel, PageChoice, Slider
    from fmilin.linear_model.model import LinearModel
    from fmilin.model.interface import Model

_ARGUMENTS = "fmilin.cli.explore.arguments"
STAY = "--no-browser"
PROGRAM = ("fmilin", "linearize")
MAX_PARAMETERS = 100  # of an FMU, with sliders; others where --set names them


class _Explore(Command):
    """Remembers what was typed: the page writes command lines that begin with it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_ARGUMENTS] = [a for a in args if a != STAY]
        return super().parse_args(ctx, args)


@options_of_commands
class Opening:
    """How the page is opened."""

    no_browser: bool = switch("Only print the page's address.", OPTIONS)


@click.command(cls=_Explore, examples=["fmilin explore loader.toml", "fmilin explore family.nc"])
@MODEL
@take("opening", Opening)
@model_options.model_options(model_options.DiscoveryOptions)
@model_options.POINT_OPTIONS
@linearization_options("explore")
def command(model: str, opening: Opening, **request_options: Any) -> int:
    """Open a page on which sliders move the point and the parameters, and the linear model follows.

    MODEL may be a file of a family ({families}): the sliders move between its points. The page is on this machine
    alone; Ctrl-C ends it. Needs fmilin[explore].
    """
    request = build_request(model, **request_options)
    typed = click.get_current_context().meta[_ARGUMENTS]

    def job(runner: JobRunner) -> None:
        try:
            from fmilin.explore.page import ExplorePage
        except ImportError:
            raise UsageError("'fmilin explore' needs NiceGUI: pip install 'fmilin[explore]'.") from None
        import webbrowser

        from fmilin.explore.server import serve

        if matches_suffix(model, "family"):
            refuse_points(model, request, None)
            subject = _of_family(model)
        else:
            subject = _of_model(complete_point(request), typed, runner)
        open_browser = None if opening.no_browser else webbrowser.open
        serve(partial(ExplorePage, subject), f"fmilin: {subject.title}", _say_address, open_browser)

    return request.work(job)


def _say_address(address: str) -> None:
    sys.stderr.write(f"{address}\nCtrl-C ends it.\n")
    sys.stderr.flush()


def _of_family(source: str) -> ExploredModel:
    from fmilin.explore.page import ExploredModel, Slider
    from fmilin.families.family import LinearFamily
    from fmilin.report.family_pictures import find_unit

    family = LinearFamily.load(Path(source))
    axes = {name: values for name, values in family.axes.items() if len(values) > 1}
    fixed_values = {name: float(values[0]) for name, values in family.axes.items()}
    sliders = [
        Slider(name, "axis", find_unit(family, name) or "", fixed_values[name], float(v.min()), float(v.max()))
        for name, v in axes.items()
    ]

    def answer(choice: PageChoice) -> LinearModel:
        return family.interpolate(fixed_values | dict(choice.values))

    def line(choice: PageChoice, suffix: str) -> str:
        at = f"fl.LinearFamily.load({source!r}).interpolate({fixed_values | dict(choice.values)})"
        then = f"{at}.save('linear{suffix}')" if suffix else f"print({at})"
        return shlex.join(["python", "-P", "-c", f"import fmilin as fl; {then}"])

    return ExploredModel(source, family.interpolate(fixed_values), sliders, (), answer, line)


def _of_model(request: CommandRequest, typed: Sequence[str], runner: JobRunner) -> ExploredModel:
    from fmilin.explore.page import ExploredModel, PageChoice
    from fmilin.models.mechanism import MechanismDescription

    loads_anew = is_fmu(request.source) or is_system(request.source)  # parameters are fixed once they are loaded
    model = None if loads_anew else open_model(request, runner)
    answer = partial(_answer_anew, request) if model is None else partial(_answer, model, request)
    start = answer(PageChoice({}))
    states = start.full_states.names
    parameters = {**_read_parameters(request), **request.point.settings} if model is None else model.parameters
    return ExploredModel(
        start.model.name,
        start,
        _sliders(start, parameters, _read_units(request, model)),
        states if len(states) > len(start.states) else (),
        answer,
        lambda choice, suffix: shlex.join(_line(request, typed, choice, suffix)),
        model if isinstance(getattr(model, "description", None), MechanismDescription) else None,
    )


def _read_parameters(request: CommandRequest) -> dict[str, float]:
    """Return the parameters that an FMU declares with a value: nothing of its code is loaded for that."""
    from fmilin.fmi.read.archive import read_description

    variables = read_description(request.source, request.load.fmu).variables if is_fmu(request.source) else ()
    real = [v for v in variables if v.causality == "parameter" and v.type in ("Real", "Float64") and not v.dimensions]
    return {v.name: float(v.start) for v in real[:MAX_PARAMETERS] if v.start}


def _answer(model: Model, request: CommandRequest, choice: PageChoice) -> LinearModel:
    """Return the linear model of what is chosen, of the model as it was opened."""
    from fmilin.linearization.linearize import linearize_request
    from fmilin.trimming.request_point import find_point

    moved = choice.values
    parameters = {name: value for name, value in moved.items() if name in model.parameters}
    trim = request.point.trim and replace(request.point.trim, fixed={**request.point.trim.fixed, **moved})
    settings = {**request.point.settings, **moved}
    point = replace(request.point, settings=settings, trim=trim, project=request.point.project or choice.projects)
    model = model.with_parameters(parameters) if parameters else model
    how = replace(request.how, independent=choice.independent or request.how.independent)
    return linearize_request(model, find_point(model, point), how)


def _answer_anew(request: CommandRequest, choice: PageChoice) -> LinearModel:
    """Return the linear model of what is chosen, of FMUs that are loaded for it and closed."""
    from fmilin.cli.linear_models import linear_model

    trim, settings = request.point.trim, request.point.settings
    if trim is None:
        settings = {**settings, **choice.values}
    else:
        fixed = {**trim.fixed, **({**settings, **choice.values} if choice.values else {})}
        trim, settings = replace(trim, fixed=fixed), {n: v for n, v in settings.items() if n not in fixed}
    point = replace(request.point, settings=settings, trim=trim, project=request.point.project or choice.projects)
    how = replace(request.how, independent=choice.independent or request.how.independent)
    runner = JobRunner(ResultStream())
    try:
        with apply_limits(request.running.limits()):  # the page answers in a thread of its own
            linear, _ = linear_model(replace(request, point=point, how=how), runner)
    finally:
        for model in reversed(runner.borrowed):
            with suppress(ModelCrashError):  # the answer is whole
                model.close()
    return linear


def _line(request: CommandRequest, typed: Sequence[str], choice: PageChoice, suffix: str) -> list[str]:
    """Return the command that does the same: what was typed, with the values that have moved in place of its own."""
    words = [*PROGRAM, *typed]
    if choice.values:
        trim, settings = request.point.trim, request.point.settings
        fixed = {**settings, **choice.values} if trim is None else {**trim.fixed, **choice.values}
        rest = {} if trim is None else {n: v for n, v in settings.items() if n not in fixed}
        words = [*PROGRAM, *_without_values(typed)]
        words += [
            w for n, v in fixed.items() for w in ("--set" if trim is None else "--fix", f"{_quote_name(n)}={v!r}")
        ]
        words += [w for n, v in rest.items() for w in ("--set", f"{_quote_name(n)}={v!r}")]
    if choice.independent:
        words += ["--independent", ",".join(map(_quote_name, choice.independent))]
    if choice.projects and "--project" not in typed:
        words += ["--project"]
    return [*words, "-o", f"linear{suffix}"] if suffix else words


def _quote_name(name: str) -> str:
    """Return a name as a list of names takes it."""
    return f"`{name}`" if "," in name else name


def _without_values(typed: Sequence[str]) -> list[str]:
    words = iter(typed)
    remaining_words = []
    for word in words:
        if word in ("--set", "--fix"):
            next(words, None)
        elif not word.startswith(("--set=", "--fix=")):
            remaining_words.append(word)
    return remaining_words


def _read_units(request: CommandRequest, model: Model | None) -> dict[str, str]:
    """Return the units of parameters, as far as the model or the description of the FMU states them."""
    from fmilin.fmi.read.archive import read_description
    from fmilin.model.capabilities import HasParameterSignals

    if model is None:
        variables = read_description(request.source, request.load.fmu).variables if is_fmu(request.source) else ()
        return {variable.name: variable.unit for variable in variables}
    signals = model.describe_parameters() if isinstance(model, HasParameterSignals) else {}
    return {name: signal.unit for name, signal in signals.items()}


def _sliders(start: LinearModel, parameters: Mapping[str, float], units: Mapping[str, str]) -> list[Slider]:
    """Return what can be moved: independent states, inputs, and parameters that are known by name."""
    from fmilin.explore.page import Slider
    from fmilin.signals import Signal

    quantities = [("state", s, start.point.states[s.name]) for s in start.states if s.name in start.point.states]
    quantities += [("input", s, start.point.inputs[s.name]) for s in start.inputs if s.name in start.point.inputs]
    named = {**start.point.states, **start.point.inputs}
    quantities += [
        ("parameter", Signal(name, units.get(name, "")), value)
        for name, value in parameters.items()
        if name not in named
    ]
    return [Slider(s.name, kind, s.unit, v, *_range(kind, v, s.nominal)) for kind, s, v in quantities]


def _range(kind: str, value: float, nominal: float | None) -> tuple[float, float]:
    """Return a range around a value: of parameters that are not zero, up to twice it."""
    if kind == "parameter" and value:
        low, high = sorted((0.2 * value, 2 * value))
        return low, high
    reach = max(abs(value), nominal or 1.0)
    return value - reach, value + reach
