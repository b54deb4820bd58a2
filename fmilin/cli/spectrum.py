"""Spectra of constrained coordinates: the options of ``--formulation``, and ``fmilin spectrum MODEL``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli.command import Command
from fmilin.cli.derive import MODEL, OPTIONS, command_option, json_switch, new_file, options_of_commands, take
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.linear_options import FormulationChoices, decorate_with_rejections
from fmilin.cli.model_options import DEBUG, Debugging
from fmilin.cli.translation import in_options
from fmilin.errors import NumericalError, UsageError, join_first
from fmilin.formats import suffixes
from fmilin.options import Linearization
from fmilin.trimming.trim_request import PointRequest

if TYPE_CHECKING:
    from fmilin.cli.request import CommandRequest
    from fmilin.formulations import Formulation, Spectrum
    from fmilin.linear_model.model import LinearModel
    from fmilin.model.interface import Model, OperatingPoint

FORMS = ("mcs", "rcs", "ucs")


def require_model(*, wants_model: bool, wants_picture: bool) -> None:
    """Raise UsageError if a comparison of all formulations is to give a linear model, or a picture of one."""
    if wants_model or wants_picture:
        raise UsageError(
            "--formulation all prints a comparison and makes no linear model. Choose mcs, rcs or ucs for --output, "
            "--snapshots, --plot, --reduce and the like."
        )


def one(
    request: CommandRequest, formulation: Formulation, runner: JobRunner
) -> tuple[Spectrum, LinearModel, OperatingPoint]:
    """Return the spectrum of one formulation, its linear model and the point."""
    from fmilin.formulations import spectrum

    model, point = _at(request, runner)
    how = request.how
    result = spectrum(
        model,
        point,
        formulation,
        independent=tuple(how.independent or ()),
        interface=(how.inputs, how.outputs),
        at_singularity=how.at_singularity,
        descriptor=how.descriptor,
    )
    if result.linear is None:
        raise NumericalError(" ".join(str(remark) for remark in result.remarks))
    return result, result.linear, point


def compare(request: CommandRequest, choices: FormulationChoices, runner: JobRunner, *, as_json: bool) -> None:
    """Print all formulations side by side."""
    from fmilin.formulations import spectrum
    from fmilin.report.formulations import show_comparison

    model, point = _at(request, runner)
    independent, at_singularity, spectra = tuple(request.how.independent or ()), request.how.at_singularity, []
    for form in FORMS:
        formulation = choices.formulation(form)
        try:
            spectra.append(spectrum(model, point, formulation, independent=independent, at_singularity=at_singularity))
        except NumericalError as error:
            if form != "mcs" or error.condition_number is None:
                raise  # only singular configurations have one
            sys.stderr.write(f"Without mcs: {in_options(str(error))}\n")
    if as_json:
        runner.print_json(_describe_spectra(model, point, spectra))
        return
    runner.print_shown(show_comparison, spectra)


def _at(request: CommandRequest, runner: JobRunner) -> tuple[Model, OperatingPoint]:
    from fmilin.cli.request import at_point, complete_point, open_model
    from fmilin.trimming.request_point import find_point

    if request.point.trim is None:
        return at_point(request, runner)
    request = complete_point(request)
    model = open_model(request, runner)
    saved = None if request.point.collect_values(model) else request.point.saved
    from fmilin.formulations import equilibrium

    rest = equilibrium(model, find_point(model, replace(request.point, trim=None, saved=saved)))
    multipliers = join_first((f"{value:.6g}" for value in rest.multipliers), 12)
    kind = "" if rest.is_determinate else f" (of least norm: {rest.rank} constraints are independent)"
    sys.stderr.write(f"Equilibrium found; multipliers{kind}: {multipliers}\n")
    return model, rest.point


@options_of_commands
class Eigenvalues:
    """Which eigenvalues are computed, and what is shown of them."""

    around: float = command_option(
        0.0, "The frequency around which eigenvalues are computed.", OPTIONS, "number", metavar="RAD/S"
    )
    count: int = command_option(
        4, "Number of eigenvalues; a complex pair counts once.", OPTIONS, "integer", metavar="K"
    )
    sparsity: Path | None = new_file(
        "Draw the mass matrices of all formulations and their factors.", suffixes("picture")
    )
    as_json: bool = json_switch("One JSON document on standard output.")


@click.command(cls=Command, examples=['fmilin spectrum "fmilin.systems:four_bar_form(loops=500)" --count 2'])
@MODEL
@take("how", Linearization, only=("independent", "at_singularity", "formulation"), apart=("formulation",))
@take("choices", FormulationChoices, only=("penalty",))
@take("point", PointRequest, only=("settings",))
@take("eigenvalues", Eigenvalues)
@DEBUG
@decorate_with_rejections("spectrum")
def command(
    model: str,
    how: Linearization,
    formulation: str | None,
    choices: FormulationChoices,
    point: PointRequest,
    eigenvalues: Eigenvalues,
    debugging: Debugging,
) -> int:
    """Compute the eigenvalues nearest to a frequency without any full matrix.

    MODEL is Python, path/to/file.py:name or package.module:name(...) (Lagrange's equations, or their form at a point),
    or a mechanism in mechanism.toml, robot.urdf or robot.sdf. For systems of thousands of coordinates:
    "fmilin.systems:flexible_double_pendulum(elements=2000)", "fmilin.systems:four_bar_form(loops=20000)". Redundant
    coordinates (rcs) are used unless --formulation names others; all of them are sparse.
    """
    name_of_form = formulation or "rcs"
    choices.check(name_of_form)
    sparsity = eigenvalues.sparsity

    def job(runner: JobRunner) -> None:
        from fmilin.formulations.sparse import Around, eigenvalues_near
        from fmilin.loading.lagrange_equations import locate_equations

        near = Around(eigenvalues.around, eigenvalues.count)
        equations = locate_equations(model, point.settings)
        name, form = equations.name, equations.form
        if sparsity is not None:
            from fmilin.report.formulations import sparsity_figure

            runner.draw(sparsity, sparsity_figure(form, title=name), "mass matrices and their factors")
        chosen = choices.formulation(name_of_form)
        spectrum = eigenvalues_near(form, chosen, around=near, independent=how.independent)
        if name_of_form == "mcs" and not how.at_singularity:
            equations.require_regular(spectrum)
        if eigenvalues.as_json:
            runner.print_json({"format": "fmilin-spectrum/1", "model": name, **_describe_spectrum(spectrum)})
            return
        from fmilin.report.formulations import show_nearest

        runner.print_shown(show_nearest, name, spectrum)

    return work(job, debug=debugging.debug)


def _describe_spectra(model: Model, point: OperatingPoint, spectra: Sequence[Spectrum]) -> dict[str, Any]:
    """Return the document of several spectra of a model at one point, format ``fmilin-spectra/1``."""
    return {
        "format": "fmilin-spectra/1",
        "model": model.info.name,
        "point": {
            "time": point.time,
            "states": dict(zip(model.states.names, point.states.tolist(), strict=True)),
            "inputs": dict(zip(model.inputs.names, point.inputs.tolist(), strict=True)),
        },
        "spectra": [_describe_spectrum(spectrum) for spectrum in spectra],
    }


def _describe_spectrum(spectrum: Spectrum) -> dict[str, Any]:
    """Return plain data, None in place of infinite eigenvalues."""
    return {
        "formulation": spectrum.formulation,
        "method": spectrum.method,
        "sizes": dict(spectrum.sizes),
        "eigenvalues": [[s.real, s.imag] if abs(s) < float("inf") else None for s in spectrum.eigenvalues.tolist()],
        "labels": list(spectrum.labels),
        "violations": spectrum.violations.tolist(),
        "errors": spectrum.errors.tolist(),
        "warnings": [{"kind": remark.kind, "message": str(remark)} for remark in spectrum.remarks],
    }
