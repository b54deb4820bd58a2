"""Options are described once: the page, the help of the command line, signatures and docstrings come from one place."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

from fmilin.cli.main import program
from fmilin.options import DESCRIBED, WITHOUT_MEANING, WITHOUT_MEANING_IN_COMMANDS, OptionDescription, describe
from fmilin.options.function_options import KEYWORDS

ROOT = Path(__file__).parents[2]
DESCRIPTIONS = [(kind.__name__, description) for kind in DESCRIBED for description in describe(kind)]
LONG_ENOUGH = 30  # characters of a help text that another text has by copying only


@pytest.fixture(scope="module")
def options_page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_options", ROOT / "docs" / "options.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_script_writes(options_page: ModuleType) -> None:
    assert (ROOT / "docs" / "reference" / "options.md").read_text(encoding="utf-8") == options_page.page()


def commands(group: click.Group, context: click.Context) -> Iterator[click.Command]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, context)
        else:
            yield command


def plain(text: str) -> str:
    return " ".join(text.split()).lower()


@pytest.mark.parametrize(("kind", "description"), DESCRIPTIONS, ids=lambda v: v if isinstance(v, str) else v.keyword)
def test_the_help_of_commands_is_that_of_the_dataclass(kind: str, description: OptionDescription) -> None:
    """An option of this name has this text in all commands, or that of another dataclass with an option of its name."""
    if description.option is None:
        return
    context = click.Context(program)
    described = {plain(d.help.rstrip(".")) for _, d in DESCRIPTIONS if d.option == description.option}
    options = [p for c in commands(program, context) for p in c.params if description.option in p.opts]
    of_dataclasses = [o for o in options if any(d in plain(getattr(o, "help", "") or "") for d in described)]
    assert of_dataclasses, f"no command has {description.option} of {kind}"


def joined(source: str) -> str:
    """Return a source with the parts of its texts in one piece."""
    return re.sub(r"""["']\s*\n\s*["']""", "", source)


def sources() -> Iterator[Path]:
    for folder, pattern in (("fmilin", "*.py"), ("docs", "*.md"), ("adapters", "*.py")):
        yield from (path for path in (ROOT / folder).rglob(pattern) if ".venv" not in path.parts)


def test_no_option_is_described_in_more_than_one_place() -> None:
    texts = {path: plain(joined(path.read_text(encoding="utf-8"))) for path in sources()}
    homes = {ROOT / "docs" / "reference" / "options.md"}
    copies = [
        f"{description.keyword} of {kind}: {', '.join(str(path.relative_to(ROOT)) for path in places)}"
        for kind, description in DESCRIPTIONS
        if len(help_text := plain(description.help)) >= LONG_ENOUGH
        for places in [[path for path, text in texts.items() if help_text in text and path not in homes]]
        if len(places) != 1
    ]
    assert copies == []


def test_docstrings_of_functions_leave_the_options_to_the_dataclass() -> None:
    """In the source: what help() shows of them is made of the dataclass."""
    repeated = []
    for path in (ROOT / "fmilin").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and "takes_linearization" in {
                getattr(d, "id", "") for d in node.decorator_list
            }:
                own = {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
                for line in (ast.get_docstring(node) or "").splitlines():
                    heads, colon, _ = line.partition(" : ")
                    named = {name.strip() for name in (heads if colon else line).split(",")}
                    repeated += [f"{node.name}: {name}" for name in sorted(named & set(KEYWORDS) - own)]
    assert repeated == []


def test_every_function_and_command_of_the_table_is_on_the_page(options_page: ModuleType) -> None:
    text = options_page.page()
    commands = {f"fmilin {command}": rejected for command, rejected in WITHOUT_MEANING_IN_COMMANDS.items()}
    for function, rejected in {**WITHOUT_MEANING, **commands}.items():
        assert f"`{function}`" in text
        for reason in rejected.values():
            assert reason in text
