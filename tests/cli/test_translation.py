"""Messages of the core name Python keywords; the terminal shows the options that do the same."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import click
import numpy as np
import pytest

import fmilin as fl
from fmilin.cli import translation
from fmilin.cli.main import COMMANDS, program
from fmilin.cli.translation import CALLS, CONDITIONING, LIMITS, UNDESCRIBED, in_options, log_in_options, meanings
from fmilin.discovery.tangent import linearize_on_tangent
from fmilin.errors import FmilinError
from fmilin.formats import Writing
from fmilin.linear_model.model import Plots
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, four_bar, rolling_disk
from tests.by_hand import FunctionModel, Parts
from tests.cli.conftest import Run
from tests.linearization.test_truth import coarse

ROOT = Path(fl.__file__).parents[1]
CORE = [
    path
    for folder in (ROOT / "fmilin", *(ROOT / "adapters").glob("*/fmilin_*"))
    for path in sorted(folder.rglob("*.py*"))
    if path.suffix in (".py", ".pyi") and not path.is_relative_to(ROOT / "fmilin" / "cli")
]


class Switch(FunctionModel):
    """An event as soon as x moves: to the right, or with ``surface`` below to the left as well."""

    both = False

    def event_indicators(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        return np.array([x[0] - 1.0, 1.0 - x[0]] if self.both else [x[0] - 1.0])


class Clutch(Switch):
    both = True


def switch() -> fl.Model:
    return Switch(Parts(["x"], [1.0], lambda t, s, u: -(s**2)))


def clutch() -> fl.Model:
    return Clutch(Parts(["x"], [1.0], lambda t, s, u: -(s**2)))


def pendulum_without_constraints() -> fl.Model:
    return cartesian_pendulum(length=2.0).with_constraints([])


def _wrong_length() -> object:
    model = cartesian_pendulum(length=2.0).with_constraints([fl.Constraint.from_text("x^2 + y^2 - 9")])
    return fl.linearize(model)


HERE = "tests.cli.test_translation"
CASES: dict[str, tuple[Callable[[], object], list[str], str, str]] = {
    "keep_inaccurate": (
        lambda: fl.linearize(coarse()),
        ["linearize", "tests.linearization.test_truth:coarse"],
        "keep_inaccurate=True returns the linear model",
        "--keep-inaccurate returns the linear model",
    ),
    "hold_modes": (
        lambda: fl.linearize(clutch()),
        ["linearize", f"{HERE}:clutch"],
        "keep the present mode with hold_modes=True, or",
        "keep the present mode with --hold-modes, or",
    ),
    "one_sided": (
        lambda: fl.linearize(switch()),
        ["linearize", f"{HERE}:switch"],
        "one_sided='left'",
        "--one-sided left",
    ),
    "free": (
        lambda: fl.trim(four_bar(), guess={"torque": 1.0}),
        ["trim", "fmilin.systems:four_bar", "--guess", "torque=1"],
        "Solve for it with free=['torque'], or fix it at another value with fixed={'torque': VALUE}.",
        "Solve for it with --free torque, or fix it at another value with --fix torque=VALUE.",
    ),
    "project": (
        _wrong_length,
        ["linearize", "fmilin.systems:cartesian_pendulum(length=2.0)", "--constraint", "x^2 + y^2 - 9"],
        "fl.operating_point(model, {'NAME': VALUE}) and the others are solved for, or use the nearest consistent "
        "point with project=True",
        "--set NAME=VALUE and the others are solved for, or use the nearest consistent point with --project",
    ),
    "independent": (
        lambda: linearize_on_tangent(cartesian_pendulum(length=2.0), independent=["y", "vy"]),
        ["linearize", "fmilin.systems:cartesian_pendulum(length=2.0)", "--tangent-only", "--independent", "y,vy"],
        "Name others with independent=, or none.",
        "Name others with --independent, or none.",
    ),
    "trim and discover": (
        lambda: linearize_on_tangent(rolling_disk(speed=2.0)),
        ["linearize", "fmilin.systems:rolling_disk(speed=2.0)", "--tangent-only"],
        "Find one with fl.trim(model), or find the constraints with fl.discover(model).",
        "Find one with --trim, or find the constraints with --discover.",
    ),
    "stepping": (
        lambda: fl.linearize(four_bar(), stepping=fl.Stepping(lifted=True)),
        ["linearize", "fmilin.systems:four_bar", "--lifted"],
        "Leave out lifted=True; fl.reduction.discretize(linear, T)",
        "Leave out --lifted; --discretize zoh --sample-time T",
    ),
    "period": (
        lambda: fl.periodic_orbit(cartesian_pendulum(length=2.0)),
        ["floquet", "fmilin.systems:cartesian_pendulum(length=2.0)"],
        "(start={'NAME': VALUE}), or the period of the excitation (period=)",
        "(--set NAME=VALUE), or the period of the excitation (--period)",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_python_reads_the_keyword_and_the_terminal_shows_the_option(case: str, run: Run) -> None:
    ask, command, keyword, option = CASES[case]
    with pytest.raises(FmilinError) as caught:
        ask()
    assert keyword in str(caught.value)
    assert "--" not in str(caught.value)
    done = run(*command)
    assert done.status == caught.value.exit_status
    assert option in done.err
    assert keyword not in done.err


def test_warnings_in_the_table_show_options_and_in_files_keywords(run: Run, tmp_path: Path) -> None:
    table = run("linearize", f"{HERE}:pendulum_without_constraints")
    shown = " ".join(table.out.split())
    assert "--discover distinguishes these cases and finds the constraints" in shown
    assert '--constraint "x^2 + y^2 - L^2"' in shown
    assert run("linearize", f"{HERE}:pendulum_without_constraints", "-o", "a.json").status == 0
    document = json.loads(run("linearize", f"{HERE}:pendulum_without_constraints", "--json").out)
    for texts in (document["warnings"], json.loads((tmp_path / "a.json").read_text())["warnings"]):
        written = json.dumps(texts)
        assert "fl.discover(model) distinguishes these cases and finds the constraints" in written
        assert "--" not in written
    said = run("linearize", f"{HERE}:pendulum_without_constraints", "-o", "b.mat").err
    assert "--discover distinguishes these cases" in said


def test_a_command_without_the_option_is_pointed_to_the_command_that_does_it() -> None:
    text = "Use fl.discover(model), or fl.trim(model, free=['u'])."
    linearize, sweep = (program.get_command(click.Context(program), name) for name in ("linearize", "sweep"))
    assert linearize is not None
    assert sweep is not None
    with click.Context(linearize):
        assert in_options(text) == "Use --discover, or --trim --free u."
    with click.Context(sweep):
        assert in_options(text) == "Use 'fmilin discover', or --trim --free u."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("keep_inaccurate=True returns it.", "--keep-inaccurate returns it."),
        ('Name it: free=["torque", "der(x)"].', 'Name it: --free "torque,der(x)".'),
        ("(free=['a, b', 'q[1,2]'])", "(--free '`a, b`,q[1,2]')"),
        ("fixed={'phi': 1.0, 'w': -2}", "--fix phi=1.0 --fix w=-2"),
        ("bounds={'a': (LO, HI)}", "--bound a=LO:HI"),
        ("vary={'v': [1, 2.5]}", '--vary "v=[1,2.5]"'),
        ("parameters={'L': VALUE} or parameters=['L']", "--set L=VALUE or --parameters L"),
        ("constraints=['x - y', 'gap']", '--constraint "x - y" --constraint gap'),
        ("constraints=[...]", "--constraint"),
        ("settings={'x': ...} contradicts saved=", "--set x contradicts --point"),
        ("Start elsewhere (guess=), or release it (free=).", "Start elsewhere (--guess), or release it (--free)."),
        ("stepping=fl.Stepping(lifted=True, step=0.1);", "--lifted --step 0.1;"),
        ("fmu=FmuOptions(most_bytes=...)", "--unpack-limit"),
        ("options={'library': ['my folder'], 'keyframe': 'home'}", '--library "my folder" --keyframe home'),
        ("fl.Limits(unrestricted=True), fl.Limits(memory=GIB * 2**30)", "--no-isolation, --memory GIB"),
        ("fl.Limits(read=['PATH'], network=True)", "--allow-read PATH --allow-network"),
        ("fl.Limits(processes=COUNT)", "--allow-processes"),
        ("fl.snapshots(model, times=[2.5])", "--simulate-to 2.5"),
        ("fl.operating_point(model, {'NAME': VALUE}, time=T)", "--set NAME=VALUE --time T"),
        ("fl.audit(loop) lists them", "'fmilin audit' lists them"),
        ("fl.sandbox_report() lists", "'fmilin info MODEL --verbose' lists"),
        ("fl.sweep(model, {'L': [V1, V2]})", "'fmilin sweep --vary \"L=[V1,V2]\"'"),
        ("fl.reduction.balance(linear, 'norms')", "--balance norms"),
        ("Conditioning(hold='zoh', sample_time=0.01)", "--discretize zoh --sample-time 0.01"),
    ],
)
def test_forms_and_their_options(text: str, shown: str) -> None:
    assert in_options(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "'free=[\"x\"]' is not an input",  # a name in quotes
        "The file 'a keep_inaccurate=True b.mat' is missing.",
        "free=1.5 and hold_modes=1 and step='x' are of other kinds",
        "keep_inaccurate=False",
        "budgets=3, my_free=['x'], model.free=['x']",  # longer names
        "keep_inaccurate=Truest, step=2.5s, method=response",
        "free=['x', fixed={'y': ",  # brackets that do not close
        "free=[x() for x in y], fixed={**a}",
        "Write --set time=1.5 or --fix a=1,time=2",  # values of an option
        "lin.save('plant.mo', deviation=True)",  # in a call of another function
        "fl.design.ModeGoal(near=2j)",
        "start=..., wrapped_outputs=[]",
        "x = 3, a == b, step = 2",
        "",
    ],
)
def test_everything_else_stays_as_it_is(text: str) -> None:
    assert in_options(text) == text


def test_long_lists_and_open_brackets_are_read_to_their_end() -> None:
    names = ",".join(f"a{i}" for i in range(2000))
    text = f"--inputs {names} is wrong: free=['x'], {'f(' * 2000}"
    assert in_options(text) == text.replace("free=['x']", "--free x")


def test_what_the_sandbox_logs_is_worded_for_a_command(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("fmilin.sandbox")
    with caplog.at_level(logging.WARNING), log_in_options():
        logger.warning("not kept from %s: fl.sandbox_report() lists more", "files")
    logger.warning("fl.sandbox_report() lists more")
    first, second = (record.getMessage() for record in caplog.records)
    assert first == "not kept from files: 'fmilin info MODEL --verbose' lists more"
    assert second == "fl.sandbox_report() lists more"


def _all_options() -> set[str]:
    commands = [program.get_command(click.Context(program), name) for name in COMMANDS]
    return {name for command in commands if command for option in command.params for name in option.opts}


def test_every_option_and_command_of_the_translation_exists() -> None:
    named = {meaning.option for each in meanings().values() for meaning in each}
    named |= {meaning.option for table in (UNDESCRIBED, LIMITS, CONDITIONING) for meaning in table.values()}
    named |= {m.option for call in CALLS.values() for m in (call.keywords or {}).values()}
    named |= set(re.findall(r"--[a-z][\w-]*", " ".join(f"{call.option} {call.command}" for call in CALLS.values())))
    assert named - _all_options() == set()
    assert {call.command.partition(" ")[0] for call in CALLS.values()} - {"", *COMMANDS} == set()


@pytest.mark.parametrize("name", CALLS)
def test_every_call_of_the_translation_exists_with_its_keywords(name: str) -> None:
    path = {"FmuOptions": "fmilin.options.FmuOptions", "Conditioning": "fmilin.reduction.Conditioning"}.get(name, name)
    owner, _, attribute = path.replace("fl.", "fmilin.", 1).rpartition(".")
    results = {"lin": fl.LinearModel, "lin.plot": Plots}
    function = getattr(results.get(owner) or importlib.import_module(owner), attribute)
    parameters = inspect.signature(function).parameters
    call = CALLS[name]
    taken = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    assert taken or {*call.positions, *(call.keywords or {})} <= {*parameters}
    assert [*parameters][1 : 1 + len(call.positions)] == list(call.positions)


# -- the sources ------------------------------------------------------------------------------------------------------

OTHER_PROGRAMS = {
    "fmilin/codegen/compiler.py": ["--install", "--version"],  # of xcode-select and of C compilers
    "fmilin/explore/page.py": ["--dark"],  # of CSS
    "fmilin/fmi/client/process.py": ["--memory", "--copies"],  # of the host
    "fmilin/fmi/client/pipes_posix.py": ["--keep-descriptor", "--client-descriptor", "--report"],
    "fmilin/fmi/client/pipes_windows.py": ["--client-descriptor"],
    "fmilin/fmi/client/restrictions.py": [  # of the host, too
        *("--memory", "--processes", "--threads", "--copies", "--file-size", "--read", "--network"),
        "--no-restrictions",
    ],
    "fmilin/fmi/read/component.py": ["--read", "--scratch"],
    "fmilin/fmi/client/wine.py": [  # of dpkg, of the host, and of the host's sandbox around wine
        "--add-architecture",
        *("--run", "--processes", "--memory", "--scratch", "--local-sockets", "--require", "--read"),
        "--keep-descriptor",
    ],
    "fmilin/fmi/host/sandboxed_run.py": ["--run", "--scratch", "--client-descriptor"],
    "fmilin/fmi/read/library.py": [  # of the linker and the host
        *("--defsym", "--file-size", "--scratch", "--scratch-size", "--write", "--read"),
    ],
    "fmilin/wrapping/__init__.py": ["--handle-state"],  # of pythonfmu
}
DESCRIPTIONS = ("fmilin/options/", "fmilin/support/option.py")
"""Where options are described: there each field may name its option, in ``flag`` and ``old_flags``."""


def _texts_without_flags(source: str) -> str:
    """Return a module's text without the values of ``flag`` and ``old_flags``, and without comments."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            node.keywords = [k for k in node.keywords if k.arg not in ("flag", "old_flags")]
    return ast.unparse(tree)


