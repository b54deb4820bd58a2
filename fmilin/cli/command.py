"""The common parts of all commands: separate files, and options under headings, frequent ones first."""

import difflib
import re
from collections.abc import Iterable, Sequence
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click

from fmilin.cli.derive import FILES, MESSAGES, OPTIONS, SMALLER, WEIGHTS, DerivedOption, require_options_that_fit
from fmilin.cli.duration import deadline_option
from fmilin.cli.options import INPUTS, NewFile, require_apart
from fmilin.errors import UsageError
from fmilin.formats import alternatives, listed
from fmilin.options.groups import (
    COSIMULATION,
    FMU_PROCESS,
    FORMULATIONS,
    LINEARIZATION,
    LOOPS,
    MODEL,
    MOTION,
    POINT,
    PROCESSES,
)

_WITH_DRIVES = re.compile(r"(?:\b[A-Za-z]:)?[^:]+")

EVERY_DAY = {
    "mcp": "--folder --allow-python",
    "linearize": "-o --json --set --trim --fix --free --constraint --discover --independent --inputs --outputs --point",
    "info": "--json --run --check",
    "discover": "--excite --set -o --json",
    "explain": "--input --output --set --trim --fix --free --point --json",
    "trim": "--fix --free --steady --bound --near --minimize --stable --guess --set -o --json",
    "sweep": "--vary --zip --trim --fix --free --independent --inputs --outputs -o --plot --json --jobs --resume",
    "simulate": "--stop-time --start-time --input --set -o --plot --against --outputs --method --step --tolerance",
    "floquet": "--period --turn --fix --free --steady --set --vary -o --plot --json --points --independent",
    "verify": "--horizon --plot --json",
    "plot": "--kind -o --against --mode --amplitude --stop-time --quantity --orders --hertz --factors --set --trim "
    "--inputs --outputs",
    "explore": "--set --trim --fix --free --independent --inputs --outputs --point --no-browser",
    "report": "-o --against --verify --horizon --set --trim --inputs --outputs",
    "audit": "--against --json --set --trim --inputs --outputs",
    "spectrum": "--around --count --formulation --penalty --set --json",
    "build": "-o --fmi --platforms --no-directional-derivatives",
    "convert": "-o --grid",
}
"""By command: the options of the first heading, in their order."""

HEADINGS = (
    OPTIONS, WEIGHTS, MODEL, POINT, LINEARIZATION, LOOPS, SMALLER, FILES, COSIMULATION, FORMULATIONS, MOTION, PROCESSES,
    FMU_PROCESS, MESSAGES,
)  # fmt: skip
"""In the order of the help."""


def group_options(command: str, options: Sequence[click.Parameter]) -> dict[str, list[click.Parameter]]:
    """Return the options of a command by heading, both in the order in which its help shows them."""
    everyday = EVERY_DAY.get(command, "").split()
    groups: dict[str, list[click.Parameter]] = {title: [] for title in HEADINGS}
    for option in options:
        title = option.group if isinstance(option, DerivedOption) else MESSAGES
        groups[OPTIONS if set(option.opts) & set(everyday) else title].append(option)
    groups[OPTIONS].sort(key=lambda o: next((i for i, name in enumerate(everyday) if name in o.opts), len(everyday)))
    return {title: members for title, members in groups.items() if members}


MIN_FLAG_RESEMBLANCE = 0.65  # of an option that is suggested: at 0.6 '--model' is answered with '--delay'


def _find_near_flags(flag: str, flags: Sequence[str]) -> tuple[str, ...]:
    """Return the options that look like a misspelt one, best first."""
    words = {name.removeprefix("--"): name for name in flags}
    near = difflib.get_close_matches(flag.lstrip("-"), list(words), n=3, cutoff=MIN_FLAG_RESEMBLANCE)
    return tuple(words[word] for word in near)


KINDS = (
    "MODEL is model.fmu, a mechanism in mechanism.toml, robot.urdf or robot.sdf, system.ssp (connected FMUs), a file "
    "that an adapter reads, such as scene.xml (see 'fmilin adapters'), or Python: path/to/file.py:name or "
    "package.module:name."
)


class Command(click.Command):
    """A command that first of all does not write to a file that it reads; its help says what MODEL may be."""

    reads_constraints = True  # whether it takes the constraints file next to a model as declared

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.params.append(deadline_option())
        # in the order of the help, in which the documentation shows them, too
        options = [p for p in self.params if isinstance(p, click.Option)]
        self.params = [p for p in self.params if not isinstance(p, click.Option)]
        self.params += [option for group in self._group_options(options).values() for option in group]
        self.examples = tuple(examples)
        self.help = cleandoc(self.help or "").format_map(
            {
                "linear_files": listed("linear model", complete=True),
                "linear_file": alternatives("linear model", complete=True),
                "lossless": alternatives("linear model", "and", complete=True),
                "readable": alternatives("linear model", readable=True),
                "family_files": listed("family", readable=True),
                "families": listed("family"),
            }
        )
        if "MODEL is " not in (self.help or "") and any(p.name == "model" for p in self.params):
            self.help = f"{self.help}\n\n{KINDS}"
        if examples:
            self.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options; one that other commands have and that has no meaning here is named with the reason."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            reason = getattr(self.callback, "reasons", {}).get(error.option_name)
            if reason is None:
                flags = [flag for parameter in self.get_params(ctx) for flag in parameter.opts if flag.startswith("--")]
                near = _find_near_flags(error.option_name, flags)
                raise click.NoSuchOption(error.option_name, possibilities=near, ctx=error.ctx) from None
            raise UsageError(
                f"{error.option_name} has no meaning in '{ctx.command_path}'. {reason} Leave it out of this command."
            ) from None

    def _group_options(self, options: Sequence[click.Parameter]) -> dict[str, list[click.Parameter]]:
        return group_options((self.callback.__module__ if self.callback else "").rpartition(".")[2], options)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        visible_options = [p for p in self.get_params(ctx) if isinstance(p, click.Option) and p.get_help_record(ctx)]
        for title, options in self._group_options(visible_options).items():
            with formatter.section(title):
                formatter.write_dl([record for p in options if (record := p.get_help_record(ctx))])

    def invoke(self, ctx: click.Context) -> Any:
        """Examine all options and files of the command line together, and then run."""
        require_options_that_fit(ctx)
        inputs: list[Path] = []
        outputs: list[Path] = []
        for parameter in self.params:
            value = ctx.params.get(parameter.name or "")
            values = value if isinstance(value, tuple) else () if value is None else (value,)
            if isinstance(parameter.type, NewFile):
                outputs += values
            elif isinstance(parameter.type, click.Path):
                inputs += values
            elif parameter.name == "model":
                inputs += [
                    file for v in values for file in list_model_files(str(v), constraints=self.reads_constraints)
                ]
        ctx.meta[INPUTS] = inputs
        require_apart(outputs)
        return super().invoke(ctx)


def list_model_files(model: str, *, constraints: bool = True) -> Iterable[Path]:
    """Return the files that MODEL may name, in ``file.py:name`` and ``ADAPTER:FILE``, too, maybe with constraints.

    Parts are separated by colons. A single letter may be a part, or a drive of Windows that belongs to the next one.

    >>> print(*(path for path in list_model_files("mujoco:C:/scene.xml", constraints=False)))
    mujoco:C:/scene.xml mujoco C /scene.xml C:/scene.xml
    """
    for part in dict.fromkeys((model, *model.split(":"), *_WITH_DRIVES.findall(model))):
        path = Path(part)
        yield path
        if path.name and constraints:
            yield path.with_name(f"{path.stem}.fmilin.toml")
