"""The table of sources by models: which cells exist, which are named faults, and how a cell is judged."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fmilin import FmilinError
from tests.textbook.check import find_differences
from tests.textbook.models import MODELS
from tests.textbook.sources import SOURCES

__all__ = ["FAULTS", "INEXPRESSIBLE", "Verdict", "declared_verdict", "format_table", "judge_cell", "text_of_page"]

FIRST_ORDER = [
    "rl_circuit",
    "input_with_default",
    "output_that_is_a_state",
    "zero_parameter",
    "two_tanks",
    "dc_motor",
    "sampled_pi_loop",
]
SATURATED = ["saturated_integrator_inside", "saturated_integrator_outside"]
NO_MASSES = dict.fromkeys([*FIRST_ORDER, *SATURATED, "capacitor_loop"], "has no coordinates with masses")
NO_MECHANISM = dict.fromkeys(NO_MASSES, "is not a mechanism")
NOT_LINEAR = [
    "pendulum_hanging",
    "pendulum_upright",
    "input_with_default",
    "two_tanks",
    "cart_pole",
    "ball_and_beam",
    "ball_at_rest",
    "ball_in_flight",
]

INEXPRESSIBLE: Mapping[str, Mapping[str, str]] = {
    "LagrangeModel": {**NO_MASSES, "quaternion_body": "has speeds that are not the rates of its quaternion"},
    "KaneModel": NO_MASSES,
    "TOML": NO_MECHANISM,
    "URDF": NO_MECHANISM,
    "MJCF": NO_MECHANISM,
    "MuJoCo": NO_MECHANISM,
    "python-control": {
        **dict.fromkeys([*NOT_LINEAR, *SATURATED, "quaternion_body"], "is not linear"),
        "capacitor_loop": "has a constraint between states",
    },
}
"""By source and model: the reason why the source has no means for it."""

FAULTS: Mapping[tuple[str, str], str] = {}
"""By source and model: faults of fmilin that are known. A test says when one of them is mended."""


@dataclass(frozen=True)
class Verdict:
    """What became of a cell."""

    word: str  #: ``"right"``, ``"wrong"`` or ``"-"``
    reason: str = ""


def judge_cell(source: str, name: str) -> Verdict:
    """Return whether a model is right through a source, by computing it."""
    reason = INEXPRESSIBLE.get(source, {}).get(name)
    if reason is not None:
        return Verdict("-", reason)
    try:
        cell = SOURCES[source](name)
        with cell.model, warnings.catch_warnings():
            warnings.simplefilter("error")
            differences = find_differences(cell, MODELS[name])
    except FmilinError as error:
        return Verdict("wrong", f"{type(error).__name__}: {error}")
    return Verdict("wrong", "; ".join(differences)) if differences else Verdict("right")


def declared_verdict(source: str, name: str) -> Verdict:
    """Return what the table declares of a cell."""
    if name in INEXPRESSIBLE.get(source, {}):
        return Verdict("-", INEXPRESSIBLE[source][name])
    if (source, name) in FAULTS:
        return Verdict("wrong", FAULTS[source, name])
    return Verdict("right")


INTRODUCTION = """# The textbook gate

Models that a student meets first, each through every source that can express it. A cell is *right* if

- the operating point and A, B, C and D are those of the textbook, to 1e-12 (1e-8 where a source has no exact
  derivatives), and each entry is within its stated error;
- `lin.is_equilibrium` is True, or False where the point moves: the ball in flight, the spinning body and the
  integrator;
- each eigenvalue is within `lin.eigenvalue_errors()` of the closed form;
- `fl.trim` from a displaced guess ends at the textbook's equilibrium, or raises an error if there is none with these
  inputs (the saturated integrator);
- `fl.design.margins` gives the textbook's margins with a proportional or a sampled PI regulator, where there is one.

A dash: the source cannot express the model (reasons below). *wrong*: a known fault of fmilin.
`python -m benchmarks textbook` computes the table; `tests/textbook` compares every cell with this page.
"""


def text_of_page() -> str:
    """Return the page of the documentation, from what is declared here."""
    sections = [INTRODUCTION, format_table(declared_verdict), _reasons()]
    if FAULTS:
        sections.append(_faults())
    return "\n".join(sections)


def format_table(verdict_of: Callable[[str, str], Verdict]) -> str:
    """Return the table of sources by models, with the verdict of each (source, name of the model).

    Sources with the same verdicts share a column.
    """
    columns: dict[tuple[str, ...], list[str]] = {}
    for source in SOURCES:
        columns.setdefault(tuple(verdict_of(source, name).word for name in MODELS), []).append(source)
    rows = [
        "| " + " | ".join([textbook.title, *words]) + " |"
        for textbook, *words in zip(MODELS.values(), *columns, strict=True)
    ]
    head = "| " + " | ".join(["model", *map(", ".join, columns.values())]) + " |"
    rule = "|" + " --- |" * (1 + len(columns))
    return "\n".join([head, rule, *rows]) + "\n"


def _reasons() -> str:
    """Return why cells are empty: the usual reason of each source, and the models with another one."""
    sources_of: dict[tuple[str, str], list[str]] = {}
    for source, models in INEXPRESSIBLE.items():
        [(usual, _), *_] = Counter(models.values()).most_common()
        for reason in dict.fromkeys(models.values()):
            titles = [MODELS[name].title for name, other in models.items() if other == reason and reason != usual]
            sources_of.setdefault((reason, "; ".join(titles) or "the model"), []).append(source)
    lines = [f"- {', '.join(sources)}: {titles} {reason}." for (reason, titles), sources in sources_of.items()]
    return "\n".join(["## Models that a source cannot express\n", *lines]) + "\n"


def _faults() -> str:
    lines = [f"| {source} | {MODELS[name].title} | {reason} |" for (source, name), reason in FAULTS.items()]
    return "## Known faults\n\n| source | model | what is wrong |\n| --- | --- | --- |\n" + "\n".join(lines) + "\n"
