"""Modes of a family in a report: each followed over the grid, with what takes part in it and what moves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.families.family import LinearFamily
from fmilin.ground.signals import FloatArray, Signals
from fmilin.linear_model.modal import ModalAnalysis, modal_analysis
from fmilin.output.report.numbers import rough, shortened
from fmilin.output.report.web.blocks import Block, Cell, Section, number, table, text

__all__ = ["family_mode_sections"]

MOST_POINTS = 2000
"""That are looked at for participation and channels, evenly chosen; those of the eigenvalues are all."""

MOST_MODES = 200


@dataclass(frozen=True, eq=False)
class _Followed:
    """Shares of every mode at some points: shape (points, modes, channels); and where a mode is not moved or seen."""

    points: Sequence[int]
    participation: FloatArray
    controllability: FloatArray
    observability: FloatArray
    unmoved: FloatArray
    unseen: FloatArray


def family_mode_sections(family: LinearFamily) -> list[Section]:
    """Return the sections about modes, and about controllability and observability."""
    if not family.ok.any() or not family.template.order:
        return []
    values = family.eigenvalues.reshape(len(family), -1)
    shown = [m for m in range(values.shape[1]) if _is_shown(values[:, m])][:MOST_MODES]
    followed = _follow(family, values)
    return [
        Section("Modes", [*_modes(family, values, shown), *_participation(family, followed, shown), *_events(family)]),
        Section("Controllability and observability", _channels(family, followed, shown)),
    ]


def _is_shown(values: np.ndarray) -> bool:
    """Whether a mode is not the conjugate of another at every point."""
    w = values[np.isfinite(values)]
    return bool((w.imag >= 0).any())


def _modes(family: LinearFamily, values: np.ndarray, shown: Sequence[int]) -> list[Block]:
    rows = []
    for m in shown:
        w = values[:, m]
        size = np.abs(w)
        finite = np.isfinite(size)
        swings = finite & (np.abs(w.imag) > 1e-9 * size) & (size > 0)
        ratio = np.where(swings, -w.real / np.where(size > 0, size, 1.0), np.nan)
        growing = int((w.real[finite] > 1e-9 * size[finite]).sum())
        right = int(np.nanargmax(np.where(finite, w.real, -np.inf)))
        rows.append(
            [
                number(m + 1, digits=4), number(float(np.nanmin(w.real))),
                number(float(np.nanmax(w.real)), alarm=growing > 0),
                Cell(_at(family, right)), number(_least(np.where(swings, np.abs(w.imag), np.nan))),
                number(-_least(-np.where(swings, np.abs(w.imag), np.nan))), number(_least(ratio), digits=4),
                number(growing, digits=8, alarm=growing > 0),
            ]
        )  # fmt: skip
    heads = ["Mode", "Real part [1/s] from", "to", "largest at", "Frequency [rad/s] from", "to",
             "Smallest damping ratio", "Points where it grows"]  # fmt: skip
    return [table("Modes followed over the grid by their eigenvectors; of a pair one", heads, rows)]


def _least(values: np.ndarray) -> float:
    return float(np.nanmin(values)) if np.isfinite(values).any() else float("nan")


def _at(family: LinearFamily, point: int) -> str:
    return ", ".join(f"{name} = {value:.6g}" for name, value in family.grid.values(point).items())


def _events(family: LinearFamily) -> list[Block]:
    rows = (
        [
            e.kind,
            number(e.modes[0] + 1, digits=4),
            number(e.modes[1] + 1, digits=4),
            *(_at(family, k) for k in e.between),
        ]
        for e in family.mode_events
    )
    found = table("Where modes meet", ["What", "Mode", "and mode", "Between", "and"], rows, most=500)
    return [found] if found.rows else []


def _follow(family: LinearFamily, values: np.ndarray) -> _Followed:
    """Analyse points one by one, and sort what is found by the modes that run through the grid."""
    good = np.flatnonzero(family.ok)
    points = good[np.unique(np.linspace(0, len(good) - 1, min(len(good), MOST_POINTS)).round().astype(int))].tolist()
    every = [(modal_analysis(family.linear_model(k)), values[k]) for k in points]
    places = [_groups_of(found, w) for found, w in every]

    def stacked(name: str) -> FloatArray:
        return np.array([getattr(found, name)[p] for (found, _), p in zip(every, places, strict=True)], dtype=float)

    counts = np.array(
        [[found.groups[g].count for g in p] for (found, _), p in zip(every, places, strict=True)], dtype=float
    )
    return _Followed(
        points,
        stacked("participation"),
        stacked("controllability"),
        stacked("observability"),
        (stacked("unmoved") == counts[..., None]).astype(float),
        (stacked("unseen") == counts[..., None]).astype(float),
    )


def _groups_of(found: ModalAnalysis, values: np.ndarray) -> list[int]:
    """Return the group that each eigenvalue belongs to, with its conjugate."""
    centres = np.array([g.eigenvalue for g in found.groups])
    upper = values.real + 1j * np.abs(values.imag)
    return [int(k) for k in np.argmin(np.abs(centres - upper[:, None]), axis=1)]


def _participation(family: LinearFamily, followed: _Followed, shown: Sequence[int]) -> list[Block]:
    names = [f"coordinate {k + 1}" for k in range(family.template.order)] if family.switches else family.states.names
    mean = followed.participation.mean(axis=0)
    rows = ([number(m + 1, digits=4), *(number(100 * p, digits=3) for p in mean[m])] for m in shown)
    heads = ["Mode", *map(shortened, names)]
    caption = (
        f"Participation factors in percent, mean over {_count(family, followed)}; independent of units and scaling"
    )
    return [table(caption, heads, rows)]


def _count(family: LinearFamily, followed: _Followed) -> str:
    good = int(family.ok.sum())
    return f"{len(followed.points)} points" + ("" if len(followed.points) == good else f" of {good}, evenly chosen")


def _channels(family: LinearFamily, followed: _Followed, shown: Sequence[int]) -> list[Block]:
    blocks: list[Block] = [
        text(
            "The share of a mode is the largest part that it has in the impulse response of any coordinate to the "
            "input; "
            "for outputs, in the response to initial values. 'not' counts the points where this input cannot move "
            "it, this "
            "output does not show it, by the test of Popov, Belevitch and Hautus. Looked at: "
            f"{_count(family, followed)}."
        )
    ]
    for caption, signals, shares, lack in (
        ("Which input moves which mode: share in percent", family.inputs, followed.controllability, followed.unmoved),
        ("Which output shows which mode: share in percent", family.outputs, followed.observability, followed.unseen),
    ):
        if len(signals):
            blocks.append(_shares(caption, signals, shares, lack, shown))
    return blocks


def _shares(caption: str, signals: Signals, shares: FloatArray, lack: FloatArray, shown: Sequence[int]) -> Block:
    rows: list[list[Cell]] = []
    for m in shown:
        cells = [number(m + 1, digits=4)]
        for c in range(len(signals)):
            low, high, never = 100 * shares[:, m, c].min(), 100 * shares[:, m, c].max(), int(lack[:, m, c].sum())
            said = f"{rough(low)} to {rough(high)}" if high - low > 0.5 else rough(high)
            if never:
                said = "not" if never == len(shares) else f"{said}, not at {never}"
            cells.append(Cell(said, float(low), alarm=never > 0))
        rows.append(cells)
    return table(caption, ["Mode", *map(shortened, signals.names)], rows)
