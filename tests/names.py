"""Counts names of the package that break the style: ``python -m tests.names [FOLDER]`` lists them with their places."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeGuard

PACKAGE = Path(__file__).parents[1] / "fmilin"

WORDS = {
    key: frozenset(words)
    for key, words in tomllib.loads((Path(__file__).with_name("words_of_names.toml")).read_text("utf-8")).items()
}


@dataclass(frozen=True)
class Name:
    """A name and the place that defines it."""

    name: str
    place: str

    def __str__(self) -> str:
        return f"{self.place}: {self.name}"


@dataclass
class Names:
    """The names that a folder defines, by what they name."""

    functions: list[Name] = field(default_factory=list)
    properties: list[Name] = field(default_factory=list)
    classes: list[Name] = field(default_factory=list)
    modules: list[Name] = field(default_factory=list)
    variables: list[Name] = field(default_factory=list)
    numeric_constants: list[Name] = field(default_factory=list)
    constants: list[Name] = field(default_factory=list)

    @property
    def participles(self) -> list[Name]:
        """Functions and methods that begin with a participle."""
        return [name for name in self.functions if is_participle(split_words(name.name)[0])]

    @property
    def verbs(self) -> list[Name]:
        """Functions and methods that begin with a verb."""
        return [name for name in self.functions if split_words(name.name)[0] in WORDS["verbs"]]

    @property
    def trailing_prepositions(self) -> list[Name]:
        """Functions and methods that end in a preposition."""
        return [name for name in self.functions if ends_in_preposition(name.name)]

    @property
    def pronouns(self) -> list[Name]:
        """Variables, parameters and attributes called by a pronoun or by what happened to them."""
        return [name for name in self.variables if name.name.strip("_").lower() in WORDS["pronouns"]]

    @property
    def repeated_classes(self) -> list[str]:
        """Class names that two modules define; a leading underscore does not make another name."""
        return list_repeated((name.name.strip("_"), name.place.partition(":")[0]) for name in self.classes)

    @property
    def repeated_modules(self) -> list[str]:
        """Names of more than one module."""
        return list_repeated((name.name, name.place) for name in self.modules)

    @property
    def constants_without_quantity(self) -> list[Name]:
        """Numeric constants without a word for the quantity."""
        return [
            name for name in self.numeric_constants if not WORDS["quantities"] & set(split_words(name.name.lower()))
        ]


def split_words(name: str) -> list[str]:
    return name.strip("_").split("_")


def is_participle(word: str) -> bool:
    """Return whether a word is a past or present participle: solved, held, growing."""
    if word in WORDS["not_participles"] or word in WORDS["verbs"]:
        return False
    return (
        word in WORDS["irregular_participles"]
        or word.endswith("ed")
        or (word.endswith("ing") and len(word) > len("king"))
    )


def ends_in_preposition(name: str) -> bool:
    words = split_words(name)
    return (
        len(words) > 1
        and words[-1] in WORDS["prepositions"]
        and "_".join(words[-2:]) not in WORDS["verbs_with_particle"]
    )


def list_repeated(names_and_places: Iterable[tuple[str, str]]) -> list[str]:
    places = defaultdict(set)
    for name, place in names_and_places:
        places[name].add(place)
    return sorted(name for name, where in places.items() if len(where) > 1)


def collect_names(folder: Path = PACKAGE) -> Names:
    """Return the names that the Python files of a folder define."""
    names = Names()
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(folder).as_posix()
        if path.stem not in {"__init__", "__main__"}:
            names.modules.append(Name(path.stem, place))
        add_names(names, ast.parse(path.read_text(encoding="utf-8")), place)
    return names


def add_names(names: Names, tree: ast.Module, place: str) -> None:
    """Add the names that a module defines."""
    aliases = {id(target) for node in ast.walk(tree) if is_alias(node) for target in node.targets}
    for node in ast.walk(tree):
        if id(node) in aliases:
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not node.name.startswith("__"):
                group = names.properties if is_property(node) else names.functions
                group.append(Name(node.name, f"{place}:{node.lineno}"))
        elif isinstance(node, ast.ClassDef):
            names.classes.append(Name(node.name, f"{place}:{node.lineno}"))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.variables.append(Name(node.id, f"{place}:{node.lineno}"))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.variables.append(Name(node.attr, f"{place}:{node.lineno}"))
        elif isinstance(node, ast.arg):
            names.variables.append(Name(node.arg, f"{place}:{node.lineno}"))
    for name, value, line in list_constants(tree):
        names.constants.append(Name(name, f"{place}:{line}"))
        if is_numeric(value):
            names.numeric_constants.append(Name(name, f"{place}:{line}"))


def is_alias(node: ast.AST) -> TypeGuard[ast.Assign]:
    """Return whether a statement keeps the old name of an attribute, ``seen = DeprecatedAlias("apparent")``."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) == "DeprecatedAlias"
    )


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    return bool(decorators & {"property", "cached_property", "setter"})


def list_constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None, int]]:
    """Yield name, value and line of the constants of a module."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        for target in targets:
            stored = [child for child in ast.walk(target) if isinstance(child, ast.Name)]
            values = (
                node.value.elts if isinstance(node.value, ast.Tuple) and len(stored) > 1 else [node.value] * len(stored)
            )
            for child, value in zip(stored, values, strict=True):
                if child.id.isupper() and len(child.id) > 1:
                    yield child.id, value, node.lineno


def is_numeric(value: ast.expr | None) -> bool:
    """Return whether an expression is a number or a tuple of numbers."""
    if isinstance(value, ast.Tuple):
        return bool(value.elts) and all(is_numeric(element) for element in value.elts)
    if isinstance(value, ast.UnaryOp):
        return is_numeric(value.operand)
    if isinstance(value, ast.BinOp):
        return is_numeric(value.left) or is_numeric(value.right)
    return (
        isinstance(value, ast.Constant)
        and isinstance(value.value, int | float | complex)
        and not isinstance(value.value, bool)
    )


def format_share(part: list[Name], whole: list[Name]) -> str:
    return f"{len(part)} of {len(whole)} ({100 * len(part) / max(len(whole), 1):.1f} %)"


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE
    names = collect_names(folder)
    lines: list[str] = []
    for title, offenders in [
        ("functions that begin with a participle", names.participles),
        ("functions that end in a preposition", names.trailing_prepositions),
        ("variables called by a pronoun", names.pronouns),
        ("numeric constants without a quantity", names.constants_without_quantity),
    ]:
        lines += [f"\n{title}:", *(f"  {name}" for name in offenders)]
    lines += [
        "",
        f"functions that begin with a participle: {format_share(names.participles, names.functions)}",
        f"functions that begin with a verb: {format_share(names.verbs, names.functions)}",
        f"functions that end in a preposition: {format_share(names.trailing_prepositions, names.functions)}",
        f"variables called by a pronoun: {len(names.pronouns)}",
        f"numeric constants without a quantity: "
        f"{format_share(names.constants_without_quantity, names.numeric_constants)}",
        f"class names in two modules: {len(names.repeated_classes)}: {', '.join(names.repeated_classes)}",
        f"module names that occur twice: {len(names.repeated_modules)}: {', '.join(names.repeated_modules)}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
