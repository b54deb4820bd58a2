"""``fmilin examples``: the examples that come with fmilin, and copies of them to run and to change."""

import shutil
from pathlib import Path

import click

import fmilin
from fmilin.cli.command import Command
from fmilin.cli.derive import OPTIONS, command_option, options_of_commands, take
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.model_options import DEBUG, Debugging
from fmilin.errors import UnknownNameError, UsageError

LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc")


def folder_of_examples() -> Path:
    """Return where the examples lie: inside the installed package, or in the checkout that it runs from."""
    package = Path(fmilin.__file__).parent
    for folder in (package / "examples", package.parent / "examples"):
        if folder.is_dir():
            return folder
    raise UsageError("No examples were installed with this fmilin. They are in its source distribution.")


def names(folder: Path) -> dict[str, str]:
    """Return what each example shows, by name: the first heading of its README."""
    headings = {}
    for readme in sorted(folder.glob("*/README.md")):
        heading = readme.read_text(encoding="utf-8").partition("\n")[0]
        headings[readme.parent.name] = heading.lstrip("# ").strip()
    return headings


@options_of_commands
class ExampleOptions:
    """Where an example is copied to."""

    to: Path | None = command_option(
        None,
        "Folder of the copy; by default a folder of the example's name in the working directory.",
        OPTIONS,
        "path",
        metavar="FOLDER",
    )


@click.command(cls=Command, examples=["fmilin examples", "fmilin examples bicycle"])
@click.argument(
    "name",
    required=False,
    shell_complete=lambda *arguments: [n for n in names(folder_of_examples()) if n.startswith(arguments[2])],
)
@take("copy", ExampleOptions)
@DEBUG
def command(name: str | None, copy: ExampleOptions, debugging: Debugging) -> int:
    """List the examples, or copy one of them to a folder of its own, to run and to change.

    Each has a README.md with the commands to type; most have a run.py.
    """
    to = copy.to
    if name is None and to is not None:
        raise UsageError(
            "--to names the folder of a copy: name the example too, as in 'fmilin examples bicycle --to FOLDER'."
        )

    def job(runner: JobRunner) -> None:
        folder = folder_of_examples()
        headings = names(folder)
        if name is None:
            width = max(map(len, headings))
            runner.results.write("".join(f"{n:{width}}  {headings[n]}\n" for n in headings))
            return
        if name not in headings:
            raise UnknownNameError.among(name, headings, "an example")
        target = Path(name) if to is None else to
        _copy(folder / name, target)
        runner.results.write(f"{target}: {headings[name]}. Begin with {target / 'README.md'}.\n")

    return work(job, debug=debugging.debug)


def _copy(source: Path, target: Path) -> None:
    """Copy a folder to one that does not exist or is empty."""
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise UsageError(f"The path '{target}' exists already. Name another folder with --to, or remove it.")
    try:
        shutil.copytree(source, target, ignore=LEFT_OUT, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        raise UsageError(f"Cannot copy the example to '{target}': {error}. Name another folder with --to.") from None
