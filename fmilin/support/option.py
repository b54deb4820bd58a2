"""Options described once: each is a field of a frozen dataclass, with its help, group and command-line option.

The command line, the documentation, the checks of values and the text of messages are derived from these fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields
from functools import cache
from inspect import cleandoc
from typing import Any, Literal, TypeVar, cast

from fmilin.errors import UsageError
from fmilin.support.dataclass import dataclass

T = TypeVar("T")

Kind = Literal[
    "switch",  # --stable
    "names",  # --free A,B,...
    "number",  # --time 1.5, finite
    "integer",  # --jobs 4
    "text",  # --minimize "x^2"
    "choice",  # --coordinates tangent
    "texts",  # repeatable: --constraint "x + y"
    "assignments",  # repeatable: --set NAME=VALUE
    "assignment lists",  # repeatable: --fix A=1,B=2
    "path",  # --point FILE
    "paths",  # repeatable: --allow-read PATH
    "numbers",  # --penalty ALPHA,XI,OMEGA
    "special",  # text that the command line parses by a function of its own, as --vary speed=0:10:11
    "nested",  # a dataclass with options of its own, without one itself
]
"""How a value is written on the command line."""

METAVARS: Mapping[Kind, str] = {
    "names": "A,B,...",
    "number": "VALUE",
    "integer": "N",
    "text": "TEXT",
    "texts": "TEXT",
    "assignments": "NAME=VALUE",
    "assignment lists": "NAME=VALUE,...",
    "path": "FILE",
    "paths": "PATH",
    "numbers": "A,B,...",
    "special": "TEXT",
}


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Another option of the same dataclass that contradicts one."""

    keyword: str
    because: str  # a sentence
    unless: tuple[object, ...] = ()  # values of the other option that do not contradict, besides its default
    resolved_by: str = ""  # a third option that resolves the contradiction


@dataclass(frozen=True, slots=True)
class Option:
    """The description of an option, but for its keyword, type and default, which the field has."""

    help: str
    group: str
    kind: Kind
    flag: str | None = None  # on the command line; "" for one that is made of the keyword, None for no option
    old_flags: tuple[str, ...] = ()  # former names, which are still accepted
    metavar: str = ""
    choices: tuple[str, ...] = ()
    excludes: tuple[Exclusion, ...] = ()


@dataclass(frozen=True, slots=True)
class OptionDescription:
    """An option with everything that is known about it."""

    keyword: str
    option: str | None  # on the command line
    help: str
    group: str
    default: object
    kind: Kind
    metavar: str
    choices: tuple[str, ...]
    excludes: tuple[Exclusion, ...]
    type: str
    old_options: tuple[str, ...]
    is_required: bool


def option(
    *,
    default: T,
    help: str,  # noqa: A002 - the word of every command line
    group: str,
    kind: Kind,
    flag: str | None = "",
    old_flags: tuple[str, ...] = (),
    metavar: str = "",
    choices: tuple[str, ...] = (),
    excludes: tuple[Exclusion, ...] = (),
) -> T:
    """Return a dataclass field that is an option; an empty mapping as its default is made anew for each instance.

    ``flag`` is its name on the command line: made of the keyword by default, None where it has none.
    """
    described = Option(help, group, kind, flag, old_flags, metavar or METAVARS.get(kind, ""), choices, excludes)
    metadata = {"option": described}
    if isinstance(default, dict):
        return cast("T", field(default_factory=dict, metadata=metadata))
    return field(default=default, metadata=metadata)


def required(help: str, group: str, kind: Kind, metavar: str = "") -> Mapping[str, Option]:  # noqa: A002
    """Return the metadata of a dataclass field that is an option without a default.

    It goes into ``dataclasses.field``, by which type checkers see that the option must be given.
    """
    return {"option": Option(help, group, kind, "", (), metavar or METAVARS.get(kind, ""))}


def describe(dataclass_type: type) -> tuple[OptionDescription, ...]:
    """Return the descriptions of the options of a dataclass, in the order of its fields."""
    return tuple(_describe_field(f, o) for f in fields(dataclass_type) if (o := get_option(f)) is not None)


