"""Options of a command, derived from frozen dataclasses: of :mod:`fmilin.options`, and of the commands themselves.

A field's description gives name, former names, help, group, default and how its value is written. A command takes a
dataclass with :func:`take`, and is called with an instance of it.
"""

from __future__ import annotations

# ruff: noqa: A002 - help is the word of every command line
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, fields, replace
from functools import reduce, wraps
from pathlib import Path
from typing import Any, TypeVar, cast, dataclass_transform

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from fmilin.cli import options
from fmilin.errors import UsageError
from fmilin.formats import Holds, listed, suffixes
from fmilin.options import OptionDescription, describe
from fmilin.support.dataclass import dataclass
from fmilin.support.files import check_writable
from fmilin.support.option import METAVARS, Kind, Option

OPTIONS = "Options"
SMALLER = "Smaller, sampled or scaled"
WEIGHTS = "Weights and noise of the regulator"
FILES = "Files"
MESSAGES = "Messages and limits"
"""Headings of options that only commands have; the others are in :mod:`fmilin.options.groups`."""

MODEL = click.argument("model", shell_complete=lambda *arguments: [CompletionItem(arguments[2], type="file")])
T = TypeVar("T")
C = TypeVar("C", bound=type)
Command = Callable[..., int]
Decorator = Callable[[Command], Command]
Read = Callable[[Any, str], Any]


@dataclass(frozen=True, slots=True)
class ValueReader:
    """How the value of a field is written on the command line."""

    type: click.ParamType[Any] | type | None = None  # of one value
    read: Read | None = None  # what makes the value of the field, from that of click and the option's name
    is_repeatable: bool = False
    is_switch: bool = False
    shows_default: bool = False


READINGS: Mapping[Kind, ValueReader] = {
    "switch": ValueReader(is_switch=True),
    "names": ValueReader(read=options.names),
    "number": ValueReader(float, options.finite, shows_default=True),
    "integer": ValueReader(int, shows_default=True),
    "text": ValueReader(str),
    "choice": ValueReader(shows_default=True),
    "texts": ValueReader(str, is_repeatable=True),
    "assignments": ValueReader(str, options.assignments, is_repeatable=True),
    "assignment lists": ValueReader(str, options.assignment_lists, is_repeatable=True),
    "path": ValueReader(click.Path(path_type=Path)),
    "paths": ValueReader(click.Path(path_type=Path), is_repeatable=True),
}
"""By kind; options of the kinds ``numbers`` and ``special`` bring a reading of their own."""


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def options_of_commands(group: C) -> C:
    """Make a class a frozen dataclass of options, without comparison and text; a class decorator.

    Nothing needs them, and to make them is half of the time that a dataclass adds to the start of every command.
    """
    return cast("C", dataclass(frozen=True, eq=False, repr=False)(group))


@dataclass(frozen=True, slots=True)
class CommandLineOption(Option):
    """The description of an option that only commands have."""

    short: str = ""  # a name of one letter
    reading: ValueReader | None = None  # where that of its kind does not fit
    needs: tuple[str, ...] = ()  # options, one of which must be there as well
    conflicts: tuple[str, ...] = ()  # options that exclude it
    because: str = ""  # why they do, a sentence


def command_option(
    default: T,
    help: str,
    group: str,
    kind: Kind,
    *,
    flag: str = "",
    short: str = "",
    old_flags: tuple[str, ...] = (),
    metavar: str = "",
    choices: tuple[str, ...] = (),
    reading: ValueReader | None = None,
    needs: str = "",
    conflicts: str = "",
    because: str = "",
) -> T:
    """Return a dataclass field that is an option of commands.

    ``needs`` and ``conflicts`` list options; ``because`` is a sentence that says why they conflict.
    """
    described = CommandLineOption(
        help=help,
        group=group,
        kind=kind,
        flag=flag,
        old_flags=old_flags,
        metavar=metavar or METAVARS.get(kind, ""),
        choices=choices,
        short=short,
        reading=reading,
        needs=tuple(needs.split()),
        conflicts=tuple(conflicts.split()),
        because=because,
    )
    metadata = {"option": described}
    if isinstance(default, dict):
        return cast("T", field(default_factory=dict, metadata=metadata))
    return field(default=default, metadata=metadata)


