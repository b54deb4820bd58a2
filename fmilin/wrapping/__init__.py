"""Any model as a co-simulation FMU that runs Python inside, by pythonfmu.

Takes: a model that cannot be written as C.
Returns: an FMU.
Does not depend on: what the FMU is used for.
"""

import json
import re
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from fmilin.adapters.registry import find_adapter
from fmilin.errors import ModelError, UsageError
from fmilin.fmi.write.symbolic_fmu import CONSTRAINTS_PATH, check_destination, constraints_toml, to_identifier
from fmilin.fmi.write.variables import DeclaredConstraint, find_prescribing_inputs
from fmilin.loading.load import load
from fmilin.model.interface import Model
from fmilin.support.files import is_file, read_file, temporary_folder, write_atomically, write_file
from fmilin.support.other_python import python_command
from fmilin.support.programs import run_program

WRAPPED = "fmilin_wrapped.json"  # what is wrapped: the source, relative to the resources of the FMU

BUILDING_TIME = 300.0  # seconds for pythonfmu, which takes about one


def residual_name(i: int) -> str:
    """Return the variable that holds the i-th residual of the model's constraints, declared rates included."""
    return f"residual[{i + 1}]"


_PYTHON_FILE = re.compile(r"(?P<file>.+?\.py):(?P<rest>.+)", re.DOTALL)
_ADAPTED = re.compile(r"(?P<adapter>[A-Za-z_]\w+):(?P<file>.+\.\w+)", re.DOTALL)

_SCRIPT = """\
import ctypes

from fmilin.wrapping.cosimulation_script import WrappedModel

# Whenever pythonfmu (0.7) runs this file, it releases a reference to these globals that it does not own: without
# another one they are freed while the module still uses them.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(globals()))


class {identifier}(WrappedModel):
    pass
"""


def wrap_as_fmu(source: str | Path, path: str | Path, *, name: str = "", files: Sequence[str | Path] = ()) -> Path:
    """Write an FMU 2.0 for co-simulation that runs a model of fmilin, constraints included, in Python.

    The importer must be a Python process with fmilin and the model's adapter (PyFMI rejects such FMUs);
    :func:`fmilin.fmi.write.build_fmu` writes a faster FMU without Python of equations in symbols. The file of
    ``source`` and ``STEM.fmilin.toml`` next to it go in; ``files`` are others that the model reads from its folder.
    """
    path = Path(path)
    check_destination(path)
    if find_spec("pythonfmu") is None:
        raise UsageError(
            "This model has no equations in symbols, so it cannot be compiled to C. An FMU that runs Python needs "
            'the package pythonfmu: pip install "fmilin[wrap]"'
        )
    with load(source) as model:
        toml = _constraints(model)
    text, carried = _carried(str(source))
    inside = [*carried, *map(Path, files)]
    if len({file.name for file in inside}) < len(inside):
        raise UsageError(f"Two of the files for the FMU have the same name: {', '.join(f.name for f in inside)}.")
    identifier = to_identifier(name or _find_name(text))
    with temporary_folder() as folder:
        script = folder / f"{identifier}_script.py"
        write_file(script, _SCRIPT.format(identifier=identifier).encode())
        spec = folder / WRAPPED
        write_file(spec, json.dumps({"source": text, "description": f"{identifier}, wrapped by fmilin"}).encode())
        for file in inside:
            try:
                write_file(folder / file.name, read_file(file))
            except OSError as error:
                raise ModelError(
                    f"'{file}' cannot be read: {error.strerror or error}. Check the path and its permissions."
                ) from None
        project = [spec, *(folder / file.name for file in inside)]
        built = folder / "built"
        command = python_command("-m", "pythonfmu", "build", "--handle-state", "-f", str(script), "-d", str(built))
        try:
            status, printed = run_program([*command, *map(str, project)], script.parent, seconds=BUILDING_TIME)
        except TimeoutError:
            raise ModelError(
                f"The model cannot be wrapped as an FMU: pythonfmu did not end within {BUILDING_TIME:g} s and was "
                "stopped. Wrap fewer files, or try again on a machine with less load."
            ) from None
        if status:
            words = (printed.strip().splitlines() or ["no reason given"])[-1]
            raise ModelError(f"The model cannot be wrapped as an FMU: {words}")
        [fmu] = built.glob("*.fmu")
        if toml:
            with zipfile.ZipFile(fmu, "a", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(CONSTRAINTS_PATH, toml)
        write_atomically(path, fmu.read_bytes())
    return path


def _constraints(model: Model) -> str:
    """Return the constraints as they are declared inside: by residuals that the model computes."""
    declared, count = [], len(model.constraints.declared)
    with_rates = [i for i, constraint in enumerate(model.constraints.declared) if constraint.rate is not None]
    for i, constraint in enumerate(model.constraints.declared):
        rate = residual_name(count + with_rates.index(i)) if i in with_rates else None
        named, named_in_rate = find_prescribing_inputs(constraint, model.inputs)
        residual = residual_name(i)
        declared.append(DeclaredConstraint(residual, constraint.level, constraint.label, rate, named, named_in_rate))
    return constraints_toml(declared, model.independent)


def _carried(source: str) -> tuple[str, list[Path]]:
    """Return the source as it is called inside the FMU, and the files that it consists of."""
    for pattern in (_PYTHON_FILE, _ADAPTED):
        match = pattern.fullmatch(source)
        if match is None:
            continue
        file = Path(match["file"])
        inside = f"{{resources}}/{file.name}"
        return (f"{inside}:{match['rest']}" if pattern is _PYTHON_FILE else f"{match['adapter']}:{inside}"), _with(file)
    file = Path(source)
    if not file.is_file():
        return source, []
    # The adapter is recorded: where the FMU runs, another engine's broken one must not be in the way.
    adapter = None if file.suffix.lower() in (".toml", ".urdf", ".sdf") else find_adapter(file)
    prefix = "" if adapter is None else f"{adapter.name}:"
    return f"{prefix}{{resources}}/{file.name}", _with(file)


def _with(file: Path) -> list[Path]:
    constraints_file = file.with_name(f"{file.stem}.fmilin.toml")
    return [file, constraints_file] if is_file(constraints_file) else [file]


def _find_name(source: str) -> str:
    python = re.search(r":([A-Za-z_]\w*)\s*(\(.*\))?$", source, re.DOTALL)
    return python[1] if python is not None else Path(source).stem