def _describe_field(f: Field[Any], o: Option) -> OptionDescription:
    default = f.default_factory() if f.default_factory is not MISSING else f.default
    is_required = default is MISSING
    return OptionDescription(
        keyword=f.name,
        option=f"--{f.name.replace('_', '-')}" if o.flag == "" else o.flag,
        help=o.help,
        group=o.group,
        default=None if is_required else default,
        kind=o.kind,
        metavar=o.metavar,
        choices=o.choices,
        excludes=o.excludes,
        type=str(f.type),
        old_options=o.old_flags,
        is_required=is_required,
    )


def get_option(dataclass_field: Field[Any]) -> Option | None:
    """Return the description of a field; None if the field is not an option."""
    return dataclass_field.metadata.get("option")


def _list_restricted_options(options: object) -> tuple[OptionDescription, ...]:
    """Return the options of a dataclass that have choices or exclude others."""
    dataclass_type: type = type(options)
    return _list_restricted(dataclass_type)


@cache
def _list_restricted(dataclass_type: type) -> tuple[OptionDescription, ...]:
    return tuple(d for d in describe(dataclass_type) if d.choices or d.excludes)


def require_choices(options: object) -> None:
    """Raise UsageError if an option of a dataclass has a value that is not one of its choices.

    Values that are not texts are objects, which an annotation allows and :mod:`fmilin.support.kinds` checks.
    """
    for description in _list_restricted_options(options):
        value = getattr(options, description.keyword)
        if description.choices and isinstance(value, str) and value not in description.choices:
            raise UsageError(
                f"{description.keyword}= must be {_either(description.choices)}, and is '{value}'. Choose one of "
                "these values."
            )


def require_compatible(options: object) -> None:
    """Raise UsageError if two options that exclude each other have values."""
    for description in _list_restricted_options(options):
        if not is_given(options, description.keyword):
            continue
        for exclusion in description.excludes:
            if not is_given(options, exclusion.keyword, exclusion.unless):
                continue
            if exclusion.resolved_by and is_given(options, exclusion.resolved_by):
                continue
            advice = f", or give {exclusion.resolved_by}=" if exclusion.resolved_by else ""
            raise UsageError(
                f"{exclusion.because} {description.keyword}= and {exclusion.keyword}= exclude each other: "
                f"leave one of them out{advice}."
            )


def is_given(options: object, keyword: str, unless: tuple[object, ...] = ()) -> bool:
    """Whether an option has another value than its default and those of ``unless``."""
    dataclass_type: type = type(options)
    value = getattr(options, keyword)
    default = _defaults(dataclass_type)[keyword]
    if value is default or value is None:
        return False
    return not any(_is_same(value, other) for other in (default, *unless))


def _is_same(value: object, other: object) -> bool:
    """Whether two values are equal and of one type; a list counts as a tuple, an array is not compared."""
    if isinstance(value, list) and isinstance(other, tuple):
        return tuple(value) == other
    return type(value) is type(other) and bool(value == other)


@cache
def _defaults(dataclass_type: type) -> Mapping[str, object]:
    return {description.keyword: description.default for description in describe(dataclass_type)}


def _either(choices: tuple[str, ...]) -> str:
    """Return choices in words."""
    quoted = [f"'{choice}'" for choice in choices]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def describe_in_docstring(dataclass_type: type[T]) -> type[T]:
    """Append the options of a dataclass to its docstring, as a section of parameters; a class decorator."""
    parameters = [f"{d.keyword} : {_type_in_words(d)}\n    {d.help}" for d in describe(dataclass_type)]
    docstring = cleandoc(dataclass_type.__doc__ or "")
    dataclass_type.__doc__ = "\n".join([f"{docstring}\n\nParameters\n----------", *parameters])
    return dataclass_type


def _type_in_words(description: OptionDescription) -> str:
    if description.choices:
        text = "{" + ", ".join(f'"{choice}"' for choice in description.choices) + "}"
        other_types = [
            part for part in description.type.split(" | ") if not part.startswith(("str", "Literal", "None"))
        ]
        return ", ".join([" or ".join([text, *other_types]), *(["optional"] if description.default is None else [])])
    return description.type