def test_no_module_of_the_core_names_an_option_of_the_command_line() -> None:
    named = {}
    for path in CORE:
        where = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        if where.startswith(DESCRIPTIONS):
            text = _texts_without_flags(text)
        options = [o for o in re.findall(r"--[a-z][\w-]*", text) if o not in OTHER_PROGRAMS.get(where, ())]
        if options:
            named[where] = options
    assert named == {}


KEYWORD = re.compile(
    r"(?<![\w.\-\"'/?&<%`{}\\])([a-z][a-z_0-9]*)="
    r"(?=True|False|None|\.\.\.|\[|\{|'|\"|\x00|[A-Z0-9(]|[\s,);.:]|$)"
)
TOKEN = re.compile(
    r'\"\"\"(?:.|\n)*?\"\"\"|#.*|(?P<f>[rf]*)(?P<text>"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')'
)  # documentation, comments, and texts
XML_ATTRIBUTES = {"active", "auto", "link", "rotation_format"}  # which messages of MJCF, URDF and SDF files name
FIELD = re.compile(r"(?<!\{)\{(?!\{)[^{}]*\}")


def _sentences(source: str) -> list[str]:
    """Return the texts of a module of some words, a NUL for each value in them."""
    texts = [(m["text"][1:-1], "f" in m["f"]) for m in TOKEN.finditer(source) if m["text"]]
    sentences = [FIELD.sub("\x00", text) if formatted else text for text, formatted in texts]
    return [text for text in sentences if len(re.findall(r"[a-z]{2,} ", text)) >= 3]


