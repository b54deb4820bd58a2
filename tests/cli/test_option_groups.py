"""Help under headings: everyday options first, at most fourteen below each, the documentation in the same order."""

from __future__ import annotations

import click
import pytest

from fmilin.cli.command import EVERY_DAY, HEADINGS, group_options
from fmilin.cli.derive import OPTIONS, DerivedOption
from fmilin.cli.main import COMMANDS, program
from fmilin.options import DESCRIBED, describe

CONTEXT = click.Context(program)
OF_CLICK = {"--help", "--deadline"}  # the options without a dataclass


def command(name: str) -> click.Command:
    found = program.get_command(CONTEXT, name)
    assert found is not None
    return found


def list_options(name: str) -> list[click.Option]:
    return [p for p in command(name).get_params(CONTEXT) if isinstance(p, click.Option)]


def groups(name: str) -> dict[str, list[click.Parameter]]:
    return group_options(name, list_options(name))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_stands_below_one_heading_of_at_most_fourteen(name: str) -> None:
    shown = groups(name)
    assert max(map(len, shown.values())) <= 14, {title: len(options) for title, options in shown.items()}
    options = [p for p in command(name).params if isinstance(p, click.Option)]
    assert sorted(o.opts[0] for members in shown.values() for o in members if "--help" not in o.opts) == sorted(
        o.opts[0] for o in options
    )


@pytest.mark.parametrize(
    ("name", "first"),
    [("linearize", ["-o", "--json"]), ("trim", ["--fix", "--free"]), ("sweep", ["--vary"]), ("convert", ["-o"])],
)
def test_what_a_person_types_every_day_comes_first(name: str, first: list[str]) -> None:
    assert [option.opts[0] for option in groups(name)[OPTIONS]][: len(first)] == first


@pytest.mark.parametrize("name", ["linearize", "trim", "simulate"])
def test_the_help_has_the_headings_and_the_documentation_their_order(name: str) -> None:
    text = command(name).get_help(click.Context(command(name), info_name=name))
    shown = groups(name)
    places = [text.index(f"\n{title}:\n") for title in shown]
    assert places == sorted(places)
    order = [option for members in shown.values() for option in members if "--help" not in option.opts]
    assert [p for p in command(name).params if isinstance(p, click.Option)] == order


def test_the_table_names_options_that_exist() -> None:
    every = {name for c in COMMANDS for p in command(c).get_params(CONTEXT) for name in p.opts}
    named = {name for names in EVERY_DAY.values() for name in names.split()}
    assert named <= every


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_derived_from_a_dataclass_and_has_its_heading(name: str) -> None:
    for option in list_options(name):
        if OF_CLICK & set(option.opts):
            continue
        assert isinstance(option, DerivedOption), option.opts
        assert option.group in HEADINGS, option.opts


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_stands_twice_in_a_command(name: str) -> None:
    names = [text for option in list_options(name) for text in option.opts]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("name", COMMANDS)
def test_options_that_python_has_say_the_same_on_the_command_line(name: str) -> None:
    """The help, the heading and the former names of an option of `fmilin.options` are those of its description."""
    descriptions = [d for described in DESCRIBED for d in describe(described)]
    compared = 0
    for option in list_options(name):
        if not isinstance(option, DerivedOption) or option.is_of_commands_only:
            continue
        same = [d for d in descriptions if d.keyword == option.keyword and d.option == option.flag]
        texts = {d.help for d in same}
        help_ = (option.help or "").removeprefix("Repeatable: ").lower()
        assert help_ in {text.lower() for text in texts}, (option.opts, help_)
        assert option.group in {d.group for d in same}
        assert set(option.old_flags) <= {old for d in same for old in d.old_options}
        compared += 1
    assert compared or name in {"convert", "adapters", "demo", "examples", "mcp"}
