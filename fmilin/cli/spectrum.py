"""``fmilin spectrum MODEL``: a few eigenvalues of a large constrained system around a frequency."""

from __future__ import annotations

from pathlib import Path

import click

from fmilin.cli.files import Command
from fmilin.cli.formulations import FORMS, PENALTY, Formulated
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.model_options import DEBUG
from fmilin.cli.options import MODEL, json_option, names_option, one_of, picture_option, settings_option


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
@settings_option("Repeatable: a start value or input.")
@picture_option("Draw the mass matrices of all formulations and their factors.", "--sparsity")
@click.option(
    "--at-singularity", is_flag=True, help="With mcs at a singular configuration: over all velocities with G v = 0."
)
@json_option("One JSON document on standard output.")
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
        from fmilin.loading.equations import equations_of
        from fmilin.native.formulations.sparse import Around, eigenvalues_near

        near = Around(around, count)
        equations = equations_of(model, settings)
        name, form = equations.name, equations.form
        if sparsity is not None:
            from fmilin.output.report.formulations import sparsity_figure

            runner.draw(sparsity, sparsity_figure(form, title=name), "mass matrices and their factors")
        chosen = asked_for.options(formulation) if asked_for is not None else formulation
        spectrum = eigenvalues_near(form, chosen, around=near, independent=independent)
        if formulation == "mcs" and not at_singularity:
            equations.require_regular(spectrum)
        if as_json:
            from fmilin.output.export.spectra import spectrum_text

            runner.results.write(spectrum_text(name, spectrum))
            return
        from fmilin.output.report.formulations import show_nearest

        runner.print_shown(show_nearest, name, spectrum)

    return work(job, isolate=False, debug=debug)
