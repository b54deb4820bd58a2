"""Writes ``docs/reference/options.md``: the options of functions and commands, as ``fmilin.options`` describes them.

Usage: ``python docs/options.py``. A test compares the page with what is written here.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fmilin.options import (
    DESCRIBED,
    WITHOUT_MEANING,
    WITHOUT_MEANING_IN_COMMANDS,
    Exclusion,
    Linearization,
    OptionDescription,
    SourceOptions,
    Stepping,
    describe,
)

__all__ = ["page", "write"]

PAGE = Path(__file__).parent / "reference" / "options.md"

INTRODUCTION = """# Options

Signatures, checks, `--help` and this page are made of the descriptions in `fmilin.options` (`python docs/options.py`).

Every function that linearizes takes the options of `fl.Linearization`, as keywords or as one object:

```python
import fmilin as fl
from fmilin.systems import cartesian_pendulum

model = cartesian_pendulum()
options = fl.Linearization(independent=["x", "vx"], outputs=["der(vx)"])
lin = fl.linearize(model, linearization=options)
family = fl.sweep(model, {"x": [0.0, 0.2, 0.4]}, linearization=options, parameters=["L"])
family.derivatives["L"].A   # at all points, shape (3, 2, 2)
```

An option that is given twice or has no meaning in the function is an error.
"""

DESCRIBED_HERE = (Linearization, Stepping, SourceOptions)
"""Options of many functions. Those of one function or command are described with it."""
LISTS = """The lists give keyword, option of the command line, default (none, false or empty if not stated) and meaning.
"""
ELSEWHERE = """## Options of single functions and commands

Keywords and options of the command line. [Python](api.md) and [commands](commands.md) describe them.

"""


def page() -> str:
    """Return the text of the page."""
    sections = [INTRODUCTION, _functions(), LISTS]
    for dataclass_type in DESCRIBED_HERE:
        first_line = (dataclass_type.__doc__ or "").partition("\n")[0]
        sections.append(
            f"## {dataclass_type.__name__}\n\n{_in_markdown(first_line)}\n\n{_list(describe(dataclass_type))}"
        )
    rows = [_pairs(kind.__name__, describe(kind)) for kind in DESCRIBED if kind not in DESCRIBED_HERE]
    return "\n".join([*sections, ELSEWHERE + "\n".join(rows) + "\n"])


def _pairs(name: str, descriptions: tuple[OptionDescription, ...]) -> str:
    """Return the keywords of one dataclass with their options, as one line."""
    pairs = (
        f"`{description.keyword}` " + (f"`{description.option}`" if description.option else "(Python)")
        for description in descriptions
    )
    return f"- {name}: {', '.join(pairs)}"


def _functions() -> str:
    """Return the lists of the options that functions and commands do not take, each with the reason."""
    commands = {f"fmilin {command}": reasons for command, reasons in WITHOUT_MEANING_IN_COMMANDS.items()}
    rows: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    complete = []
    for function, reasons in {**WITHOUT_MEANING, **commands}.items():
        rejected: dict[str, list[str]] = {}
        for keyword, reason in reasons.items():
            rejected.setdefault(reason, []).append(keyword)
        for reason, keywords in rejected.items():
            rows.setdefault((reason, tuple(keywords)), []).append(function)
        if not rejected:
            complete.append(function)
    lines = [
        "## Functions and their options",
        "",
        f"{_in_code(complete)} takes all options. The others take all but these, with the reason:",
        "",
    ]
    order = [*WITHOUT_MEANING, *commands]
    all_options = {description.keyword for description in describe(Linearization)}
    above: list[str] = []
    for (reason, rejected_keywords), functions in sorted(rows.items(), key=lambda row: order.index(row[1][0])):
        rejected_options = "any option" if set(rejected_keywords) == all_options else _in_code(rejected_keywords)
        if functions != above:
            lines.append(f"- {_in_code(functions)}:")
        lines.append(f"  - {rejected_options}: {reason}")
        above = functions
    return "\n".join(lines) + "\n"


def _in_code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _list(descriptions: tuple[OptionDescription, ...]) -> str:
    """Return the list of the options of one dataclass."""
    lines = []
    for description in descriptions:
        facts = [_on_command_line(description), _default(description)]
        in_parentheses = ", ".join(fact for fact in facts if fact)
        keyword = f"`{description.keyword}`" + (f" ({in_parentheses})" if in_parentheses else "")
        lines.append(f"- {keyword}: {_in_markdown(description.help)}{_exclusions(description)}")
    return "\n".join(lines) + "\n"


def _default(description: OptionDescription) -> str:
    """Return the default where it says something: not None, false or empty."""
    if description.is_required:
        return "*needed*"
    is_empty = description.default is None or description.default is False or description.default in ((), {})
    return "" if is_empty else f"default `{_in_python(description.default)}`"


def _on_command_line(description: OptionDescription) -> str:
    if description.option is None:
        return ""
    value = "|".join(description.choices) if description.choices else description.metavar
    return f"`{description.option} {value}`" if value else f"`{description.option}`"


def _exclusions(description: OptionDescription) -> str:
    """Return the options that exclude one, as a sentence."""
    if not description.excludes:
        return ""
    names = ", ".join(_exclusion(exclusion) for exclusion in description.excludes)
    return f" Excludes {names}."


def _exclusion(exclusion: Exclusion) -> str:
    resolved = f" unless `{exclusion.resolved_by}` is given" if exclusion.resolved_by else ""
    return f"`{exclusion.keyword}`{resolved}"


def _in_python(default: object) -> str:
    return (
        f'"{default}"' if isinstance(default, str) else f"{default:g}" if isinstance(default, float) else f"{default}"
    )


def _in_markdown(text: str) -> str:
    """Return a docstring's text with names of code in backquotes."""
    for role in (":func:", ":class:"):
        text = text.replace(role, "")
    return text


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
