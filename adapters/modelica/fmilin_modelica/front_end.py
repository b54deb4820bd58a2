"""rumoca, which parses and flattens Modelica: a model becomes one table of variables, equations and expressions.

Its index is not reduced, and nothing of it is chosen. Flattened models are cached, by the content of all files that
were read, in fmilin's folder of caches.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence, Set
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from fmilin.adapters import cache_folder, cache_library, read_cached_library
from fmilin.errors import ModelError
from fmilin_modelica import compiler_process
from fmilin_modelica.class_reader import read_classes
from fmilin_modelica.compiler_cache import private_cache
from fmilin_modelica.complex_numbers import write_complex_as_real
from fmilin_modelica.conversions import Converter, find_conversions
from fmilin_modelica.declarations import declarations_of, functions_of
from fmilin_modelica.error_messages import (
    NO_STATE,
    QUOTED,
    WRAPPER,
    describe_crash,
    describe_error,
    file_name,
    find_syntax_error,
)
from fmilin_modelica.expandable_connectors import MEMBER_FAULT, write_members_of_expandable_connectors
from fmilin_modelica.fills import FILL_FAULT, write_fills_as_comprehensions
from fmilin_modelica.initial_algorithms import INITIAL_FAULT, write_initial_algorithms_as_equations
from fmilin_modelica.libraries import library_name, names_needed
from fmilin_modelica.local_functions import SHAPE_FAULT, write_names_of_local_functions
from fmilin_modelica.loops import write_loops_as_expressions
from fmilin_modelica.matrix_equations import BALANCE_FAULT, find_column_equations
from fmilin_modelica.needed_classes import files_of, find_needed_files
from fmilin_modelica.outer_members import FAULT, list_outer_members, write_outer_members_as_variables
from fmilin_modelica.outer_types import TYPE_FAULT, write_types_of_inner_components
from fmilin_modelica.package_aliases import PACKAGE_FAULT, write_names_of_packages
from fmilin_modelica.places import Texts
from fmilin_modelica.rewriting import EVALUATE_FAULT, rewrite, write_evaluations_of_parameters
from fmilin_modelica.sources import Source
from fmilin_modelica.symmetrical_components import write_symmetrical_components_as_arrays

__all__ = ["flattened", "fresh"]

FORMAT = 13
UNREADABLE = "Failed to load source root"  # what the front end says of a library with a file that is not Modelica
LIBRARY = "library"  # the folder with the needed files of libraries in that of a run
FLATTENING_TIME = 600.0  # seconds; large examples of the Modelica Standard Library take less than a minute
BLOCKS = """package Modelica package Blocks package Interfaces
connector RealInput = input Real; connector RealOutput = output Real;
end Interfaces; end Blocks; end Modelica;
"""  # what models of signals use of the library, which then need not be there
_MISSING_CLASS = re.compile(r"unresolved (?!Flat)|not found|resolve/parse failed|[Uu]nable to infer model")
_DROPPED = {"provenance", "declaration", "value_type_provenance", "begin_provenance", "finish_provenance"}


Mends = list[tuple[re.Pattern[str], Callable[[], Callable[[str], str] | None]]]
"""Errors of the front end, each with what finds the mend for the texts of a model."""


def flattened(source: Source, changed: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the flattened model, its parameters changed before.

    Parameters
    ----------
    source : Source
    changed : mapping of str to float, optional
        Values by the parameter's name, ``body.m``.

    Raises
    ------
    ModelError
        When the model is wrong, or has something that the front end does not know: in its words, with file and line.
    """
    text, model = _text(source, changed or {})
    if source.uses_signals_alone():
        source, text = source.without_standard_library(), f"{text}\n{BLOCKS}"
    request = json.dumps([FORMAT, _version(), text, model, list(source.roots)])
    name = f"modelica-{hashlib.sha256(request.encode()).hexdigest()}"
    kept = read_cached_library(name)
    if kept is not None:
        content = json.loads(zlib.decompress(kept))
        if all(_digest(path) == digest for path, digest in content["files"].items()):
            return dict(content["flat"])
    flat, read = _compiled(source, text, model)
    cache_library(name, zlib.compress(json.dumps({"files": read, "flat": flat}).encode(), 1))
    return flat