def switch(help: str, group: str, *, flag: str = "", needs: str = "", conflicts: str = "", because: str = "") -> bool:
    """Return a field that is true if the option is there."""
    return command_option(
        default=False,
        help=help,
        group=group,
        kind="switch",
        flag=flag,
        needs=needs,
        conflicts=conflicts,
        because=because,
    )


def json_switch(help: str) -> bool:
    """Return a field for ``--json``."""
    return switch(help, MESSAGES, flag="--json")


def new_files(holds: Holds) -> tuple[Path, ...]:
    """Return a field for ``-o``, repeatable, of files that hold such a thing."""
    return cast("tuple[Path, ...]", field(default=(), metadata=require_files(holds)))


def require_files(holds: Holds) -> Mapping[str, Option]:
    """Return the metadata of a field for ``-o``, repeatable; without a default the option has to be given."""
    return {
        "option": CommandLineOption(
            help=f"The suffix picks the format: {listed(holds)}",
            group=FILES,
            kind="paths",
            flag="--output",
            metavar="FILE",
            short="-o",
            reading=ValueReader(options.NewFile(suffixes(holds)), is_repeatable=True),
        )
    }


def new_file(help: str, kinds: Sequence[str], *, group: str = FILES, flag: str = "", short: str = "") -> Path | None:
    """Return a field for a file to write, of one of these suffixes, which is checked at once."""
    return command_option(
        None,
        help,
        group,
        "path",
        flag=flag,
        short=short,
        metavar=f"FILE{'|'.join(kinds)}",
        reading=new_file_reading(kinds),
    )


def require_file(help: str, kinds: Sequence[str]) -> Mapping[str, Option]:
    """Return the metadata of a field for ``-o``, which has to be given, of a file of one of these suffixes."""
    return {
        "option": CommandLineOption(
            help=help,
            group=FILES,
            kind="path",
            flag="--output",
            metavar=f"FILE{'|'.join(kinds)}",
            short="-o",
            reading=new_file_reading(kinds),
        )
    }


def new_file_reading(kinds: Sequence[str]) -> ValueReader:
    """Return how a file to write, of one of these suffixes, is written on the command line."""

    def check(path: Path, option: str) -> Path:
        if path.suffix.lower() not in kinds:
            raise UsageError(f"{option} '{path}': the file has to end in {' or '.join(kinds)}.")
        check_writable(path)
        return path

    return ValueReader(options.NewFile(kinds), check)


