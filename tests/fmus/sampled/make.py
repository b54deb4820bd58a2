"""Compile the maps of this folder as FMUs: discrete states in FMI 2.0, clocked states in FMI 3.0."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from fmilin.codegen.compiler import library_suffix
from fmilin.fmi.platforms import fmi2_folders, fmi3_folders
from tests.fmus.make import pack
from tests.shared import shared

HERE = Path(__file__).parent


def build_map(
    folder: Path, *, version: int = 2, defines: Sequence[str] = (), can_save: bool = True, interfaces: str = "me cs"
) -> Path:
    """Build the FMU of ``map2.c`` or ``map3.c`` with these macros."""
    name = "_".join((f"map{version}", *(d.partition("=")[0].lower() for d in defines), *(d[-1] for d in defines)))
    library = shared(f"{name}{library_suffix()}", lambda path: _compile(version, defines, path))
    save_flag = f'canGetAndSetFMU{"state" if version == 2 else "State"}="{str(can_save).lower()}"'
    description = _describe2(name) if version == 2 else _describe3(name)
    elements = {
        "me": f'<ModelExchange modelIdentifier="{name}" {save_flag}/>',
        "cs": f'<CoSimulation modelIdentifier="{name}" canHandleVariableCommunicationStepSize="true" {save_flag}'
        f"{'' if version == 2 else ' hasEventMode=' + chr(34) + 'true' + chr(34)}/>",
    }
    chosen = "".join(elements[key] for key in interfaces.split())
    platform = (fmi3_folders() if version == 3 else fmi2_folders())[0]
    members: dict[str, bytes | str] = {
        "modelDescription.xml": description.replace("INTERFACES", chosen),
        f"binaries/{platform}/{name}{library_suffix()}": library.read_bytes(),
    }
    return pack(folder / f"{name}.fmu", members)


def _compile(version: int, defines: Sequence[str], library: Path) -> None:
    package = find_spec("fmpy")
    assert package is not None
    assert package.submodule_search_locations
    headers = Path(package.submodule_search_locations[0]) / "c-code"
    flags = ["-shared", "-fPIC", "-O1", "-w", f"-I{headers}", *(f"-D{define}" for define in defines)]
    subprocess.run(["cc", *flags, str(HERE / f"map{version}.c"), "-o", str(library), "-lm"], check=True)


def _describe2(name: str) -> str:
    def variable(name: str, reference: int, rest: str, start: str = "") -> str:
        real = f'<Real start="{start}"/>' if start else "<Real/>"
        return f'<ScalarVariable name="{name}" valueReference="{reference}" {rest}>{real}</ScalarVariable>'

    state = 'causality="local" variability="discrete" initial="exact"'
    variables = (
        variable("u", 0, 'causality="input" variability="discrete"', "0")
        + variable("a", 1, state, "0.5")
        + variable("b", 2, state, "0.25")
        + variable("y", 3, 'causality="output" variability="discrete"')
        + variable("k", 4, 'causality="parameter" variability="fixed"', "0.75")
        + variable("sum", 5, 'causality="output" variability="continuous"')
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><fmiModelDescription fmiVersion="2.0" modelName="{name}" guid="{name}" '
        'numberOfEventIndicators="0">INTERFACES<DefaultExperiment startTime="0" stopTime="1" stepSize="0.1"/>'
        f"<ModelVariables>{variables}</ModelVariables><ModelStructure><Outputs>"
        '<Unknown index="4"/><Unknown index="6"/></Outputs></ModelStructure></fmiModelDescription>'
    )


def _describe3(name: str) -> str:
    def variable(name: str, reference: int, rest: str) -> str:
        return f'<Float64 name="{name}" valueReference="{reference}" {rest}/>'

    local = 'causality="local" variability="discrete" clocks="20"'
    variables = (
        variable("u", 1, 'causality="input" variability="discrete" start="0" clocks="20"')
        + variable("a", 2, f'{local} start="0.5" initial="exact" previous="7"')
        + variable("b", 3, f'{local} start="0.25" initial="exact" previous="8"')
        + variable("y", 4, 'causality="output" variability="discrete" clocks="20"')
        + variable("k", 5, 'causality="parameter" variability="fixed" start="0.75"')
        + variable("sum", 6, 'causality="output" variability="continuous"')
        + variable("a before", 7, local)
        + variable("b before", 8, local)
        + '<Clock name="clock" valueReference="20" causality="input" intervalVariability="constant" '
        'intervalDecimal="0.1"/>'
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><fmiModelDescription fmiVersion="3.0" modelName="{name}" '
        f'instantiationToken="{name}">INTERFACES<DefaultExperiment startTime="0" stopTime="1"/>'
        f'<ModelVariables><Float64 name="time" valueReference="0" causality="independent" variability="continuous"/>'
        f"{variables}</ModelVariables><ModelStructure>"
        '<Output valueReference="4"/><Output valueReference="6"/></ModelStructure></fmiModelDescription>'
    )