def fresh(source: Source) -> dict[str, Any]:
    """Return the flattened model, from the front end whatever is kept."""
    return _compiled(source, *_text(source, {}))[0]


def _compiled(source: Source, text: str, model: str | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the flattened model, and a digest of each file that was read."""
    answer, library = _ask(source, text, model)
    if "crash" in answer:
        raise ModelError(describe_crash(source, answer["crash"], library))
    if "error" in answer:
        raise ModelError(describe_error(source, text, model, answer["error"], library))
    content = answer["dae"]
    files = content["source_map"]["files"]
    texts = {number: (path, text.encode()) for number, path, text in files}
    flat: dict[str, Any] = _without_places(content["storage"])
    flat["external_tables"] = content.get("external_tables", [])
    flat["name"] = source.model or (flattened(source)["name"] if model == WRAPPER else answer["name"])
    places = Texts(texts)
    flat["places"] = places.list_equations(content["storage"]["continuous_equation_operations"])
    flat["initial_places"] = places.list_equations(content["storage"]["initialization_equation_operations"])
    flat["places_of_expressions"] = places.list_expressions(content["storage"])
    flat["places_of_variables"] = places.list_variables(answer["flat"]["variables"])
    flat["declarations"] = _without_places(declarations_of(answer["flat"], texts))
    flat["tree_functions"] = _without_places(functions_of(answer["flat"]))
    flat["notes"] = answer["notes"]
    flat["tool"] = f"rumoca {_version()}"
    paths = [str(library.get(path.removeprefix(f"{LIBRARY}/"), path)) for _, path, _ in files]
    return flat, {path: _digest(path) for path in paths if Path(path).is_file() and path != str(source.file)}


def _ask(source: Source, text: str, model: str | None) -> tuple[dict[str, Any], dict[str, Path]]:
    """Return what the front end answers, and the files of libraries that it read, by their places in a folder.

    Where it misses a class among the files that the text needs, it reads the whole libraries. All other errors are
    reported as they are: whole libraries would not change them.
    """
    name = model or source.model
    converter = find_conversions(source.roots, text)
    text = converter.convert_text(text)
    library = find_needed_files(source.roots, text, name, converter.read_file)
    files = _read_files(library, converter)
    notes: list[str] = []
    answer = _ask_with_mends(source, text, model, files)
    if _MISSING_CLASS.search(answer.get("error", "")):
        names = names_needed(source.roots, f"{text} {source.model or ''}")
        whole = files_of([root for root in source.roots if library_name(Path(root)) in names])
        if _may_declare([whole[place] for place in whole.keys() - library.keys()], answer["error"]):
            needed = library.keys()
            library = whole
            files = _read_files(whole, converter)
            answer = _ask_with_mends(source, text, model, files)
            if UNREADABLE in answer.get("error", ""):
                broken = _list_broken_files(files, needed)
                files = {place: code for place, code in files.items() if place not in broken}
                answer = _ask_with_mends(source, text, model, files)
                notes.append(
                    f"Files with syntax errors, which the model does not need, are left out: {', '.join(broken)}."
                )
    return {**answer, "notes": [*converter.describe(), *notes]}, library


def _ask_with_mends(source: Source, text: str, model: str | None, files: Mapping[str, str]) -> dict[str, Any]:
    """Return what the front end answers to rewritten texts, from a folder of its own."""
    cache_of_classes = cache_folder().parent / f"modelica-{_version()}-classes"
    try:
        with private_cache(cache_of_classes) as folder:
            return _ask_in_folder(source, text, model, files, folder)
    finally:
        read_classes.cache_clear()  # tokens of large libraries take much more memory than their texts


def _ask_in_folder(
    source: Source, text: str, model: str | None, files: Mapping[str, str], folder: Path
) -> dict[str, Any]:
    """Return what the front end answers to rewritten texts: after errors that it has a mend for, to further ones.

    Each mend costs another run. One after which the error is another one stays; what comes next may need it.
    """
    name = model or source.model
    write = _chain_first(write_complex_as_real(files, text, name))

    def ask(change: Callable[[str], str]) -> dict[str, Any]:
        return _answer(source, text, model, files, change, folder)

    answer = ask(_chain(write, rewrite))
    mends: Mends = [
        (re.compile(EVALUATE_FAULT), lambda: write_evaluations_of_parameters),
        (PACKAGE_FAULT, lambda: write_names_of_packages(files, text, name)),
        (TYPE_FAULT, lambda: write_types_of_inner_components(files, text, name)),
        (MEMBER_FAULT, lambda: write_members_of_expandable_connectors(files, text, name)),
        (SHAPE_FAULT, lambda: write_names_of_local_functions),
        (BALANCE_FAULT, lambda: find_column_equations(files, text)),
        (FILL_FAULT, lambda: write_fills_as_comprehensions),
        (INITIAL_FAULT, lambda: write_initial_algorithms_as_equations),
        (FAULT, lambda: _find_outer_members(files, text)),
    ]
    while (mend := _take_mend(mends, answer)) is not None:
        changed = _chain(write, mend)
        other = ask(_chain(changed, rewrite))
        if _has_advanced(answer, other):
            write, answer = changed, other
    if NO_STATE in answer.get("crash", ""):
        other = ask(lambda code: rewrite(write(code), splits_sums=False))
        answer = other if "dae" in other else answer
    return answer


def _take_mend(mends: Mends, answer: Mapping[str, Any]) -> Callable[[str], str] | None:
    """Return the first mend for an error, and take it from the list; None without any."""
    for entry in [entry for entry in mends if entry[0].search(answer.get("error", ""))]:
        mends.remove(entry)
        if (mend := entry[1]()) is not None:
            return mend
    return None


def _has_advanced(answer: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether another answer is the model, or an error that is not the same one."""
    if "crash" in other:
        return NO_STATE in other["crash"]
    return "dae" in other or other["error"] != answer["error"]


def _find_outer_members(files: Mapping[str, str], text: str) -> Callable[[str], str] | None:
    """Return the function that lets classes read members of outer components from variables."""
    members = list_outer_members([text, *files.values()])
    return (lambda code: write_outer_members_as_variables(code, members)) if members else None


def _list_broken_files(files: Mapping[str, str], needed: Set[str]) -> list[str]:
    """Return the places of files that are not needed and that the front end cannot parse."""
    others = files.keys() - needed
    return sorted(place for place in others if find_syntax_error(files[place], WRAPPER, place) is not None)


def _chain_first(write_complex: Callable[[str], str]) -> Callable[[str], str]:
    """Return what every text needs before it is rewritten, whatever the front end says of it."""
    return _chain(_chain(write_complex, write_symmetrical_components_as_arrays), write_loops_as_expressions)


def _chain(first: Callable[[str], str], second: Callable[[str], str]) -> Callable[[str], str]:
    """Return both in turn; what the first one returns is kept, since further mends follow it."""
    first = cache(first)
    return lambda code: second(first(code))


def _may_declare(files: Sequence[Path], error: str) -> bool:
    """Whether files contain the last part of a name in an error: a name that nothing declares is a slip."""
    parts = {name.rpartition(".")[2] for name in QUOTED.findall(error)}
    names = re.compile(rf"\b(?:{'|'.join(map(re.escape, parts))})\b".encode())
    for file in files:
        with contextlib.suppress(OSError):
            if names.search(file.read_bytes()):
                return True
    return False


def _answer(
    source: Source,
    text: str,
    model: str | None,
    files: Mapping[str, str],
    change: Callable[[str], str],
    folder: Path,
) -> dict[str, Any]:
    """Return what the front end answers, from a process of its own that reads the files of libraries, changed."""
    names = [library_name(Path(root)) for root in source.roots]
    rewritten = change(text)
    request = {
        "text": f"{rewritten}\n// {' '.join(names)}\n",  # it loads libraries that the text names
        "model": model,
        "roots": _list_folders(files),
        "filename": file_name(source),
    }
    script = [sys.executable, "-P", compiler_process.__file__, "request.json", "answer.json"]
    path = os.pathsep.join(entry for entry in sys.path if entry)
    _write_files(files, folder / LIBRARY, change)
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder), "PYTHONPATH": path}
    environment.pop("MODELICAPATH", None)  # where the front end would find the whole libraries once more
    errors = folder / "errors.txt"
    with errors.open("wb") as written:
        try:
            done = subprocess.run(  # noqa: S603 - this Python and its own script
                script,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=written,
                check=False,
                timeout=FLATTENING_TIME,
            )
        except subprocess.TimeoutExpired:
            raise ModelError(
                f"The Modelica front end (rumoca) did not finish with '{source.shown}' within {FLATTENING_TIME:g} s "
                "and was ended. Load a smaller part of the model."
            ) from None
    if done.returncode:
        words = errors.read_text("utf-8", "replace").strip().splitlines()
        return {"crash": words[-1] if words else f"it ended with the status {done.returncode}"}
    answer: dict[str, Any] = json.loads((folder / "answer.json").read_bytes())
    return answer