class DerivedOption(click.Option):
    """A click option that was made of the field of a dataclass; its former names are accepted and not shown."""

    def __init__(
        self,
        names: Sequence[str],
        *,
        keyword: str,
        kind: Kind,
        is_of_commands_only: bool,
        group: str,
        old_flags: tuple[str, ...],
        needs: tuple[str, ...],
        conflicts: tuple[str, ...],
        because: str,
        **more: Any,
    ) -> None:
        super().__init__(names, **more)
        self.keyword = keyword
        self.kind = kind
        self.is_of_commands_only = is_of_commands_only
        self.group = group
        self.old_flags = old_flags
        self.needs = needs
        self.conflicts = conflicts
        self.because = because

    @property
    def flag(self) -> str:
        """The long name that the help shows."""
        return [name for name in self.opts if name not in self.old_flags][-1]

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the line of the help, without former names."""
        all_names = self.opts
        self.opts = [name for name in all_names if name not in self.old_flags]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = all_names

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """Return the name for error messages."""
        return f"'{self.flag}'"


def take(
    parameter: str,
    dataclass_type: Callable[..., object],
    *,
    omit: Collection[str] = (),
    only: Collection[str] = (),
    apart: Collection[str] = (),
    readings: Mapping[str, ValueReader] | None = None,
    more_choices: Mapping[str, tuple[str, ...]] | None = None,
) -> Decorator:
    """Return a decorator that gives a command the options of a dataclass, and calls it with an instance.

    Parameters
    ----------
    parameter : str
        The keyword by which the command gets the instance.
    dataclass_type : type
    omit, only : collection of str
        Fields without an option in this command; or those with one.
    apart : collection of str
        Fields of which the command gets the value by their own keyword, and the instance does not.
    readings : mapping of str to Reading
        By field, how its value is written.
    more_choices : mapping of str to tuple of str
        By field, values that this command takes besides those that the field has.
    """
    given_readings = readings or {}
    described = {
        d.keyword: d
        for d in describe(cast("type", dataclass_type))
        if d.option and d.keyword not in omit and (not only or d.keyword in only)
    }
    for keyword, choices in (more_choices or {}).items():
        described[keyword] = replace(described[keyword], choices=(*described[keyword].choices, *choices))
    metadata = {f.name: f.metadata["option"] for f in fields(cast("Any", dataclass_type)) if f.name in described}
    names = {keyword: f"{parameter}__{keyword}" for keyword in described}
    made = [
        _make_option(names[keyword], description, metadata[keyword], given_readings.get(keyword))
        for keyword, description in described.items()
    ]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_instance(**values_by_name: Any) -> int:
            values = {keyword: values_by_name.pop(name) for keyword, name in names.items()}
            separate = {keyword: values.pop(keyword) for keyword in apart}
            return command(**{parameter: dataclass_type(**values)}, **separate, **values_by_name)

        return together(*made)(with_instance)

    return decorate


def together(*decorators: Decorator) -> Decorator:
    """Return a decorator for all of ``decorators``, in the order of the help."""
    return lambda command: reduce(lambda decorated, decorator: decorator(decorated), reversed(decorators), command)


def _make_option(
    name: str, description: OptionDescription, described: Option, reading: ValueReader | None
) -> Decorator:
    """Return the decorator that adds the click option of a field; ``name`` is that of its value in click."""
    special = described if isinstance(described, CommandLineOption) else CommandLineOption("", "", description.kind)
    reading = reading or special.reading or READINGS[description.kind]
    flags = [text for text in (special.short, description.option, *description.old_options) if text]
    more: dict[str, Any] = {"help": _help(description, reading), "required": description.is_required}
    if reading.is_switch:
        more["is_flag"] = True
    else:
        more["type"] = click.Choice(description.choices) if description.choices else reading.type
        more["metavar"] = None if description.choices else description.metavar
        more["multiple"] = reading.is_repeatable
        if reading.shows_default and description.default is not None:
            more["default"] = description.default
        more["callback"] = _callback(description, reading)
    return click.option(
        *flags,
        name,
        cls=DerivedOption,
        keyword=description.keyword,
        kind=description.kind,
        is_of_commands_only=isinstance(described, CommandLineOption),
        group=description.group,
        old_flags=description.old_options,
        needs=special.needs,
        conflicts=special.conflicts,
        because=special.because,
        **more,
    )


def _help(description: OptionDescription, reading: ValueReader) -> str:
    """Return the help of an option; one that may be given several times says so."""
    text = description.help
    if not reading.is_repeatable:
        return text
    second = text[1:2]
    return f"Repeatable: {text if second.isupper() else text[:1].lower() + text[1:]}"


def _callback(
    description: OptionDescription, reading: ValueReader
) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return the click callback that reads a value; an option that is not there has the default of its field."""

    def read(_: click.Context, __: click.Parameter, value: Any) -> Any:
        if value is None or (reading.is_repeatable and not value):
            return None if description.is_required else description.default
        return value if reading.read is None else reading.read(value, description.option or "")

    return read


def require_options_that_fit(context: click.Context) -> None:
    """Raise UsageError if an option lacks another one that it needs, or if two options exclude each other."""
    derived = [p for p in context.command.params if isinstance(p, DerivedOption)]
    available = {name for p in derived for name in p.opts}
    present_options = {
        name: p
        for p in derived
        for name in p.opts
        if context.get_parameter_source(p.name or "") == ParameterSource.COMMANDLINE
    }
    for option in dict.fromkeys(present_options.values()):
        for other in option.conflicts:
            if other in present_options:
                reason = f"{option.because} " if option.because else ""
                raise UsageError(f"{reason}{option.flag} and {other} exclude each other: leave one of them out.")
        needed = [name for name in option.needs if name in available]
        if needed and not any(name in present_options for name in needed):
            listed = " or ".join(needed)
            raise UsageError(f"{option.flag} requires {listed}: add {listed}, or leave this option out: {option.flag}.")


def list_used_options(*parameters: str) -> tuple[str, ...]:
    """Return the options of these groups that stand on the command line, as :func:`take` names groups."""
    context = click.get_current_context(silent=True)
    if context is None:
        return ()
    return tuple(
        option.flag
        for option in context.command.params
        if isinstance(option, DerivedOption)
        and (option.name or "").partition("__")[0] in parameters
        and context.get_parameter_source(option.name or "") == ParameterSource.COMMANDLINE
    )
