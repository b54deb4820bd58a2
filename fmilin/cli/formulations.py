"""``fmilin linearize MODEL --formulation mcs|rcs|ucs|all``: labelled spectra of constrained coordinates."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli.job_runner import JobRunner
from fmilin.cli.options import grouped, one_of
from fmilin.errors import NumericalError, UsageError

if TYPE_CHECKING:
    from fmilin.cli.request import Request
    from fmilin.formulations import Formulation, Spectrum
    from fmilin.linear_model.model import LinearModel
    from fmilin.model.interface import Model, OperatingPoint

__all__ = [
    "FORMS",
    "PENALTY",
    "Chosen",
    "Formulated",
    "add_spectrum",
    "chosen",
    "compare",
    "formulation_options",
    "one",
    "require_plain",
]

FORMS = ("mcs", "rcs", "ucs")

PENALTY = click.option("--penalty", metavar="ALPHA,XI,OMEGA", help="With ucs: weight, damping ratio, rad/s.")


@dataclass(frozen=True)
class Formulated:
    """What stands on the command line about formulations; None where nothing was said."""

    formulation: str | None
    basis: str | None
    spurious: str | None
    penalty: str | None

    def asked(self) -> Chosen | None:
        """Return what was chosen; None without ``--formulation``."""
        return chosen(self.formulation, self.basis, self.spurious, self.penalty)


formulation_options = grouped(
    "formulated",
    Formulated,
    click.option(
        "--formulation",
        type=one_of(*FORMS, "all"),
        help="Of a model of Lagrange's equations: minimal, redundant or unconstrained coordinates with their spurious "
        "eigenvalues; all: a comparison.",
    ),
    click.option(
        "--basis",
        type=one_of("coordinates", "zero-eigenvalue", "svd", "qr", "gram-schmidt"),
        help="With mcs: how the velocities left free by the constraints are found.",
    ),
    click.option(
        "--spurious", type=one_of("infinite", "zero"), help="With rcs: where the spurious eigenvalues are put."
    ),
    PENALTY,
)


@dataclass(frozen=True)
class Chosen:
    """A formulation and its options as they stand on the command line; None where nothing was said."""

    form: str
    basis: str | None = None
    spurious: str | None = None
    penalty: tuple[float, float, float] | None = None

    def options(self, form: str) -> Formulation:
        """Return the formulation ``form`` with these options."""
        from fmilin.formulations import MCS, RCS, UCS

        if form == "mcs":
            return MCS() if self.basis is None else MCS(self.basis)
        if form == "rcs":
            return RCS("zero" if self.spurious == "zero" else "infinite")
        return UCS() if self.penalty is None else UCS(*self.penalty)


def chosen(form: str | None, basis: str | None, spurious: str | None, penalty: str | None) -> Chosen | None:
    """Return what was chosen; None without ``--formulation``.

    Raises
    ------
    UsageError
        When an option does not belong to the formulation, or the penalty is no three numbers.
    """
    belongs = (("--basis", basis, "mcs"), ("--spurious", spurious, "rcs"), ("--penalty", penalty, "ucs"))
    for option, value, owner in belongs:
        if value is not None and form not in (owner, "all"):
            raise UsageError(f"{option} goes with --formulation {owner} (or all) only. Leave it out or add that.")
    if form is None:
        return None
    found = Chosen(form, basis, spurious, None if penalty is None else _three(penalty))
    for one_of_them in FORMS:
        found.options(one_of_them)  # values out of range are said before any model is loaded
    return found


def _three(text: str) -> tuple[float, float, float]:
    try:
        alpha, xi, omega = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(
            f"--penalty '{text}' is not ALPHA,XI,OMEGA: three numbers, as in --penalty 1e6,1,10."
        ) from None
    return alpha, xi, omega


def require_plain(request: Request, chosen: Chosen, others: Sequence[str], *, wants_model: bool) -> None:
    """Refuse options that say how the general procedure works.

    Raises
    ------
    UsageError
        With the option that does not go with ``--formulation``.
    """
    contradicting = list(others)
    if request.derivatives == "differences" or request.one_sided is not None:
        contradicting.append("--derivatives differences" if request.one_sided is None else "--one-sided")
    if request.coordinates != "partition":
        contradicting.append(f"--coordinates {request.coordinates} (use --basis svd)")
    if request.constraints is not None or request.constraints_file is not None:
        contradicting.append("--constraint, --constraints or --no-constraints")
    if contradicting:
        raise UsageError(
            f"--formulation {chosen.form} takes the model's own equations; it does not go with "
            f"{' and '.join(contradicting)}. Leave one of them out."
        )
    if chosen.form == "all" and wants_model:
        raise UsageError(
            "--formulation all prints a comparison and makes no linear model. Choose mcs, rcs or ucs for --output, "
            "--reduce and the like."
        )


def one(request: Request, chosen: Chosen, runner: JobRunner) -> tuple[Spectrum, LinearModel, OperatingPoint]:
    """Return the spectrum of one formulation, its linear model and the point."""
    from fmilin.formulations import spectrum

    model, point = _at(request, runner)
    found = spectrum(
        model,
        point,
        chosen.options(chosen.form),
        independent=tuple(request.independent or ()),
        interface=(request.inputs, request.outputs),
        at_singularity=request.at_singularity,
        descriptor=request.descriptor,
    )
    if found.linear is None:
        raise NumericalError(" ".join(str(remark) for remark in found.remarks))
    return found, found.linear, point


def add_spectrum(spectrum: Spectrum, runner: JobRunner) -> None:
    """Print, below the table of the linear model, what the formulation found beside it."""
    from fmilin.report.spectrum_table import print_spectrum

    print_spectrum(spectrum, runner.results)


def compare(request: Request, chosen: Chosen, runner: JobRunner, *, as_json: bool) -> None:
    """Print all formulations side by side."""
    from fmilin.formulations import spectrum
    from fmilin.report.spectrum_table import print_comparison

    model, point = _at(request, runner)
    at_singularity, found = request.at_singularity, []
    for form in FORMS:
        try:
            found.append(
                spectrum(
                    model,
                    point,
                    chosen.options(form),
                    independent=tuple(request.independent or ()),
                    at_singularity=at_singularity,
                )
            )
        except NumericalError as error:
            if form != "mcs" or error.condition_number is None:
                raise  # only singular configurations have one
            sys.stderr.write(f"Without mcs: {error}\n")
    if as_json:
        runner.results.write(json.dumps(_document(model, point, found), indent=1, allow_nan=False) + "\n")
        return
    print_comparison(found, runner.results)


def _at(request: Request, runner: JobRunner) -> tuple[Model, OperatingPoint]:
    from fmilin.cli.opening import open_model
    from fmilin.cli.points import assembled, with_saved_point
    from fmilin.cli.snapshots import carried

    request, saved = with_saved_point(request)
    model, values = open_model(request, runner)
    if request.trim:
        from fmilin.manifold.operating_points import operating_point

        near = saved.on(model) if saved is not None and not values else None
        near = near or operating_point(model, values, time=request.time, project=request.project)
        return model, _balanced(model, near)
    point = assembled(model, values, request, saved)
    return model, point if request.simulate_to is None else carried(model, point, request.simulate_to, request.stepping)


def _balanced(model: Model, near: OperatingPoint) -> OperatingPoint:
    """Return the static equilibrium near a point, and say what carries it."""
    from fmilin.formulations import equilibrium

    found = equilibrium(model, near)
    multipliers = ", ".join(f"{value:.6g}" for value in found.multipliers[:12])
    more = f", and {len(found.multipliers) - 12} more" if len(found.multipliers) > 12 else ""
    kind = "" if found.is_determinate else f" (of least norm: {found.rank} constraints are independent)"
    sys.stderr.write(f"Equilibrium found; multipliers{kind}: {multipliers}{more}\n")
    return found.point


def _document(model: Model, point: OperatingPoint, spectra: Sequence[Spectrum]) -> dict[str, Any]:
    return {
        "format": "fmilin-spectra/1",
        "model": model.info.name,
        "point": {
            "time": point.time,
            "states": dict(zip(model.states.names, point.states.tolist(), strict=True)),
            "inputs": dict(zip(model.inputs.names, point.inputs.tolist(), strict=True)),
        },
        "spectra": [
            {
                "formulation": s.formulation,
                "method": s.method,
                "sizes": dict(s.sizes),
                "eigenvalues": [[z.real, z.imag] if abs(z) < float("inf") else None for z in s.eigenvalues.tolist()],
                "labels": list(s.labels),
                "violations": _numbers(s.violations.tolist()),
                "errors": _numbers(s.errors.tolist()),
                "warnings": [{"kind": r.kind, "message": str(r)} for r in s.remarks],
            }
            for s in spectra
        ],
    }


def _numbers(values: Sequence[float]) -> list[float | None]:
    """Return numbers with None in place of NaN, which JSON does not have."""
    return [value if value == value else None for value in values]  # noqa: PLR0124 - NaN differs from itself
