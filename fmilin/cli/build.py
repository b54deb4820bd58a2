"""``fmilin build MODEL -o FILE.fmu``: a native description as a nonlinear FMU."""

import sys
from pathlib import Path

import click

from fmilin.cli.command import Command
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.linear_options import FMI, PLATFORMS
from fmilin.cli.model_options import DEBUG, FileOptions, file_options
from fmilin.cli.options import MODEL, new_file_option
from fmilin.errors import UsageError
from fmilin.loading.request import is_fmu


@click.command(
    cls=Command,
    examples=[
        "fmilin build fmilin.systems:four_bar -o four_bar.fmu",
        "fmilin build loader.toml -o loader.fmu --fmi 3.0",
    ],
)
@MODEL
@new_file_option("-o", "--output", suffix=".fmu", required=True, help="Where the FMU goes.")
@FMI
@PLATFORMS
@click.option("--no-directional-derivatives", is_flag=True, help="Leave out the exact directional derivatives.")
@file_options
@DEBUG
def command(
    model: str,
    output: Path,
    fmi: str,
    platforms: tuple[str, ...],
    opened: FileOptions,
    *,
    no_directional_derivatives: bool,
    debug: bool,
) -> int:
    """Compile a native model to an FMU for model exchange and co-simulation, its constraints inside.

    MODEL is Python, path/to/file.py:name or package.module:name, or a mechanism in mechanism.toml or robot.urdf. Needs
    a C compiler. A model that cannot print itself as C (an engine's, as scene.xml, or Python functions) becomes an FMU
    2.0 for co-simulation that runs Python: this needs the package pythonfmu.
    """
    if is_fmu(model):
        raise UsageError(f"'{model}' is an FMU already. Build from a native model, such as fmilin.systems:four_bar.")

    def job(runner: JobRunner) -> None:
        import fmilin as fl
        from fmilin.fmi.write import build_fmu
        from fmilin.wrapping import wrap_as_fmu

        native = runner.borrow(fl.load(model, options=opened.given()))
        if not native.compilable:
            if fmi != "2.0" or platforms:
                raise UsageError(
                    f"'{model}' cannot be compiled to C, so it becomes an FMU that runs Python: there --fmi 3.0 and "
                    "--platforms are not to be had."
                )
            if given := opened.given():
                raise UsageError(
                    f"'{model}' cannot be compiled to C, and the FMU that runs Python opens the file as it is: "
                    f"{', '.join(given)} cannot be asked for."
                )
            wrap_as_fmu(model, output)
            sys.stderr.write(
                f"{output}: FMI 2.0, co-simulation; it runs Python, so it works in importers that are Python "
                "themselves (FMPy, fmilin; not PyFMI), where fmilin is installed\n"
            )
            return
        build_fmu(
            native, output, fmi_version=fmi, directional_derivatives=not no_directional_derivatives, platforms=platforms
        )
        sys.stderr.write(f"{output}: FMI {fmi}, model exchange and co-simulation\n")

    return work(job, isolate=False, debug=debug)