@cache
def _version() -> str:
    """Return the version of the front end from its metadata: its import takes longer than to read a flattened model."""
    return metadata.version("rumoca")


def _read_files(library: Mapping[str, Path], converter: Converter) -> dict[str, str]:
    """Return the texts of files that can be read, in the names of the libraries that are there."""
    texts = {}
    for place, file in library.items():
        with contextlib.suppress(OSError):  # the front end then misses it, and the whole libraries are read
            texts[place] = converter.read_file(file)
    return texts


def _write_files(files: Mapping[str, str], folder: Path, change: Callable[[str], str]) -> None:
    """Write the needed files of libraries into a folder, changed where the front end needs that.

    It reads no others, such as data of tables. They have no byte order marks: the front end rejects those. Files that
    an earlier run wrote with the same content stay.
    """
    for place, text in files.items():
        file, content = folder / place, change(text).encode()
        if file.is_file() and file.read_bytes() == content:
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _list_folders(files: Mapping[str, str]) -> list[str]:
    """Return the libraries in the folder of a run: relative, since what was parsed is kept by the path of a file."""
    tops = {place.partition("/")[0] for place in files}
    return [f"{LIBRARY}/{top}" for top in sorted(tops)]


def _text(source: Source, changed: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the text to load and the model in it: with changed parameters, one that extends the model."""
    if source.file is not None and not changed:
        return source.text, source.model
    name = source.model or flattened(source)["name"]
    return f"{source.text}\nmodel {WRAPPER}\n  extends {name}{_modification(changed)};\nend {WRAPPER};\n", WRAPPER


def _modification(changed: Mapping[str, Any]) -> str:
    """Return "(body(m = 2.0))" of {"body.m": 2.0}."""
    tree: dict[str, Any] = {}
    for name, value in changed.items():
        *path, last = name.split(".")
        inner = tree
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return _written(tree)


def _written(tree: Mapping[str, Any]) -> str:
    parts = [
        f"{name}{_written(value)}" if isinstance(value, dict) else f"{name} = {_number(value)}"
        for name, value in tree.items()
    ]
    return f"({', '.join(parts)})" if parts else ""


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(int(value)) if isinstance(value, int) else repr(float(value))


def _without_places(content: Any) -> Any:
    """Return the table without where each part of it stood in the text: nine tenths of it."""
    if isinstance(content, dict):
        return {key: _without_places(value) for key, value in content.items() if key not in _DROPPED}
    return [_without_places(value) for value in content] if isinstance(content, list) else content


def _digest(path: str) -> str:
    with contextlib.suppress(OSError):
        return hashlib.blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()
    return ""
