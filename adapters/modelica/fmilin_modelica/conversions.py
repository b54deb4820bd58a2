"""Texts for an older version of a library, with the names that a newer one gives the same things.

A library that renames classes brings a script for that: ``conversion(from(version = "3.2.3", script = ...))`` in its
annotation names it. Of the commands in it ``convertClass`` and ``convertElement`` are applied, before the front end
reads a text that ``uses`` one of these versions, and before it reads files of a library that does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fmilin_modelica.class_reader import Name, read_classes
from fmilin_modelica.libraries import Library, library_name, versions_used
from fmilin_modelica.rewriting import edit_text, mask_comments_and_strings
from fmilin_modelica.tokens import Token, find_closing, read_tokens, split_list

__all__ = ["Converter", "find_conversions"]

SHOWN = 4  # renamed classes in a note
_FROM = re.compile(r'\bfrom\s*\(\s*version\s*=\s*(\{[^}]*\}|"[^"]*")[^)]*?\bscript\s*=\s*"modelica://([^"]+)"')
_PART = r"(?:[A-Za-z_]\w*|'[^'\n]+')"
_DOTTED = re.compile(rf"(?<![\w.'])\.?{_PART}(?:\s*\.\s*{_PART})+")
_IMPORT = re.compile(rf"\bimport\s+(?:({_PART})\s*=\s*)?({_PART}(?:\s*\.\s*{_PART})*)\s*(\.\s*[*{{])?")
_STANDARD_CLASSES = {  # of the script from 3.2.3 to 4.0.0 of the Standard Library, for copies of it without scripts
    "Modelica.SIunits": "Modelica.Units.SI",
    "Modelica.SIunits.Icons": "Modelica.Units.Icons",
    "Modelica.SIunits.Conversions": "Modelica.Units.Conversions",
    "Modelica.SIunits.Conversions.NonSIunits": "Modelica.Units.NonSI",
    "Modelica.SIunits.Temp_C": "Modelica.Units.NonSI.Temperature_degC",
    "Modelica.SIunits.Temp_K": "Modelica.Units.SI.Temperature",
    "Modelica.Blocks.Interfaces.BlockIcon": "Modelica.Blocks.Icons.Block",
    "Modelica.Blocks.Sources.Clock": "Modelica.Blocks.Sources.ContinuousClock",
    "Modelica.Blocks.Tables.CombiTable1D": "Modelica.Blocks.Tables.CombiTable1Dv",
    "Modelica.Blocks.Tables.CombiTable2D": "Modelica.Blocks.Tables.CombiTable2Ds",
    "Modelica.Blocks.Types.InitPID": "Modelica.Blocks.Types.Init",
    "Modelica.Electrical.Analog.Basic.EMF": "Modelica.Electrical.Analog.Basic.RotationalEMF",
    "Modelica.Electrical.Analog.Basic.HeatingResistor": "Modelica.Electrical.Analog.Basic.Resistor",
    "Modelica.Electrical.Analog.Semiconductors.HeatingDiode": "Modelica.Electrical.Analog.Semiconductors.Diode",
    "Modelica.Electrical.MultiPhase": "Modelica.Electrical.Polyphase",
    "Modelica.Electrical.QuasiStationary": "Modelica.Electrical.QuasiStatic",
    "Modelica.Icons.Library": "Modelica.Icons.Package",
    "Modelica.Icons.RotationalSensor": "Modelica.Icons.RoundSensor",
    "Modelica.Icons.TranslationalSensor": "Modelica.Icons.RectangularSensor",
}
_STANDARD_ELEMENTS = {
    **{
        f"Modelica.{name}": {"freqHz": "f"}
        for package, signals in (
            ("Blocks.Sources.", ("Sine", "Cosine", "ExpSine")),
            ("Electrical.Analog.Sources.", ("SineVoltage", "CosineVoltage", "SineCurrent", "CosineCurrent")),
        )
        for name in (package + signal for signal in signals)
    },
    **{
        f"Modelica.Mechanics.{name}": {"mue_pos": "mu_pos"}
        for name in (
            "Rotational.Components.Brake",
            "Rotational.Components.Clutch",
            "Rotational.Components.OneWayClutch",
            "Translational.Components.Brake",
        )
    },
    "Modelica.Mechanics.MultiBody.World": {"mue": "mu"},
}


@dataclass(frozen=True)
class Conversion:
    """The names of an older version of a library, and those of the version that is used.

    Attributes
    ----------
    library : str
        Its name.
    old, new : str
        The two versions, "3.2.3".
    classes : mapping of tuple of str to tuple of str
        New full names of classes.
    elements : mapping of tuple of str to mapping of str to str
        New names of components, by the old full name of their class.
    """

    library: str
    old: str
    new: str
    classes: Mapping[Name, Name]
    elements: Mapping[Name, Mapping[str, str]]

    def find_rule(self, name: Name) -> Name:
        """Return the longest old name with which the name of a class begins; () without any."""
        return next((name[:k] for k in range(len(name), 0, -1) if name[:k] in self.classes), ())

    def rename(self, name: Name) -> Name:
        """Return the new name of a class, or of something inside of one."""
        rule = self.find_rule(name)
        return (*self.classes[rule], *name[len(rule) :]) if rule else name


@dataclass
class Converter:
    """Converts texts and files for other versions of libraries than those that are there.

    Attributes
    ----------
    of_text : tuple of Conversion
        For the text with the model.
    of_roots : mapping of Path to tuple of Conversion
        For the files of libraries.
    renamed : dict
        The names that were changed, by library and its old and new version.
    """

    of_text: tuple[Conversion, ...] = ()
    of_roots: Mapping[Path, tuple[Conversion, ...]] = field(default_factory=dict)
    renamed: dict[tuple[str, str, str], dict[str, str]] = field(default_factory=dict)

    def convert_text(self, text: str) -> str:
        """Return the text with the model in the names of the libraries that are there."""
        for conversion in self.of_text:
            text = self._convert(text, conversion, ())
        return text

    def read_file(self, path: Path) -> str:
        """Return the converted text of a file of a library."""
        text = path.read_text(encoding="utf-8-sig", errors="replace")
        for root, conversions in self.of_roots.items():
            if path == root or root in path.parents:
                packages = [folder / "package.mo" for folder in path.parents if root in (folder, *folder.parents)]
                outer = tuple(package for package in packages if package != path and package.is_file())
                for conversion in conversions:
                    text = self._convert(text, conversion, outer)
        return text

    def describe(self) -> list[str]:
        """Return a sentence on each library of which names were changed."""
        notes = []
        for (library, old, new), names in self.renamed.items():
            shown = ", ".join(f"{name} is {names[name]}" for name in list(names)[:SHOWN])
            more = f", and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            notes.append(f"Written for {library} {old}, read with {library} {new}: {shown}{more}.")
        return notes

    def _convert(self, text: str, conversion: Conversion, outer: tuple[Path, ...]) -> str:
        if f"{conversion.library}." not in text and not outer:
            return text
        aliases: dict[str, Name] = {}
        for package in reversed(outer):
            aliases |= _list_aliases(package.read_text(encoding="utf-8-sig", errors="replace"))
        code = mask_comments_and_strings(text)
        aliases |= _list_aliases(code)
        edits = [*_rename_classes(code, conversion, aliases), *_rename_elements(text, conversion, aliases)]
        if edits:
            key = (conversion.library, conversion.old, conversion.new)
            self.renamed.setdefault(key, {}).update(edit.rule for edit in edits)
        return edit_text(text, [(edit.begin, edit.end, edit.words) for edit in edits])


class _Edit(NamedTuple):
    """New words for a part of a text, and the rule behind them: an old name and the new one."""

    begin: int
    end: int
    words: str
    rule: tuple[str, str]


def _list_aliases(code: str) -> dict[str, Name]:
    """Return the full names behind the names that the imports of a text declare."""
    found = {}
    for alias, name, rest in _IMPORT.findall(code):
        parts = _split(name)
        if not rest:
            found[alias or parts[-1]] = parts
    return found


def _split(name: str) -> Name:
    return tuple(part.strip() for part in name.strip().lstrip(".").split("."))


def _rename_classes(code: str, conversion: Conversion, aliases: Mapping[str, Name]) -> Iterator[_Edit]:
    """Yield the edits of names of classes, in imports with the name that they declare."""
    imported: set[int] = set()
    for found in _IMPORT.finditer(code):
        imported.add(found.start(2))
        name = _split(found[2])
        new = conversion.rename(name)
        if new != name:
            keeps_name = found[1] or found[3] or new[-1] == name[-1]
            words = ("" if keeps_name else f"{name[-1]} = ") + ".".join(new) + _lines(found[2])
            yield _Edit(*found.span(2), words, _describe_rule(conversion, name))
    for found in _DOTTED.finditer(code):
        if found.start() in imported:
            continue
        name = _split(found[0])
        alias = aliases.get(name[0]) if name[0] != conversion.library else None
        full = name if alias is None else (*alias, *name[1:])
        new = conversion.rename(full)
        if alias is not None and new == (*conversion.rename(alias), *name[1:]):
            continue  # the import is changed
        if new != full:
            yield _Edit(*found.span(), ".".join(new) + _lines(found[0]), _describe_rule(conversion, full))


def _describe_rule(conversion: Conversion, name: Name) -> tuple[str, str]:
    rule = conversion.find_rule(name)
    return ".".join(rule), ".".join(conversion.classes[rule])


def _lines(words: str) -> str:
    return "\n" * words.count("\n")


def _rename_elements(text: str, conversion: Conversion, aliases: Mapping[str, Name]) -> list[_Edit]:
    """Return the edits of modifications, ``Sine s(freqHz = 50)``, and of references, ``s.freqHz``."""
    tokens, classes = read_classes(text) if conversion.elements else ([], [])
    edits: dict[int, _Edit] = {}

    def find_owner(name: Name) -> Name:
        alias = aliases.get(name[0])
        return name if alias is None or name[0] == conversion.library else (*alias, *name[1:])

    def rename(token: Token, owner: Name) -> None:
        new = conversion.elements.get(owner, {}).get(token.text)
        if new is not None:
            rule = (f"{'.'.join(owner)}.{token.text}", new)
            edits[token.begin] = _Edit(token.begin, token.end, new, rule)

    owners: dict[str, Name] = {}
    for found in (inner for top in classes for inner in top.list_all()):
        for component in found.components.values():
            owners[component.name] = find_owner(component.type_name)
            for token in _list_modified(tokens, component.modification):
                rename(token, owners[component.name])
        for base, span in found.extends:
            for token in _list_modified(tokens, span):
                rename(token, find_owner(base))
    for place in range(2, len(tokens)):
        name, dot, element = tokens[place - 2 : place + 1]
        if dot.text == "." and name.text in owners and (place < 3 or tokens[place - 3].text != "."):
            rename(element, owners[name.text])
    return list(edits.values())


def _list_modified(tokens: list[Token], span: tuple[int, int] | None) -> Iterator[Token]:
    """Yield the names of the elements in ``(a = 1, each b(c = 2))``."""
    if span is None:
        return
    for argument in split_list(tokens[span[0] + 1 : span[1]]):
        names = [token for token in argument if token.text not in {"each", "final"}]
        if names and names[0].kind == "name":
            yield names[0]


# ---------------------------------------------------------------------- scripts of libraries


def find_conversions(roots: Sequence[str], text: str) -> Converter:
    """Return the converter for a text and the libraries that it may use.

    A library or text is converted where its annotation ``uses`` an older version than the one that is there, and that
    one has a script for it. A text without the annotation is converted where it names classes that are not there.
    """
    libraries = {library_name(Path(root)): Path(root) for root in roots}
    of_text = tuple(_conversions(libraries, _list_old_uses(libraries, text)))
    of_roots = {}
    for name, root in libraries.items():
        written = _read(root / "package.mo" if root.is_dir() else root)
        found = tuple(_conversions(libraries, versions_used(written), but=name))
        if found:
            of_roots[root] = found
    return Converter(of_text, of_roots)


def _list_old_uses(libraries: Mapping[str, Path], text: str) -> dict[str, str]:
    """Return the versions that a text uses; the first one with a script where it names none and classes are missing."""
    versions = versions_used(text)
    code = mask_comments_and_strings(text)
    for name, root in libraries.items():
        if name not in versions and f"{name}." in code:
            names = [_split(found[0]) for found in _DOTTED.finditer(code)]
            names = [full for full in names if full[0] == name]
            for old in _list_versions(root):
                conversion = _read_conversion(root, old)
                if any(conversion.rename(full) != full and not _may_exist(root, full) for full in names):
                    versions[name] = old
                break
    return versions


def _may_exist(root: Path, name: Name) -> bool:
    """Return False where a library has neither a file nor a word in the file around it for a name."""
    path = root
    for part in name[1:]:
        file = path / "package.mo" if path.is_dir() else path
        if path.is_dir() and (path / part / "package.mo").is_file():
            path = path / part
        elif path.is_dir() and (path / f"{part}.mo").is_file():
            path = path / f"{part}.mo"
        else:
            return re.search(rf"(?<!\w){re.escape(part)}\b", mask_comments_and_strings(_read(file))) is not None
    return True


def _conversions(libraries: Mapping[str, Path], versions: Mapping[str, str], but: str = "") -> Iterator[Conversion]:
    for name, version in versions.items():
        root = libraries.get(name)
        if root is not None and name != but and version in _list_versions(root):
            yield _read_conversion(root, version)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""


@cache
def _list_scripts(root: Path) -> list[tuple[list[str], Path]]:
    """Return the scripts of a library, with the versions from which they lead."""
    written = _read(root / "package.mo" if root.is_dir() else root)
    scripts = []
    for versions, address in _FROM.findall(written):
        _, _, place = address.partition("/")
        scripts.append((re.findall(r'"([^"]+)"', versions), root / place))
    return scripts


def _list_versions(root: Path) -> list[str]:
    """Return the versions from which scripts of a library lead, the newest first."""
    return [version for versions, _ in reversed(_list_scripts(root)) for version in reversed(versions)]


@cache
def _read_conversion(root: Path, version: str) -> Conversion:
    """Return what the script of a library says about a version."""
    name = library_name(root)
    classes: dict[Name, Name] = {}
    elements: dict[Name, dict[str, str]] = {}
    for versions, script in _list_scripts(root):
        if version not in versions:
            continue
        written = _read(script)
        if not written and name == "Modelica" and version.startswith("3."):
            classes |= {_split(old): _split(new) for old, new in _STANDARD_CLASSES.items()}
            elements |= {_split(owner): dict(names) for owner, names in _STANDARD_ELEMENTS.items()}
        for command, arguments in _list_commands(read_tokens(written)):
            if command == "convertClass" and len(arguments) == 2:
                pairs = zip(arguments[0], arguments[1] * len(arguments[0]), strict=False)
                classes |= {_split(old): _split(new) for old, new in pairs}
            elif command == "convertElement" and len(arguments) == 3:
                for owner in arguments[0]:
                    pairs = zip(arguments[1], arguments[2], strict=False)
                    elements.setdefault(_split(owner), {}).update(pairs)
    new = ".".join(map(str, Library(name, root).version))
    return Conversion(name, version, new, classes, elements)


def _list_commands(tokens: list[Token]) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the commands of a script with the strings in each of their arguments."""
    for place, token in enumerate(tokens[:-1]):
        if token.text.startswith("convert") and tokens[place + 1].text == "(":
            arguments = split_list(tokens[place + 2 : find_closing(tokens, place + 1)])
            yield token.text, [_list_strings(argument) for argument in arguments]


def _list_strings(tokens: list[Token]) -> list[str]:
    return [token.text[1:-1] for token in tokens if token.kind == "string"]
