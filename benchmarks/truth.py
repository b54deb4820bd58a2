"""No silent wrong number: several hundred hard models, what was said of each, and what is true.

``silent`` counts models with an entry that is off by more than ten times its estimate, without a diagnostic of kind
``accuracy`` or ``memory`` and without an error: none is allowed. ``refused`` counts those among the models which the
best step would difference to 1e-6. A second table is a random search: there, what moves no value by more than 100 units
of rounding is ``hidden``, since a few evaluations cannot distinguish it from rounding, and not silent.

A third table has trims: ``false`` are answers from which the truth is further than they say, or where there is none,
``in vain`` errors where there is one. Motions, co-simulation FMUs and discovery have tables of their own.
"""

from __future__ import annotations

import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import fmilin as fl
from benchmarks import discover
from benchmarks.tables import show
from tests import cosimulation_table
from tests.hard_models import Case, cases
from tests.motions import PERIODIC, STEADY
from tests.random_hard_models import random_cases
from tests.trims import TrimVerdict, judged_trim, trims
from tests.verdicts import Verdict, judged

__all__ = ["main"]

VISITS_BEFORE = 3010
"""Of the smooth family, before differences used other scales."""


SEARCHED = 3000
"""Random models."""

FIRST = 100_000
"""Their first number: none of the tests' own."""


def main() -> None:
    verdicts = _judged(cases())
    by_family = _show(
        "Truth: what was said of hard models",
        verdicts,
        "silent: wrong by more than ten times the estimate, without a warning or error. rejected, in vain: status 5; "
        "of models that the best step differences to 1e-6. median, worst: error of A, B, C, D, largest of each row "
        "over its largest entry, where nothing was refused. said: median of the estimates. visits: mean.",
    )
    plain = by_family["smooth"]
    visits = sum(v.visits for v in plain)
    print(
        f"median error of smooth models {_median(v.error for v in plain):.1e} (1.5e-13); visits of smooth models "
        f"{visits}, {visits / VISITS_BEFORE:.2f} times those before (1.5, and one visit)\n"
    )
    _show_motions()
    found = _judged(random_cases(SEARCHED, FIRST))
    hidden = [v for v in found if v.hidden]
    _show(
        "Truth: a random search",
        found,
        f"Beside these, {len(hidden)} are wrong and hidden by rounding: what is hard moves no value by more than 100 "
        f"units of rounding. Median of their errors {_median(v.error for v in hidden):.0e}, largest "
        f"{max((v.error for v in hidden), default=0.0):.0e} of a row.",
    )
    _show_trims()
    _show_cosimulation()
    discover.main()


def _show_trims() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdicts = [judged_trim(case) for case in trims()]
    by_group: dict[str, list[TrimVerdict]] = defaultdict(list)
    for verdict in verdicts:
        by_group[verdict.case.group].append(verdict)
    rows = [
        [
            name,
            str(len(group)),
            *(str(sum(flags)) for flags in ([v.false for v in group], [bool(v.refusal) for v in group])),
            str(sum(v.in_vain for v in group)),
            f"{_median(v.off for v in group):.0e}",
        ]
        for name, group in (*by_group.items(), ("all", verdicts))
    ]
    false, vain = [v for v in verdicts if v.false], [v for v in verdicts if v.in_vain]
    show(
        "Truth: trims",
        ["trims", "count", "false", "refused", "in vain", "off"],
        rows,
        "false: further from the truth than said, or there is none. off: median distance from the truth, over what was "
        f"said.\nfalse: {len(false)} of {len(verdicts)} (0); refused in vain: {len(vain)} (3).",
    )
    if false or vain:
        named = [[f"{v.case.group}: {v.case.name}", f"{v.off:.1e}", v.refusal[:80]] for v in (*false, *vain)]
        show("Truth: trims that are false or refused in vain", ["trim", "off", "word"], named)


def _show_cosimulation() -> None:
    """Print the table of co-simulation FMUs, each with its answer."""
    with tempfile.TemporaryDirectory() as folder:
        verdicts = [cosimulation_table.judged(case, Path(folder)) for case in cosimulation_table.CASES]
    silent, vain = sum(v.silent for v in verdicts), sum(v.refused_in_vain for v in verdicts)
    show(
        "Truth: co-simulation FMUs with known answers",
        ["FMU", "error", "said", "word"],
        [[v.case.name, f"{v.error:.0e}", f"{v.said:.0e}", _word(v.refusal, v.remarks)] for v in verdicts],
        "error: of eigenvalues and transfer functions, relative to the plant; said: the largest estimate.\n"
        f"silent: {silent} of {len(verdicts)} (0); rejected in vain: {vain} (1).",
    )


def _show_motions() -> None:
    """Say which motions were named as what they are."""
    for what, motions in (("periodic", PERIODIC), ("steady", STEADY)):
        said = {name: {w.kind for w in fl.linearize(*made()).warnings} for name, made in motions.items()}
        right = sum(("periodic" in kinds) == (what == "periodic") for kinds in said.values())
        rows = [[name, ", ".join(sorted(kinds))] for name, kinds in said.items()]
        show(f"Truth: {what} motions", ["motion", "remarks"], rows, f"{right} of {len(said)} are called what they are.")


def _judged(models: Iterable[Case]) -> list[Verdict]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [judged(case) for case in models]


def _show(title: str, verdicts: list[Verdict], note: str) -> dict[str, list[Verdict]]:
    by_family: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_family[verdict.case.family].append(verdict)
    silent, vain = [v for v in verdicts if v.silent], [v for v in verdicts if v.refused_in_vain]
    good = sum(v.case.attainable <= 1e-6 for v in verdicts)
    show(
        title,
        ["models", "count", "silent", "refused", "in vain", "remarked", "median", "worst", "said", "visits"],
        [_row(name, group) for name, group in by_family.items()] + [_row("all", verdicts)],
        f"{note}\nsilent: {len(silent)} of {len(verdicts)}, {100 * len(silent) / len(verdicts):.2f}% (0); refused in "
        f"vain: {len(vain)} of {good}, {100 * len(vain) / good:.1f}% (2%).",
    )
    for what, group in (("silent", silent), ("refused in vain", vain)):
        if group:
            show(f"{title}: {what}", ["model", "error", "said", "word"], [_named(v) for v in group])
    return by_family


def _row(name: str, group: list[Verdict]) -> list[str]:
    answered = [v for v in group if not v.refusal]
    errors = [v.error for v in answered if np.isfinite(v.error)]
    return [
        name,
        str(len(group)),
        str(sum(v.silent for v in group)),
        str(len(group) - len(answered)),
        str(sum(v.refused_in_vain for v in group)),
        str(sum(bool({"accuracy", "memory"} & set(v.remarks)) for v in answered)),
        f"{_median(errors):.0e}",
        f"{max(errors, default=np.nan):.0e}",
        f"{_median(v.said for v in answered):.0e}",
        f"{np.mean([v.visits for v in answered]) if answered else np.nan:.0f}",
    ]


def _median(values: Iterable[float]) -> float:
    kept = [v for v in values if np.isfinite(v)]
    return float(np.median(kept)) if kept else np.nan


def _named(verdict: Verdict) -> list[str]:
    case = verdict.case
    word = _word(verdict.refusal, verdict.remarks)
    return [f"{case.family}: {case.name}", f"{verdict.error:.1e}", f"{verdict.said:.1e}", word]


def _word(refusal: str, remarks: Iterable[str]) -> str:
    return (refusal or ", ".join(remarks))[:60]
