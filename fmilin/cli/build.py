"""``fmilin build MODEL -o FILE.fmu``: a native description as a nonlinear FMU."""

import sys
from dataclasses import field
from pathlib import Path

import click

from fmilin.cli.command import Command
from fmilin.cli.derive import MODEL, OPTIONS, options_of_commands, require_file, switch, take
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.linear_options import FmuWriting
from fmilin.cli.model_options import DEBUG, SOURCE_OPTIONS, Debugging, source_options
from fmilin.errors import UsageError
from fmilin.loading.source_kind import is_fmu
from fmilin.options import SourceOptions


@options_of_commands
class BuildOptions:
    """Where the FMU goes, and what it has."""

    output: Path = field(metadata=require_file("The FMU file to write.", (".fmu",)))
    no_directional_derivatives: bool = switch("Leave out the exact directional derivatives.", OPTIONS)


@click.command(
    cls=Command,
    examples=[
        "fmilin build fmilin.systems:four_bar -o four_bar.fmu",
        "fmilin build loader.toml -o loader.fmu --fmi 3.0",
    ],
)
@MODEL
@take("target", BuildOptions)
@take("written", FmuWriting)
@SOURCE_OPTIONS
@DEBUG
def command(model: str, target: BuildOptions, written: FmuWriting, opened: SourceOptions, debugging: Debugging) -> int:
    """Compile a native model to an FMU for model exchange and co-simulation, its constraints inside.

    MODEL is Python, path/to/file.py:name or package.module:name, or a mechanism in mechanism.toml, robot.urdf or
    robot.sdf. Needs a C compiler. A model that cannot print itself as C (an engine's, as scene.xml, or Python
    functions) becomes an FMU 2.0 for co-simulation that runs Python: this needs the package pythonfmu.
    """
    output, fmi, platforms = target.output, written.fmi, written.platforms
    source_settings = source_options(opened)
    if is_fmu(model):
        raise UsageError(f"'{model}' is an FMU already. Build from a native model, such as fmilin.systems:four_bar.")

    def job(runner: JobRunner) -> None:
        import fmilin as fl
        from fmilin.fmi.write import build_fmu
        from fmilin.model.capabilities import has_graph
        from fmilin.wrapping import wrap_as_fmu

        native = runner.borrow(fl.load(model, options=source_settings))
        if not has_graph(native):
            if fmi != "2.0" or platforms:
                raise UsageError(
                    f"'{model}' cannot be compiled to C, so it becomes an FMU that runs Python, for which --fmi 3.0 "
                    "and --platforms are not available. Leave them out."
                )
            if source_settings:
                raise UsageError(
                    f"'{model}' cannot be compiled to C, and the FMU that runs Python opens the file as it is. Leave "
                    f"{', '.join(source_settings)} out."
                )
            wrap_as_fmu(model, output)
            sys.stderr.write(
                f"{output}: FMI 2.0, co-simulation; it runs Python and works in importers written in Python (FMPy, "
                "fmilin; not PyFMI) where fmilin is installed\n"
            )
            return
        build_fmu(
            native,
            output,
            fmi_version=fmi,
            directional_derivatives=not target.no_directional_derivatives,
            platforms=platforms,
        )
        sys.stderr.write(f"{output}: FMI {fmi}, model exchange and co-simulation\n")

    return work(job, debug=debugging.debug)
