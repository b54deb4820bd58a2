"""What is fed with arbitrary input: each target takes bytes and must end in a result or in an error of fmilin's own."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np

from fmilin import Constraint
from fmilin.composition.ssp.flattening import flatten_system
from fmilin.composition.ssp.reading import read_structure
from fmilin.constraints.expression_functions import ExpressionFunctions
from fmilin.constraints.expressions import parse
from fmilin.errors import FmilinError
from fmilin.export.foreign import loads_dslin
from fmilin.fmi.read import FmuFile
from fmilin.fmi.read.layout import ScalarLayout
from fmilin.fmi.read.sensitivities import declared_structure
from fmilin.fmi.read.settings import Value, resolve_settings, structural_sizes
from fmilin.fmi.read.xml import parse_description
from fmilin.model.model_files import load_point, read_constraints
from fmilin.models.mechanism import Mechanism
from tests.file_contents import read, written
from tests.fmus.make import description_of
from tests.fuzz.mutation import as_npz, changed_document, changed_toml, mutated
from tests.fuzz.seeds import MECHANISMS, SYSTEM
from tests.hand_made import pendulum

__all__ = ["TARGETS"]

_CHANGED = ("spring1", "pendulum", "arrays3", "switch_and_name", "singles3")


def description(data: bytes) -> None:
    """Read a model description as a whole or, where the first byte is odd, scanned; and use all of it."""
    scanned = bool(data[:1]) and data[0] % 2 == 1
    with mock.patch("fmilin.fmi.read.xml.MIN_SCANNED_BYTES", 0 if scanned else 1 << 40):
        found = parse_description(data[1:], "fuzz.fmu")
    chosen: dict[str, Value] = {"n": "3", "q": "1 2", "u": 1.0}
    layout = ScalarLayout(found, structural_sizes(found, chosen))
    layout.signals(layout.states)
    layout.signals(layout.inputs)
    layout.find("der(x)")
    layout.find("q[2]")
    declared_structure(layout, layout.outputs, np.arange(len(layout.inputs)))
    known = [name for name in chosen if name in found.by_name]
    resolve_settings(layout, {name: chosen[name] for name in known})


def changed_description(data: bytes) -> None:
    """Read a description that was changed in as many places as ``data`` has groups of four bytes."""
    if len(data) > 1:
        xml = description_of(_CHANGED[data[0] % len(_CHANGED)])
        description(data[1:2] + mutated(xml, data[2:]).encode())


def constraint(data: bytes) -> None:
    """Parse an expression, and build and differentiate it where it is short."""
    text = data.decode("utf-8", "replace")
    Constraint.from_text(text)
    expression = parse(text)
    if len(text) < 60:
        import sympy

        symbols = {name: sympy.Symbol(f"s{i}", real=True) for i, name in enumerate(expression.names)}
        built = expression.to_sympy(symbols)
        for symbol in symbols.values():
            built.diff(symbol)
        places = {name: i for i, name in enumerate(expression.names)}
        compiled, point = ExpressionFunctions([expression], places, len(places)), np.full(len(places), 0.5)
        found = compiled.values(point), compiled.jacobian(point), compiled.curvature(point, point)
        assert not any(np.isinf(part).any() for part in found)


def constraints_file(data: bytes) -> None:
    """Read a constraints file."""
    read_constraints(data, "fuzz.toml")


def archive(data: bytes) -> None:
    """Look into an archive and unpack it; nothing may be written outside the directory for it."""
    with tempfile.TemporaryDirectory() as folder, mock.patch("tempfile.tempdir", folder):
        path = Path(folder) / "fuzz.fmu"
        path.write_bytes(data)
        try:
            fmu = FmuFile(path)
            _ = fmu.platforms
            target = fmu.unpack(("resources", "binaries"))
        except FmilinError:
            assert [p.name for p in Path(folder).iterdir()] == ["fuzz.fmu"]
            raise
        assert {p.name for p in Path(folder).iterdir()} == {"fuzz.fmu", target.name}


def linear_model(data: bytes) -> None:
    """Read a linear model; the first byte says which kind of file it is."""
    kind = data[0] % 5 if data else 0
    if kind == 3:
        found = loads_dslin(data[1:], "fuzz")
    else:
        found = read(data[1:], (".npz", ".json", ".mat", "", ".fmu")[kind], "fuzz")
    for letter in "ABCDT":
        assert np.isfinite(getattr(found, letter)).all(), letter


def changed_linear_model(data: bytes) -> None:
    """Read a linear model in which as many values are odd as ``data`` has groups of four bytes, from two formats."""
    document = changed_document(json.loads(written(pendulum(), ".json")), data[1:])
    if data[:1] and data[0] % 2:
        linear_model(b"\x00" + as_npz(document))
    else:
        linear_model(b"\x01" + json.dumps(document).encode())


def mechanism(data: bytes) -> None:
    """Read a mechanism: a TOML file, or a URDF file where the text begins like XML."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("fuzz.urdf" if data.lstrip()[:1] == b"<" else "fuzz.toml")
        path.write_bytes(data)
        found = Mechanism.from_urdf(path) if path.suffix == ".urdf" else Mechanism.from_toml(path)
        point = found.start
        found.evaluate(point.time, point.states, point.inputs)


def changed_mechanism(data: bytes) -> None:
    """Read a mechanism whose file was changed in as many places as ``data`` has groups of four bytes."""
    if len(data) > 1:
        text = MECHANISMS[data[0] % len(MECHANISMS)]
        changed = mutated(text, data[1:]) if text.lstrip().startswith("<") else changed_toml(text, data[1:])
        mechanism(changed.encode())


def system(data: bytes) -> None:
    """Read and flatten the description of a system, whose components are not there."""
    files = {"fuzz.ssd": data}
    flatten_system(read_structure(files.get, "fuzz.ssd", "fuzz.ssp"), "fuzz.ssd", lambda *_: None)


def changed_system(data: bytes) -> None:
    """Read a system whose description was changed in as many places as ``data`` has groups of four bytes."""
    system(mutated(SYSTEM, data).encode())


def point(data: bytes) -> None:
    """Read a saved point: TOML where the first byte is odd, else JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("fuzz.toml" if data[:1] and data[0] % 2 else "fuzz.json")
        path.write_bytes(data[1:])
        load_point(path)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "description": description,
    "changed_description": changed_description,
    "constraint": constraint,
    "constraints_file": constraints_file,
    "archive": archive,
    "linear_model": linear_model,
    "changed_linear_model": changed_linear_model,
    "mechanism": mechanism,
    "changed_mechanism": changed_mechanism,
    "system": system,
    "changed_system": changed_system,
    "point": point,
}
