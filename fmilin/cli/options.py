"""What is written on the command line, as values: checked before any model is touched.

Options that several commands share are the fields of a frozen dataclass, each made by :func:`option`, which
:func:`grouped` hands to a command.
"""

from __future__ import annotations

# ruff: noqa: A002 - help is what click calls it
import math
from collections.abc import Callable, Sequence
from dataclasses import field, fields
from functools import reduce, wraps
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from fmilin.cli.command import NewFile, require_apart
from fmilin.errors import UsageError
from fmilin.export.files import check_output
from fmilin.formats import Holds, listed, suffixes
from fmilin.support.files import check_writable

Command = Callable[..., int]
Decorator = Callable[[Command], Command]
MODEL = click.argument("model", shell_complete=lambda *given: [CompletionItem(given[2], type="file")])


def path_option(*names: str, metavar: str, help: str, **more: Any) -> Decorator:
    """Return an option that names a file to read."""
    return click.option(*names, metavar=metavar, type=click.Path(path_type=Path), help=help, **more)


def output_option(*names: str, metavar: str, help: str, suffixes: Sequence[str] = (), **more: Any) -> Decorator:
    """Return an option that names a file to write."""
    return click.option(*names, metavar=metavar, type=NewFile(suffixes), help=help, **more)


def outputs_of(holds: Holds, **more: Any) -> Decorator:
    """Return ``-o`` for files that hold such a thing."""
    text = f"Repeatable; the suffix picks the format: {listed(holds)}"
    more |= {"multiple": True, "suffixes": suffixes(holds)}
    return output_option("-o", "--output", metavar="FILE", help=text, **more)


def new_file_option(*names: str, suffix: str | tuple[str, ...], help: str, **more: Any) -> Decorator:
    """Return an option that names a file to write, of one kind: refused at once where that cannot be done."""
    kinds = (suffix,) if isinstance(suffix, str) else suffix

    def checked(path: Path | None, option: str) -> Path | None:
        if path is not None:
            if path.suffix.lower() not in kinds:
                raise UsageError(f"{option} '{path}': the file has to end in {' or '.join(kinds)}.")
            check_writable(path)
        return path

    metavar = f"FILE{'|'.join(kinds)}"
    return output_option(*names, metavar=metavar, help=help, suffixes=kinds, callback=read_by(checked), **more)


def picture_option(help: str, name: str = "--plot") -> Decorator:
    """Return ``--plot``."""
    return new_file_option(name, suffix=suffixes("picture"), help=help)


def json_option(help: str) -> Decorator:
    """Return ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help=help)


def read_by(read: Callable[[Any, str], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return a callback for an option; ``read`` takes what stands behind it and its name, and returns the value."""
    return lambda _, parameter, value: read(value, parameter.opts[-1])


def names_option(name: str, help: str) -> Decorator:
    """Return an option for several names."""
    return click.option(name, metavar="A,B,...", help=help, callback=read_by(names))


def number_option(*names: str, metavar: str, help: str, **more: Any) -> Decorator:
    """Return an option for a finite number."""
    return click.option(*names, metavar=metavar, type=float, help=help, callback=read_by(finite), **more)


def settings_option(help: str) -> Decorator:
    """Return ``--set``."""
    read = read_by(assignments)
    return click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help=help, callback=read)


def one_of(*choices: str) -> click.Choice[str]:
    """Return the type of an option that has these values."""
    return click.Choice(choices)


def choice_option(name: str, help: str, *choices: str, default: str | None = None) -> Decorator:
    """Return an option that has one of these values."""
    return click.option(name, type=one_of(*choices), default=default, help=help)


