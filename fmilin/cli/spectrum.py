"""``fmilin spectrum MODEL``: a few eigenvalues of a large constrained system around a frequency."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli.files import Command
from fmilin.cli.formulations import FORMS, PENALTY, Formulated, document_of
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.model_options import DEBUG
from fmilin.cli.options import MODEL, json_option, names_option, one_of, picture_option, settings_option
from fmilin.ground.errors import NumericalError, UsageError

if TYPE_CHECKING:
    from fmilin.model.interface import Model, OperatingPoint
    from fmilin.native.formulations import ConstrainedForm, Spectrum


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
        from fmilin.native.formulations.sparse import Around, eigenvalues_near

        near = Around(around, count)
        equations = _form(model, settings)
        name, form = equations.name, equations.form
        if sparsity is not None:
            _draw(form, name, sparsity, runner)
        chosen = asked_for.options(formulation) if asked_for is not None else formulation
        spectrum = eigenvalues_near(form, chosen, around=near, independent=independent)
        if formulation == "mcs" and not at_singularity:
            _require_regular(equations, spectrum)
        if as_json:
            from fmilin.output.export.json_file import text_of

            runner.results.write(text_of({"format": "fmilin-spectrum/1", "model": name, **document_of(spectrum)}))
            return
        from fmilin.output.report.formulations import print_nearest

        print_nearest(name, spectrum, runner.results)

    return work(job, isolate=False, debug=debug)


@dataclass(frozen=True)
class Equations:
    """The equations at a point; model and point where they were made from one."""

    name: str
    form: ConstrainedForm
    model: Model | None = None
    point: OperatingPoint | None = None


def _require_regular(equations: Equations, spectrum: Spectrum) -> None:
    """Refuse minimal coordinates where constraints depend on each other only at the point, if a model can tell that."""
    if spectrum.sizes["rank"] == spectrum.sizes["m"] or equations.model is None or equations.point is None:
        return
    from fmilin.manifold.singular import singularity_of

    text = singularity_of(equations.model, equations.point)
    if text:
        raise NumericalError(
            f"{text} The formulations rcs and ucs need no choice of velocities and return the spectrum over the "
            "enlarged set as they are.",
            condition_number=math.inf,
        )


def _form(source: str, values: dict[str, float]) -> Equations:
    """Return the equations of what was asked for, at its point."""
    from fmilin.loading.python_objects import python_object
    from fmilin.manifold.operating_points import operating_point
    from fmilin.model.interface import Model
    from fmilin.native.formulations import ConstrainedForm
    from fmilin.native.formulations.of_model import form_of
    from fmilin.native.formulations.sparse import sparse_form_of

    target: Any = python_object(source)
    if target is None:
        target = _mechanism(source)
    if isinstance(target, ConstrainedForm):
        if values:
            raise UsageError(f"'{source}' is no model but its equations at one point: --set cannot change it.")
        return Equations(source.rpartition(":")[2], target)
    if not isinstance(target, Model):
        raise UsageError(
            f"'{source}' is a {type(target).__name__}, and not a model of Lagrange's equations: name one, or a "
            "function that returns one, as in 'fmilin.systems:flexible_double_pendulum(elements=100)'."
        )
    if target.sparse:
        at = operating_point(target, values) if values else None
        return Equations(target.info.name, sparse_form_of(target, at), target, at or target.start)
    point = operating_point(target, values)
    return Equations(target.info.name, form_of(target, point), target, point)


def _mechanism(source: str) -> Model:
    """Return the mechanism in a file."""
    if not source.lower().endswith((".toml", ".urdf")):
        raise UsageError(
            f"'{source}' does not give its equations of motion, which 'fmilin spectrum' needs: name a mechanism in a "
            ".toml or .urdf file, or a model in Python, as 'fmilin.systems:flexible_double_pendulum(elements=100)'. "
            f"'fmilin linearize {source}' finds the eigenvalues of any model."
        )
    from fmilin.loading.load import load

    return load(source)


def _draw(form: ConstrainedForm, name: str, path: Path, runner: JobRunner) -> None:
    from fmilin.output.report.formulations import sparsity_picture

    runner.write_files({path: sparsity_picture(form, title=name, suffix=path.suffix)})
