"""The linear model as a person reads it on a terminal, or in a file of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from fmilin.errors import cut_list
from fmilin.linear_model.model import LinearizationPoint, LinearModel
from fmilin.linear_model.modes import cluster_modes, slowness
from fmilin.linear_model.no_response import assess_stability, step_to_rest
from fmilin.linear_model.sparse import is_sparse
from fmilin.report.facts import Fact, print_fact, print_facts, print_remarks
from fmilin.report.numbers import (
    SIGNIFICANT_DIGITS,
    cluster_text,
    count_known_digits,
    hide_rounding,
    interface_text,
    round_digits,
    round_to_error,
    shorten_name,
    value_with_unit,
)
from fmilin.report.zero_texts import MAX_ZEROS, describe_zeros, has_zeros
from fmilin.signals import Signals, rate_unit
from fmilin.support.tables import Cell, ResultTable, build_table
from fmilin.tolerances import EPS, EQUILIBRIUM_RATE_TOLERANCE, MAX_ENTRY_ERROR

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily
    from fmilin.linear_model.modes import EigenvalueCluster
    from fmilin.periodic.periodic_model import PeriodicModel
    from fmilin.support.table_repr import Sheet

MAX_SIGNALS = 24  # longer lists are cut, and say how much was left out
MAX_FAMILY_NAMES = 8  # names of a result of many models
DAMPING_DIGITS = 6  # shown of a damping ratio
MAX_MODES = 4  # for each parameter, in 80 columns
PARAMETER_EFFECT_TOLERANCE = 1e-9  # of the fastest eigenvalue: what a parameter moves it by below this is nothing
SHOWN_STEP = 1e-6  # of a size: an equilibrium that is as near needs no word


def print_table(linear: LinearModel, stream: TextIO, *, adjusted: float = 0.0) -> None:
    """Print what a person wants to know; ``adjusted`` is how far projection moved the states, scaled by nominals."""
    from fmilin.report.terminal import print_to_stream

    print_to_stream(stream, show_linear, linear, adjusted=adjusted)


def show_linear(linear: LinearModel, page: Sheet, *, adjusted: float | None, modes: bool = True) -> None:
    """Print the same on a console or page, ``adjusted`` None if unknown; without ``modes`` none are computed."""
    print_facts(page, list_facts(linear, adjusted))
    modes = modes and not is_sparse(linear)
    if len(linear.states):
        page.print()
        hint = f"{len(linear.states)} eigenvalues: .eigenvalues() calculates them."
        is_sampled = linear.sample_time > 0
        page.print(eigenvalue_table(cluster_modes(linear.modes()), sampled=is_sampled) if modes else hint)
        stability = assess_stability(linear) if modes else None
        if stability is not None:
            page.print()
            print_fact(page, "Stability", stability.text)
        zeros = cut_list(describe_zeros(linear.zero_structure()), MAX_ZEROS) if modes and has_zeros(linear) else []
        if zeros:
            print_fact(page, "Zeros", zeros)
    if linear.derivatives and len(linear.states) and modes:
        page.print()
        page.print("p dl/dp [1/s]: what an eigenvalue l moves by as a parameter p grows, per part of p")
        values, moved, least = compute_effects(linear)  # of a parameter that is zero per unit
        mode_indices, names = most_moved(moved, least), list(linear.derivatives)
        heads = [short_eigenvalue(values[i]) for i in mode_indices]
        order = np.argsort(-np.abs(moved).max(axis=0, initial=0.0), kind="stable")
        rows = ([names[j], *(_effect(complex(moved[i, j]), least) for i in mode_indices)] for j in order)
        page.print(build_table(["Parameter", *heads], rows, columns="l" + "r" * len(heads)))
    page.print()
    print_remarks(page, linear.warnings)
    if all(remark.is_information for remark in linear.warnings):
        page.print("No warnings.")


def compute_effects(linear: LinearModel) -> tuple[list[complex], Any, float]:
    """Return one eigenvalue of each mode, slowest first, p dl/dp (modes, parameters), and what counts as none."""
    values = linear.eigenvalues()
    upper = sorted(np.flatnonzero(values.imag >= 0).tolist(), key=lambda i: slowness(complex(values[i])))
    sizes = np.array([abs(d.value) or 1.0 for d in linear.derivatives.values()])
    moved = linear.eigenvalue_derivatives()[upper] * sizes
    return values[upper].tolist(), moved, PARAMETER_EFFECT_TOLERANCE * float(np.max(np.abs(values), initial=0.0))


def most_moved(moved: Any, least: float) -> list[int]:
    """Return the modes on which parameters have the largest effects, slowest first."""
    largest = np.abs(moved).max(axis=1, initial=0.0)
    return sorted([i for i in np.argsort(-largest, kind="stable").tolist() if largest[i] > least][:MAX_MODES])


def short_eigenvalue(value: complex) -> str:
    """Return an eigenvalue with four digits."""
    return f"{value.real:.4g}" if value.imag == 0 else f"{value.real:.4g} ± {value.imag:.4g} i"


def _effect(effect: complex, least: float) -> str:
    if abs(effect) <= least:
        return "0"
    return f"{effect.real:+.3g}" if abs(effect.imag) <= least else f"{effect.real:+.3g}{effect.imag:+.3g}i"


def order_text(linear: LinearModel) -> str:
    """Return ``2 independent states out of 10``."""
    P, N = len(linear.states), len(linear.full_states)
    return f"{P} independent state{'' if P == 1 else 's'} out of {N}"


def eigenvalue_table(
    clusters: Iterable[EigenvalueCluster], *, sampled: bool = False, name: str = "Eigenvalue"
) -> ResultTable:
    """Return one line for each real eigenvalue or pair of complex ones, with the digits that are known."""
    origin = " of the sampled motion" if sampled else ""
    heads = (f"{name} [1/s]{origin}", "Frequency [rad/s]", "[Hz]", "Damping ratio")
    rows = ((Cell(cluster_text(cluster), cluster.real), *_oscillation(cluster)) for cluster in clusters)
    return build_table(heads, rows, columns="Rrrr")


def _oscillation(cluster: EigenvalueCluster) -> tuple[Cell, Cell, Cell]:
    """Return frequency, in rad/s and in Hz, and damping ratio of a pair with the digits that are known."""
    if not cluster.is_pair:
        return Cell(""), Cell(""), Cell("")
    frequency = abs(cluster.eigenvalue)
    hertz = frequency / (2 * np.pi)
    digits = count_known_digits(frequency, cluster.error, SIGNIFICANT_DIGITS)
    damping = -round_digits(round_to_error(cluster.eigenvalue, cluster.error)).real / frequency + 0.0
    damping_digits = count_known_digits(cluster.eigenvalue.real, cluster.error, DAMPING_DIGITS)
    return (
        Cell(f"{frequency:.{digits}g}", frequency),
        Cell(f"{hertz:.{digits}g}", hertz),
        Cell(f"{damping:.{damping_digits}g}", damping),
    )


def point_tables(point: LinearizationPoint, signals: Mapping[str, Signals] = MappingProxyType({})) -> list[ResultTable]:
    """Return the values of a point by name, a table each of those that there are: states, inputs, outputs, parameters.

    Values that are rounding relative to the nominal value in ``signals``, by the table's caption, are shown as zero.
    """
    tables = []
    for caption in ("States", "Inputs", "Outputs", "Parameters"):
        values: Mapping[str, float] = getattr(point, caption.lower())
        displayed = hide_rounding(values, signals.get(caption, Signals()))
        rows = ((shorten_name(name), Cell(f"{value + 0.0:.8g}", value)) for name, value in displayed.items())
        if values:
            table = build_table((f"{caption} ({len(values)})", "Value"), rows, columns="lr")
            tables.append(replace(table, caption=caption))
    return tables


def rightmost_eigenvalue(linear: LinearModel) -> Cell:
    """Return the rightmost eigenvalue with its error, or its cluster; "none" where nothing can move."""
    clusters = cluster_modes(linear.modes())
    if not clusters:
        return Cell("none")
    rightmost = max(clusters, key=lambda cluster: cluster.real)
    return Cell(cluster_text(rightmost), rightmost.real)


CHOICES = {
    "named": ("name", "They were named: by the user, or as the coordinates that the model recommends."),
    "partition": (
        "partition (QR)",
        "They were chosen among the states: the columns of the constraints' Jacobian were pivoted (QR) so that the "
        "dependent states follow from them as well conditioned as possible.",
    ),
    "tangent": (
        "tangent space (SVD)",
        "They are orthonormal directions in the tangent space of the manifold (SVD), not states.",
    ),
    "turning": (
        "axes that do not turn with bodies",
        "They are functions of the states that do not turn with bodies: A stays the same in them.",
    ),
    "identified": (
        "the order of the responses",
        "They are the order of the responses from which the model was identified.",
    ),
    "enlarged": (
        "pivoted QR, enlarged set of velocities",
        "They were chosen by pivoted QR over the enlarged set of velocities at a singular configuration.",
    ),
}
"""How coordinates were chosen, in few words and in a sentence."""


def describe_choice(linear: LinearModel) -> tuple[str, str]:
    """Return how coordinates were chosen, in few words and in a sentence."""
    choice = linear.method.coordinates
    return CHOICES.get(choice, (choice, f"They were chosen by {choice}."))


def list_facts(linear: LinearModel, adjusted: float | None = None) -> Iterator[Fact]:
    """Yield words, empty where the one before goes on, with what is said about the model."""
    point, accuracy, model = linear.point, linear.accuracy, linear.model
    maker = [f"made by {model.tool}"] if model.tool else []
    yield "Model", [f"{shorten_name(model.name)} ({interface_text(model)})", *maker]
    yield "Order", [order_text(linear)]
    yield "Coordinates", _names(linear.states)
    yield "", [f"chosen by {describe_choice(linear)[0]}", f"condition number {accuracy.conditioning:.3g}"]
    yield "Inputs", _names(linear.inputs) if linear.inputs or not linear.states else ["none: a free response"]
    yield "Outputs", _names(linear.outputs)
    yield "Point", [f"t = {point.time:.8g} s", *([] if adjusted is None else [_describe_adjustment(adjusted)])]
    yield "", _values(point.states, linear.full_states)
    if point.inputs:
        yield "", _values(point.inputs, linear.inputs)
    if point.parameters:
        yield "Parameters", _values(point.parameters, Signals())
    yield "Equilibrium", [_equilibrium(linear)]
    yield "Derivatives", _derivatives(linear)
    yield from zip(("Accuracy", ""), _errors(linear), strict=False)
    yield "", [f"constraint residual {accuracy.constraint_residual:.1e}"]


def _errors(linear: LinearModel) -> Iterator[list[str]]:
    """Yield relative errors, and absolute ones of matrices that are all zeros but for what rounding left."""
    relative, absolute = [], []
    for name in "ABCD":
        error = getattr(linear.accuracy, name)
        if error > MAX_ENTRY_ERROR:
            absolute.append(f"{name} {float(getattr(linear.errors, name).max(initial=0.0)):.1e}")
        else:
            relative.append(f"{name} {error:.1e}")
    for kind, errors in (("relative", relative), ("absolute", absolute)):
        if errors:
            yield [f"{kind} errors about {errors[0]}", *errors[1:]]


def print_names(page: Sheet, result: LinearFamily | PeriodicModel) -> None:
    """Print the names of coordinates, inputs and outputs."""
    for word, signals in (("Coordinates", result.states), ("Inputs", result.inputs), ("Outputs", result.outputs)):
        print_fact(page, word, _names(signals, MAX_FAMILY_NAMES))


def _names(signals: Signals, most: int = MAX_SIGNALS) -> list[str]:
    return cut_list([*map(shorten_name, signals.names)], most) or ["none"]


def _values(values: Mapping[str, float], signals: Signals) -> list[str]:
    units = dict(zip(signals.names, signals.units, strict=True))
    displayed = hide_rounding(values, signals)
    return cut_list(
        [f"{shorten_name(n)} = {value_with_unit(v, units.get(n, ''))}" for n, v in displayed.items()], MAX_SIGNALS
    )


def _describe_adjustment(adjusted: float) -> str:
    if adjusted == 0:
        return "not projected"
    return f"projected onto the constraints, which moved a state by {adjusted:.2g} of its nominal value"


def _equilibrium(linear: LinearModel) -> str:
    is_equilibrium = linear.is_equilibrium
    kinds = {remark.kind for remark in linear.warnings}
    if is_equilibrium is None:
        return "not tested"
    if not len(linear.states):
        return "no" if not is_equilibrium else "yes: nothing can move"
    rates = linear.f0 / (linear.sample_time or 1.0)
    relative = abs(rates) / linear.states.scales(linear.y0)
    fastest = int(relative.argmax())
    if is_equilibrium:
        largest = abs(rates).max() if relative[fastest] > EPS else 0.0  # below it is what rounding leaves of a zero
        return f"yes (no coordinate changes faster than {largest:.1e} per second{_still_away(linear)})"
    name, unit = shorten_name(linear.states[fastest].name), rate_unit(linear.states[fastest].unit)
    no = "a steady motion" if "steady" in kinds else "no"
    return f"{no}: {name} changes at {rates[fastest]:.8g} {unit}{_still_away(linear)}; f0 is kept"


def _still_away(linear: LinearModel) -> str:
    """Return how far rest is where rates are small and it is not at the point, else nothing."""
    if not (np.abs(linear.f0) <= EQUILIBRIUM_RATE_TOLERANCE * linear.states.scales(linear.y0)).all():
        return ""
    newton = step_to_rest(linear)
    i = int(np.abs(newton.step).argmax())
    if newton.has_near_equilibrium(SHOWN_STEP):
        return ""
    step = newton.step[i] * linear.states.scales(linear.y0)[i]
    away = f"a Newton step of {step:.2g} {linear.states[i].unit}".rstrip()
    return (
        f", {away} in {shorten_name(linear.states[i].name)} from equilibrium"
        if newton.balances
        else ", which is not balanced"
    )


def _derivatives(linear: LinearModel) -> list[str]:
    words = {
        "exact": "exact directional derivatives",
        "differences": "central differences on the manifold",
        "mixed": "exact where they are reliable",
        "steps": "differences over one step of the model's own solver",
        "responses": "identified from responses to pulses",
        "multisine": "identified from the frequency response",
    }
    method = linear.method
    pieces = [words.get(method.derivatives, method.derivatives)]
    if method.derivatives == "mixed":
        pieces.append("differences elsewhere")
    pieces.append(f"{method.evaluations} evaluations")
    return pieces + ([f"{method.products} directions"] if method.products else [])
