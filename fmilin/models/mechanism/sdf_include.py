"""Where the models are that an SDFormat file includes: next to it, or in the folders of SDF_PATH and of Gazebo."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

from fmilin.models.mechanism.sdf_elements import SdfLine
from fmilin.models.mechanism.source_lines import read_xml_root
from fmilin.support.files import is_file, path_exists

SEARCH_PATHS = ("SDF_PATH", "GZ_SIM_RESOURCE_PATH", "IGN_GAZEBO_RESOURCE_PATH", "GAZEBO_MODEL_PATH")
"""Variables of the environment with folders of models, in the order in which they are searched."""


def find_included_file(uri: str, line: SdfLine) -> Path:
    """Return the file of a model that a file includes in a line: ``model://NAME``, ``file://PATH`` or a path."""
    scheme, _, rest = uri.partition("://")
    if not rest:
        scheme, rest = "", uri
    if scheme in ("http", "https"):
        raise line.wrong(f"'{uri}' is on another computer: download the model and include 'model://NAME'")
    if scheme not in ("", "file", "model", "package"):
        raise line.wrong(f"'{uri}' is not the URI of a model: write 'model://NAME' or a path relative to this file")
    folder = line.file.parent
    if scheme == "file":
        rest = unquote(urlparse(uri).path)
    candidates = (
        _list_candidates(rest, folder)
        if scheme in ("model", "package")
        else iter([folder / rest, *_list_candidates(rest, folder)])
    )
    for candidate in candidates:
        if path_exists(candidate):
            return _open_folder(candidate, line) if candidate.is_dir() else _require_sdf(candidate, line)
    hint = "" if scheme in ("", "file") else f": name the folder around it in {SEARCH_PATHS[0]}"
    raise line.wrong(f"'{uri}' is not found{hint}")


def _list_candidates(name: str, folder: Path) -> Iterator[Path]:
    """Yield where a model may be: in the folders of the environment, then next to the file and next to its folder."""
    for variable in SEARCH_PATHS:
        for text in os.environ.get(variable, "").split(os.pathsep):
            if text:
                yield Path(text) / name
    yield folder / name
    yield folder.parent / name


def _open_folder(folder: Path, line: SdfLine) -> Path:
    """Return the file of the newest version of a folder's model that its model.config names, or model.sdf."""
    config = folder / "model.config"
    newest: tuple[tuple[int, ...], Path] | None = None
    if is_file(config):
        for element in read_xml_root(config, "model.config", []).findall("sdf"):
            version = tuple(int(part) for part in element.get("version", "1.0").split(".") if part.isdigit())
            name = (element.text or "").strip()
            if name and (newest is None or version > newest[0]):
                newest = version, folder / name
    file = folder / "model.sdf" if newest is None else newest[1]
    if not is_file(file):
        raise line.wrong(f"the folder '{folder}' has no model: there is no file '{file.name}'")
    return _require_sdf(file, line)


def _require_sdf(file: Path, line: SdfLine) -> Path:
    if file.suffix.lower() == ".urdf":
        raise line.wrong(f"'{file}' is a URDF file: 'gz sdf -p FILE' converts it")
    return file
