"""Compile the plants of this folder as FMUs: for co-simulation in FMI 2.0 and 3.0, and for model exchange."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from fmilin.codegen.c_source_export import generate
from fmilin.codegen.compiler import library_suffix
from fmilin.fmi.platforms import fmi2_folders, fmi3_folders
from tests.fmus.make import pack
from tests.shared import shared

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Plant:
    """Names of a plant's variables, in the order of its value references, and start values."""

    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    starts: dict[str, float] = field(default_factory=dict)
    variability: str = "continuous"


def _numbered(letter: str) -> tuple[str, ...]:
    return tuple(f"{letter}[{i}]" for i in range(1, 16))


PLANTS = {
    "motor": Plant(("i", "w", "angle"), ("V", "load"), ("speed", "current", "marker"), {"angle": 0.25}),
    "order12": Plant(
        (*(f"q[{i}]" for i in range(1, 7)), *(f"v[{i}]" for i in range(1, 7))), ("u1", "u2"), ("y1", "y2")
    ),
    "wide": Plant(_numbered("x"), _numbered("u"), _numbered("y")),
    "ball": Plant(("h", "v"), ("u",), ("y",), {"h": 1.0}),
    "relay": Plant(("x",), ("u",), ("y",)),
    "friction": Plant(("x", "v"), ("u",), ("y",)),
    "dead_zone": Plant(("x",), ("u",), ("y",)),
    "controller": Plant((), ("u1", "u2"), ("y",), variability="discrete"),
    "sampled_loop": Plant(("x",), ("u",), ("y",)),
}


@cache
def four_bar() -> tuple[Plant, dict[str, str]]:
    """Return the four-bar linkage and its generated code."""
    from fmilin.systems import four_bar as mechanism

    system = mechanism().system
    plant = Plant(
        system.state_signals.names,
        mechanism().inputs.names,
        mechanism().outputs.names,
        dict(zip(mechanism().states.names, mechanism().start.states.tolist(), strict=True)),
    )
    return plant, dict(generate(system.in_graph()).sources)


@dataclass(frozen=True)
class Kind:
    """How a plant becomes an FMU.

    Parameters
    ----------
    fmi : {"2.0", "3.0"}
    interface : {"CoSimulation", "ModelExchange"}
    hidden : bool
        Whether the states are kept to itself.
    flags : sequence of str
        Of the compiler: ``-DSTALE``, ...
    attributes : str
        Of the interface's element.
    tunable : bool
        Whether what the plant has as inputs is declared as tunable parameters.
    """

    fmi: str = "2.0"
    interface: str = "CoSimulation"
    hidden: bool = False
    flags: tuple[str, ...] = ()
    attributes: str = 'canHandleVariableCommunicationStepSize="true" SAVES'
    experiment: str = ""
    further: str = ""
    tunable: bool = False


def build(name: str, folder: Path, kind: Kind | None = None) -> Path:
    """Build one."""
    kind = kind or Kind()
    plant, sources = four_bar() if name == "four_bar" else (PLANTS[name], {})
    folder.mkdir(parents=True, exist_ok=True)
    version = ["-DFMI3"] if kind.fmi == "3.0" else []
    arguments = [*version, *kind.flags]
    built = compiled(name, sources, arguments)
    platform = (fmi3_folders() if kind.fmi == "3.0" else fmi2_folders())[0]
    xml = description(name, plant, kind)
    library = f"binaries/{platform}/{name}{library_suffix()}"
    return pack(folder / f"{name}.fmu", {"modelDescription.xml": xml, library: built.read_bytes()})


def compiled(name: str, sources: Mapping[str, str] | None = None, arguments: Sequence[str] = ()) -> Path:
    """Compile ``name.c``, once in a run of the tests, and return the shared library."""
    return shared(
        f"{name}-{sha256(repr(arguments).encode()).hexdigest()[:16]}{library_suffix()}",
        lambda path: _compile(name, path, sources or {}, arguments),
    )


def _compile(name: str, library: Path, sources: Mapping[str, str], arguments: Sequence[str]) -> None:
    for file, text in sources.items():
        (library.parent / file).write_text(text)
    package = find_spec("fmpy")
    assert package is not None
    assert package.submodule_search_locations
    headers = Path(package.submodule_search_locations[0]) / "c-code"
    includes = [f"-I{headers}", f"-I{HERE}", f"-I{library.parent}"]
    command = ["cc", "-shared", "-fPIC", "-O1", "-w", *includes, *arguments, f"{HERE / name}.c"]
    subprocess.run([*command, "-o", str(library), "-lm"], check=True)


