"""Help under headings: everyday options first, at most fourteen below each, the documentation in the same order."""

from __future__ import annotations

import click
import pytest

from fmilin.cli.command import EVERY_DAY, FIRST, GROUPS, grouped
from fmilin.cli.main import COMMANDS, program

CONTEXT = click.Context(program)


def command(name: str) -> click.Command:
    found = program.get_command(CONTEXT, name)
    assert found is not None
    return found


def groups(name: str) -> dict[str, list[click.Parameter]]:
    return grouped(name, [p for p in command(name).get_params(CONTEXT) if isinstance(p, click.Option)])


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
    assert [option.opts[0] for option in groups(name)[FIRST]][: len(first)] == first


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
    named = {name for names in (*EVERY_DAY.values(), *GROUPS.values()) for name in names.split()}
    assert named <= every