class Renamed(click.Option):
    """An option whose later names are old ones: accepted, and not shown."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the line of the help, with the first name alone."""
        every, self.opts = self.opts, self.opts[:1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = every


def together(*decorators: Decorator) -> Decorator:
    """Return a decorator for all of ``decorators``, in the order of the help."""
    return lambda command: reduce(lambda decorated, decorator: decorator(decorated), reversed(decorators), command)


def option(*names: str, by: Callable[..., Decorator] = click.option, **more: Any) -> Any:
    """Return a field of a group: what the option ``names``, by default that of the field's name, is read into."""
    empty = False if more.get("is_flag") else () if more.get("multiple") else None
    return field(default=more.get("default", empty), metadata={"names": names, "by": by, "more": more})


def flag(help: str) -> Any:
    """Return a field of a group that a switch turns on."""
    return option(is_flag=True, help=help)


def names_field(help: str) -> Any:
    """Return a field of a group that takes several names."""
    return option(by=names_option, help=help)


def repeated(metavar: str, help: str, read: Callable[[Any, str], Any] | None = None, **more: Any) -> Any:
    """Return a field of a group whose option may be given several times; ``read`` takes all of them.

    The field's default is what the command line yields without the option: ``read`` of no texts, such as ``{}``.
    """
    if read is None:
        return option(metavar=metavar, multiple=True, help=help, **more)
    made = {"metavar": metavar, "multiple": True, "help": help, "callback": read_by(read), **more}
    metadata = {"names": (), "by": click.option, "more": made}
    return field(default_factory=lambda: read((), ""), metadata=metadata)


def number_field(metavar: str, help: str, **more: Any) -> Any:
    """Return a field of a group that takes a finite number."""
    return option(by=number_option, metavar=metavar, help=help, **more)


def grouped(
    parameter: str, kind: Callable[..., object], *decorators: Decorator, apart: Sequence[str] = ()
) -> Decorator:
    """Return a decorator that hands a command one ``kind``; fields that are no :func:`option` come from ``decorators``.

    Fields ``apart`` have no option at all.
    """
    own = [f for f in fields(kind) if f.name not in apart]  # type: ignore[arg-type]
    named = [(f.metadata, (*f.metadata["names"], f.name)) for f in own if f.metadata]
    made = [m["by"](*(names if m["names"] else [f"--{names[0].replace('_', '-')}"]), **m["more"]) for m, names in named]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_group(**given: Any) -> int:
            return command(**{parameter: kind(**{f.name: given.pop(f.name) for f in own})}, **given)

        return together(*made, *decorators)(with_group)

    return decorate


def names(text: str | None, option: str) -> list[str] | None:
    """Split ``A,B,...`` at the commas outside brackets and backquotes; the empty text is the empty list."""
    if text is None:
        return None
    if not text.strip():
        return []
    items = [_unquoted(item) for item in _at_commas(text)]
    if "" in items:
        raise UsageError(f"{option} '{text}': a name is missing between two commas. Write {option} A,B,C.")
    if twice := sorted({item for item in items if items.count(item) > 1}):
        raise UsageError(f"{option} '{text}': {', '.join(twice)} stands there more than once. Name each once.")
    return items


def _at_commas(text: str) -> list[str]:
    """Split at the commas outside parentheses, brackets and backquotes."""
    items, start, depth, quoted = [], 0, 0, False
    for position, char in enumerate(text):
        quoted ^= char == "`"
        if not quoted:
            depth = max(0, depth + (char in "([") - (char in ")]"))
        if char == "," and not quoted and depth == 0:
            items.append(text[start:position].strip())
            start = position + 1
    return [*items, text[start:].strip()]


def named(text: str) -> tuple[str, str]:
    """Return the name, without backquotes, and what stands behind the last "="; an empty name without one."""
    name, equals, value = text.rpartition("=")
    return (_unquoted(name.strip()), value.strip()) if equals else ("", "")


def _unquoted(name: str) -> str:
    return name[1:-1] if len(name) > 1 and name[0] == name[-1] == "`" else name


def assignments(texts: Sequence[str], option: str = "--set") -> dict[str, float]:
    """Return ``NAME=VALUE`` texts as values by name; ``true`` and ``false`` are values of Boolean parameters."""
    values: dict[str, float] = {}
    for text in texts:
        name, given = named(text)
        if not name:
            raise UsageError(f"{option} '{text}' is not of the form NAME=VALUE. Write for example {option} phi=1.5.")
        if name in values:
            raise UsageError(f"{option} sets '{name}' twice. Keep the one that you mean.")
        values[name] = number(given, f"{option} '{text}'")
    return values


def number(text: str, where: str) -> float:
    """Return the finite number that a text says; true and false are 1 and 0."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"{where}: '{text}' is no number. Write for example 1.5 or -2e-3, or true or false.") from None
    if not math.isfinite(value):
        raise UsageError(f"{where}: the value must be finite.")
    return value


def floats(text: str | None, separator: str, refusal: str, count: int | None = None) -> tuple[float, ...]:
    """Return the numbers of a text, so many, none without a text; ``refusal`` is said of any other one."""
    try:
        values = [] if text is None else [float(item) for item in text.split(separator)]
    except ValueError:
        raise UsageError(refusal) from None
    if values and count not in (None, len(values)):
        raise UsageError(refusal)
    return tuple(values)


def finite(value: float | None, option: str) -> float | None:
    """Return ``value``, which must not be NaN or infinite."""
    if value is not None and not math.isfinite(value):
        raise UsageError(f"{option} {value}: the value must be finite.")
    return value


def checked_outputs(paths: Sequence[Path]) -> list[Path]:
    """Return ``paths`` after making sure that every one can be written."""
    for path in paths:
        check_output(path)
    require_apart(paths)
    return list(paths)


OUTPUTS = names_option("--outputs", "A choice and an order; der(x) and any continuous variable may be one.")
TIME = number_option("--time", metavar="T", help="The point's time in seconds.")
