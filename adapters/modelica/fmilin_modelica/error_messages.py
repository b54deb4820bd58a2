"""The words of the front end's errors for the users of a model: what is wrong, where, and what to do next."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path

from fmilin_modelica.classes import list_models
from fmilin_modelica.libraries import library_name
from fmilin_modelica.library_places import find_place_of_model, find_place_of_names
from fmilin_modelica.sources import Source

__all__ = [
    "NO_STATE",
    "QUOTED",
    "WRAPPER",
    "describe_crash",
    "describe_error",
    "file_name",
    "find_syntax_error",
    "join_lines",
]

WRAPPER = "FmilinModel"
NO_STATE = "derivative target"  # what the front end says of der(x), where x is not a state
QUOTED = re.compile(r"[`']([A-Za-z_][\w.]*)[`']")
FRONT_END_LIMITS = (
    "unsupported",
    "unevaluable",
    "unresolved flat reference",
    "lexically nested class",
    "structured base reference",
    "must have exactly one",
    "instantiates partial model",
    "inner/outer type mismatch",
    "failed to load source root",
)
_POSITION = re.compile(r"\[([^\[\]\n]+?):(\d+):(\d+)\]")


def describe_crash(source: Source, words: str, library: Mapping[str, Path]) -> str:
    """Return the message on an end of the front end without an answer, with the place of the model."""
    place = find_place_of_model(source, library)
    if NO_STATE in words:
        return (
            f"{place}'{source.shown}' contains der(...) of a sum with a parameter, or of a variable that is not "
            "continuous: the front end (rumoca) does not differentiate those. Write der(x) for der(x - L)."
        )
    return (
        f"{place}The Modelica front end (rumoca) crashed on '{source.shown}': {join_lines(words)}. Report this crash "
        "to the front end."
    )


def describe_error(source: Source, text: str, model: str | None, words: str, library: Mapping[str, Path]) -> str:
    """Return the message on an error of the front end, with its place and, where there is one, an advice.

    ``library`` has the files of libraries that were read, by their places in a folder.
    """
    shown = source.shown
    if "Unable to infer model" in words and "Candidates:" in words:
        candidates = list_models(source.text) or words.partition("Candidates:")[2].strip(" .,").split(", ")
        names, first = ", ".join(candidates), candidates[0]
        return f"'{shown}' contains several models: {names}. Name one of them, as in '{shown}:{first}'."
    if position := _syntax_error(source, text, model):
        return position
    first, _, further = words.replace("fmilin-no-folder/", "").partition("Related failures")
    reason = join_lines(first)
    for prefix in (r"\S+ could not be compiled: ", r"\w+ failed: ", r"\S+ failed in \w+: "):
        reason = re.sub(f"^{prefix}", "", reason)
    if "because resolve/parse failed" in reason and not further:
        return f"There is no model '{source.model}' in '{source.file or 'the libraries'}'.{_libraries_hint(source)}"
    if f"model '{WRAPPER}' cannot extend package" in reason:
        return f"'{shown}' is a package, not a model. Name one of the models in it."
    place = _find_place(source, text, reason, library)
    said = _POSITION.sub("", reason).strip().rstrip(".")
    return f"{place}'{shown}' cannot be read as Modelica: {said}.{_advice(source, reason)}"


def _syntax_error(source: Source, text: str, model: str | None) -> str:
    """Return what the parser says, with its place; nothing when the text can be parsed."""
    found = find_syntax_error(text, model or WRAPPER, file_name(source))
    if found is None:
        return ""
    place, line, column, said = found
    return (
        f"{Path(place).name}:{line}: '{source.shown}' is not Modelica: {said} in line {line}, column {column}. Correct "
        "the file and try again."
    )


def find_syntax_error(text: str, model: str, name: str) -> tuple[str, str, str, str] | None:
    """Return file, line, column and words of a text's first syntax error; None where it can be parsed."""
    import rumoca

    with contextlib.suppress(Exception):
        for diagnostic in rumoca.validate_source(text, model=model, filename=name):
            position = re.search(r"\[(.+?):(\d+):(\d+)\]", diagnostic.message)
            if diagnostic.rule == "syntax-error" and position is not None:
                what = re.search(r"×\s*(.+?)\n\s*╭", diagnostic.message, re.DOTALL)
                said = "a syntax error" if what is None else join_lines(what[1].replace("│", ""))
                return position[1], position[2], position[3], said
    return None


def _find_place(source: Source, text: str, reason: str, library: Mapping[str, Path]) -> str:
    """Return "crane.mo:4: ": where the front end says, else the first line with the name it speaks of."""
    if position := _POSITION.search(reason):
        return f"{Path(position[1]).name}:{position[2]}: "
    names = QUOTED.findall(reason)
    if source.file is not None:
        for name in names:
            for k, line in enumerate(text.splitlines(), 1):
                if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", line):
                    return f"{source.file.name}:{k}: "
    return find_place_of_names(source, names, library)


def _advice(source: Source, reason: str) -> str:
    if "unbalanced" in reason and source.file is None:
        return " A library's model is balanced as a rule: this is a limit of the front end, which counts differently."
    if "unbalanced" in reason:
        return (
            " Every unknown needs one equation: add the missing ones, or remove the surplus. Where other Modelica "
            "tools accept the model, this is a limit of the front end."
        )
    if any(words in reason for words in ("unresolved type reference", "not found", "unresolved extends")):
        return _libraries_hint(source)
    if missing := _find_missing_library(source):
        return f" The text uses '{missing}', which is not available.{_libraries_hint(source)}"
    if any(words in reason.lower() for words in FRONT_END_LIMITS):
        return " This is a limit of the front end."
    if source.file is None:
        return " This is a limit of the front end, where other Modelica tools accept the library."
    return ""


def _find_missing_library(source: Source) -> str:
    """Return the first name of the Standard Library's kind, ``Modelica`` or ``Modelica...``, that no library has."""
    available = {library_name(Path(root)) for root in source.roots}
    names = re.findall(r"(?<![\w.])(Modelica\w*)\.\w", source.text)
    return next((name for name in names if name not in available), "")


def _libraries_hint(source: Source) -> str:
    libraries = ", ".join(library_name(Path(root)) for root in source.roots)
    return (
        f" Available libraries: {libraries}." if libraries else
        " No library is available. Name the folder that contains Modelica/: options={'library': ['FOLDER']}, or the "
        "environment variable MODELICAPATH."
    )  # fmt: skip


def join_lines(text: str) -> str:
    """Return a text in one line."""
    return " ".join(text.split())


def file_name(source: Source) -> str:
    """Return a name in a folder that does not exist: of a file that does, all others in its folder would be read."""
    return f"fmilin-no-folder/{'model.mo' if source.file is None else source.file.name}"
