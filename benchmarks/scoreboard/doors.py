"""The sources of a model: Python, a mechanism file (TOML), an FMU, an MJCF file, Modelica, Exudyn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import fmilin as fl
from benchmarks.scoreboard.row import Maker
from fmilin.fmi.write import build_fmu
from fmilin.model.interface import Model

__all__ = ["exudyn", "fmu", "fmu_of_toml", "mjcf", "modelica", "native", "toml"]


def native(make: Callable[[], Model]) -> Maker:
    """Return the source of a model that is made in Python."""

    @contextmanager
    def opened() -> Iterator[Model]:
        yield make()

    return opened


def toml(text: str) -> Maker:
    """Return the source of a mechanism file."""
    return _file(text, "mechanism.toml")


def mjcf(text: str) -> Maker:
    """Return the source of a scene of MuJoCo's; it needs the adapter."""
    return _file(text, "scene.xml")


def modelica(text: str) -> Maker:
    """Return the source of a Modelica model; it needs the adapter."""
    return _file(text, "model.mo")


def exudyn(make: Callable[[], Any]) -> Maker:
    """Return the source of a system that Exudyn builds in Python; it needs the adapter."""

    @contextmanager
    def opened() -> Iterator[Model]:
        from fmilin_exudyn import from_system

        yield from_system(make())

    return opened


def fmu(make: Callable[[], Model]) -> Maker:
    """Return the source of an FMU that is compiled from a model made in Python."""

    @contextmanager
    def opened() -> Iterator[Model]:
        with TemporaryDirectory() as folder, fl.load(build_fmu(make(), Path(folder) / "model.fmu")) as model:
            yield model

    return opened


def fmu_of_toml(text: str) -> Maker:
    """Return the source of an FMU that is compiled from a mechanism file."""

    @contextmanager
    def opened() -> Iterator[Model]:
        with toml(text)() as model, fmu(lambda: model)() as compiled:
            yield compiled

    return opened


def _file(text: str, name: str) -> Maker:
    @contextmanager
    def opened() -> Iterator[Model]:
        with TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_text(text, encoding="utf-8")
            with fl.load(path) as model:
                yield model

    return opened
