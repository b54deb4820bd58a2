"""Spectra of constrained coordinates: the options of ``--formulation``, and ``fmilin spectrum MODEL``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli import options
from fmilin.cli.command import Command
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.model_options import DEBUG
from fmilin.cli.options import MODEL, floats, grouped, names_option, one_of, option, read_by
from fmilin.cli.translation import in_options
from fmilin.errors import NumericalError, UsageError

if TYPE_CHECKING:
    from fmilin.cli.request import Request
    from fmilin.formulations import Formulation, Spectrum
    from fmilin.linear_model.model import LinearModel
    from fmilin.model.interface import Model, OperatingPoint

FORMS = ("mcs", "rcs", "ucs")


def _three(text: str | None, option: str) -> Any:
    refusal = f"{option} '{text}' is not ALPHA,XI,OMEGA: three numbers, as in {option} 1e6,1,10."
    return floats(text, ",", refusal, 3) or None


PENALTY = click.option(
    "--penalty", metavar="ALPHA,XI,OMEGA", help="With ucs: weight, damping ratio, rad/s.", callback=read_by(_three)
)


@dataclass(frozen=True)
class Formulated:
    """What stands on the command line about formulations; None where nothing was said."""

    formulation: str | None = option(
        type=one_of(*FORMS, "all"),
        help="Of a model of Lagrange's equations: minimal, redundant or unconstrained coordinates with their spurious "
        "eigenvalues; all: a comparison.",
    )
    basis: str | None = option(
        type=one_of("coordinates", "zero-eigenvalue", "svd", "qr", "gram-schmidt"),
        help="With mcs: how the velocities left free by the constraints are found.",
    )
    spurious: str | None = option(
        type=one_of("infinite", "zero"), help="With rcs: where the spurious eigenvalues are put."
    )
    penalty: tuple[float, float, float] | None = None

    def chosen(self) -> Formulated | None:
        """Return what was chosen; None without ``--formulation``."""
        for name, owner in (("basis", "mcs"), ("spurious", "rcs"), ("penalty", "ucs")):
            if getattr(self, name) is not None and self.formulation not in (owner, "all"):
                raise UsageError(f"--{name} goes with --formulation {owner} (or all) only. Leave it out or add that.")
        if self.formulation is None:
            return None
        for form in FORMS:
            self.options(form)
        return self

    def options(self, form: str) -> Formulation:
        """Return the formulation ``form`` with these options."""
        from fmilin.formulations import MCS, RCS, UCS

        if form == "mcs":
            return MCS() if self.basis is None else MCS(self.basis)
        if form == "rcs":
            return RCS("zero" if self.spurious == "zero" else "infinite")
        return UCS() if self.penalty is None else UCS(*self.penalty)


formulation_options = grouped("formulated", Formulated, PENALTY)


def require_plain(request: Request, chosen: Formulated, others: Sequence[str], *, wants_model: bool) -> None:
    """Refuse options that say how the general procedure works."""
    contradicting = list(others)
    how, load = request.how, request.load
    if how.derivatives not in ("auto", "exact"):
        contradicting.append("--derivatives differences" if isinstance(how.derivatives, str) else "--one-sided")
    if how.coordinates != "partition":
        contradicting.append(f"--coordinates {how.coordinates} (use --basis svd)")
    if load.constraints is not None or load.constraints_file is not None:
        contradicting.append("--constraint, --constraints or --no-constraints")
    if contradicting:
        raise UsageError(
            f"--formulation {chosen.formulation} takes the model's own equations; it does not go with "
            f"{' and '.join(contradicting)}. Leave one of them out."
        )
    if chosen.formulation == "all" and wants_model:
        raise UsageError(
            "--formulation all prints a comparison and makes no linear model. Choose mcs, rcs or ucs for --output, "
            "--reduce and the like."
        )


def one(request: Request, chosen: Formulated, runner: JobRunner) -> tuple[Spectrum, LinearModel, OperatingPoint]:
    """Return the spectrum of one formulation, its linear model and the point."""
    from fmilin.formulations import spectrum

    model, point = _at(request, runner)
    how = request.how
    result = spectrum(
        model,
        point,
        chosen.options(chosen.formulation or ""),
        independent=tuple(how.independent or ()),
        interface=(how.inputs, how.outputs),
        at_singularity=how.at_singularity,
        descriptor=how.descriptor,
    )
    if result.linear is None:
        raise NumericalError(" ".join(str(remark) for remark in result.remarks))
    return result, result.linear, point


def compare(request: Request, chosen: Formulated, runner: JobRunner, *, as_json: bool) -> None:
    """Print all formulations side by side."""
    from fmilin.formulations import spectrum
    from fmilin.report.formulations import show_comparison

    model, point = _at(request, runner)
    independent, at_singularity, spectra = tuple(request.how.independent or ()), request.how.at_singularity, []
    for form in FORMS:
        formulation = chosen.options(form)
        try:
            spectra.append(spectrum(model, point, formulation, independent=independent, at_singularity=at_singularity))
        except NumericalError as error:
            if form != "mcs" or error.condition_number is None:
                raise  # only singular configurations have one
            sys.stderr.write(f"Without mcs: {in_options(str(error))}\n")
    if as_json:
        from fmilin.export.document import spectra_text

        runner.results.write(spectra_text(model, point, spectra))
        return
    runner.print_shown(show_comparison, spectra)


def _at(request: Request, runner: JobRunner) -> tuple[Model, OperatingPoint]:
    from fmilin.cli.request import at_point, completed, open_model
    from fmilin.trimming.procedure import point_of

    if request.point.trim is None:
        return at_point(request, runner)
    request = completed(request)
    model = open_model(request, runner)
    saved = None if request.point.values_of(model) else request.point.saved
    from fmilin.formulations import equilibrium

    rest = equilibrium(model, point_of(model, replace(request.point, trim=None, saved=saved)))
    multipliers = ", ".join(f"{value:.6g}" for value in rest.multipliers[:12])
    more = f", and {len(rest.multipliers) - 12} more" if len(rest.multipliers) > 12 else ""
    kind = "" if rest.is_determinate else f" (of least norm: {rest.rank} constraints are independent)"
    sys.stderr.write(f"Equilibrium found; multipliers{kind}: {multipliers}{more}\n")
    return model, rest.point


@click.command(cls=Command, examples=['fmilin spectrum "fmilin.systems:four_bar_form(loops=500)" --count 2'])
@MODEL
@click.option(
    "--formulation",
    type=one_of(*FORMS),
    default="rcs",
    help="Minimal, redundant or unconstrained coordinates, all of them sparse.",
)
@click.option("--around", metavar="RAD/S", default=0.0, help="The frequency that they are nearest to.")
@click.option("--count", metavar="K", default=4, help="How many, a pair of complex ones counting once.")
@names_option("--independent", "Coordinates to keep; chosen by elimination otherwise.")
@PENALTY
@options.settings_option("Repeatable: a start value or input.")
@options.picture_option("Draw the mass matrices of all formulations and their factors.", "--sparsity")
@click.option(
    "--at-singularity", is_flag=True, help="With mcs at a singular configuration: over all velocities with G v = 0."
)
@options.json_option("One JSON document on standard output.")
@DEBUG
def command(
    model: str,
    formulation: str,
    around: float,
    count: int,
    independent: list[str] | None,
    penalty: tuple[float, float, float] | None,
    settings: dict[str, float],
    sparsity: Path | None,
    *,
    at_singularity: bool,
    as_json: bool,
    debug: bool,
) -> int:
    """Compute the eigenvalues nearest to a frequency without any full matrix.

    MODEL is Python, path/to/file.py:name or package.module:name(...) (Lagrange's equations, or their form at a point),
    or a mechanism in mechanism.toml or robot.urdf. For systems of thousands of coordinates:
    "fmilin.systems:flexible_double_pendulum(elements=2000)", "fmilin.systems:four_bar_form(loops=20000)".
    """
    asked_for = Formulated(formulation, penalty=penalty).chosen()

    def job(runner: JobRunner) -> None:
        from fmilin.formulations.sparse import Around, eigenvalues_near
        from fmilin.loading.equations import equations_of

        near = Around(around, count)
        equations = equations_of(model, settings)
        name, form = equations.name, equations.form
        if sparsity is not None:
            from fmilin.report.formulations import sparsity_figure

            runner.draw(sparsity, sparsity_figure(form, title=name), "mass matrices and their factors")
        chosen = asked_for.options(formulation) if asked_for is not None else formulation
        spectrum = eigenvalues_near(form, chosen, around=near, independent=independent)
        if formulation == "mcs" and not at_singularity:
            equations.require_regular(spectrum)
        if as_json:
            from fmilin.export.document import spectrum_text

            runner.results.write(spectrum_text(name, spectrum))
            return
        from fmilin.report.formulations import show_nearest

        runner.print_shown(show_nearest, name, spectrum)

    return work(job, isolate=False, debug=debug)