def _own_parameters(source: str) -> set[str]:
    """Return the parameters of the functions of a module, one of which raises the error."""
    return {node.arg for node in ast.walk(ast.parse(source)) if isinstance(node, ast.arg)}


def _parameters(thing: object) -> set[str]:
    try:
        return set(inspect.signature(thing).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return set()


def _public_parameters() -> set[str]:
    """Return the parameters of all public functions, classes and their methods."""
    pending: list[object] = [fl, Writing]
    seen: set[int] = set()
    known: set[str] = set()
    while pending:
        thing = pending.pop()
        if id(thing) in seen or not str(getattr(thing, "__module__", getattr(thing, "__name__", ""))).startswith(
            "fmilin"
        ):
            continue
        seen.add(id(thing))
        if isinstance(thing, ModuleType):
            pending += [getattr(thing, n) for n in getattr(thing, "__all__", ()) if not n.startswith("_")]
        elif isinstance(thing, type):
            pending += [value for n, value in vars(thing).items() if not n.startswith("_")]
        known |= _parameters(thing)
    return known


def test_every_keyword_that_a_message_names_exists() -> None:
    known = {*meanings()} - {*UNDESCRIBED} | _public_parameters() | XML_ATTRIBUTES
    counted, unknown = 0, {}
    for path in CORE:
        source = path.read_text(encoding="utf-8")
        named = {m[1] for text in _sentences(source) for m in KEYWORD.finditer(text)}
        counted += len(named)
        if (missing := named - known) and (missing := missing - _own_parameters(source)):
            unknown[path.relative_to(ROOT).as_posix()] = missing
    assert counted > 150
    assert unknown == {}


def test_no_dataclass_of_options_describes_a_keyword_that_is_listed_as_undescribed() -> None:
    from fmilin.options import DESCRIBED, describe

    described = {d.keyword for options in DESCRIBED for d in describe(options) if d.option is not None}
    assert described & {*UNDESCRIBED} == set()
    assert translation.meanings()["parameters"][0].option == "--parameters"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("linearize", "--discretize zoh --sample-time 0.1"),
        ("sweep", "'fmilin linearize --discretize zoh --sample-time 0.1'"),
    ],
)
def test_advice_names_the_command_that_has_an_option(command: str, shown: str) -> None:
    context = click.Context(program)
    of_command = program.get_command(context, command)
    assert of_command is not None
    with click.Context(of_command):
        assert in_options("fl.reduction.discretize(lin, 0.1) samples it") == f"{shown} samples it"


def test_advice_to_leave_out_a_switch_names_it() -> None:
    assert in_options("Leave out resume=True, and all points are computed again.") == (
        "Leave out --resume, and all points are computed again."
    )