def description(name: str, plant: Plant, kind: Kind) -> str:
    """Return the model description."""
    n, k = len(plant.states), len(plant.inputs)
    rows: list[tuple[str, int, str, str]] = []
    if not kind.hidden:
        rows += [(s, i, "local", "state") for i, s in enumerate(plant.states)]
        rows += [(f"der({s})", n + i, "local", "rate") for i, s in enumerate(plant.states)]
    rows += [(s, 2 * n + i, "parameter" if kind.tunable else "input", "") for i, s in enumerate(plant.inputs)]
    rows += [(s, 2 * n + k + i, "output", "") for i, s in enumerate(plant.outputs)]
    write = _fmi3 if kind.fmi == "3.0" else _fmi2
    return write(name, plant, kind, rows)


Rows = Sequence[tuple[str, int, str, str]]


def _start(plant: Plant, name: str, causality: str, role: str) -> str:
    return f' start="{plant.starts.get(name, 0.0)!r}"' if causality in ("input", "parameter") or role == "state" else ""


def _variability(plant: Plant, causality: str) -> str:
    if causality == "local":
        return ""
    return f' variability="{"tunable" if causality == "parameter" else plant.variability}"'


def _fmi2(name: str, plant: Plant, kind: Kind, rows: Rows) -> str:
    variables, outputs, derivatives = [], [], []
    for number, (variable, reference, causality, role) in enumerate(rows, 1):
        initial = ' initial="exact"' if role == "state" else ""
        variability = _variability(plant, causality)
        of = f' derivative="{number - len(plant.states)}"' if role == "rate" else ""
        start = _start(plant, variable, causality, role)
        variables.append(
            f'<ScalarVariable name="{variable}" valueReference="{reference}" causality="{causality}"{variability}'
            f"{initial}><Real{start}{of}/></ScalarVariable>"
        )
        outputs += [f'<Unknown index="{number}"/>'] * (causality == "output")
        derivatives += [f'<Unknown index="{number}"/>'] * (role == "rate")
    attributes = kind.attributes.replace("SAVES", 'canGetAndSetFMUstate="true"')
    listed = f"<Derivatives>{''.join(derivatives)}</Derivatives>" if derivatives else ""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<fmiModelDescription fmiVersion="2.0" modelName="{name}" '
        f'guid="{{{name}}}" numberOfEventIndicators="0">\n'
        f'<{kind.interface} modelIdentifier="{name}" {attributes if kind.interface == "CoSimulation" else ""}/>\n'
        f"{kind.experiment}<ModelVariables>{''.join(variables)}</ModelVariables>\n"
        f"<ModelStructure><Outputs>{''.join(outputs)}</Outputs>{listed}</ModelStructure>\n</fmiModelDescription>"
    )


def _fmi3(name: str, plant: Plant, kind: Kind, rows: Rows) -> str:
    variables, structure, derivatives = [], [], []
    for variable, reference, causality, role in rows:
        initial = ' initial="exact"' if role == "state" else ""
        variability = _variability(plant, causality)
        of = f' derivative="{reference - len(plant.states)}"' if role == "rate" else ""
        start = _start(plant, variable, causality, role)
        variables.append(
            f'<Float64 name="{variable}" valueReference="{reference}" causality="{causality}"{variability}{initial}'
            f"{start}{of}/>"
        )
        structure += [f'<Output valueReference="{reference}"/>'] * (causality == "output")
        derivatives += [f'<ContinuousStateDerivative valueReference="{reference}"/>'] * (role == "rate")
    attributes = kind.attributes.replace("SAVES", 'canGetAndSetFMUState="true"')
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<fmiModelDescription fmiVersion="3.0" modelName="{name}" '
        f'instantiationToken="{{{name}}}">\n<{kind.interface} modelIdentifier="{name}" {attributes}/>\n'
        f"{kind.experiment}<ModelVariables>{''.join(variables)}{kind.further}</ModelVariables>\n"
        f"<ModelStructure>{''.join(structure + derivatives)}</ModelStructure>\n</fmiModelDescription>"
    )
