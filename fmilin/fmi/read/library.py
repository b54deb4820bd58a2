"""The library of an FMU: which one is loaded, what speaks to it, and how it is compiled from the sources inside.

Sources are compiled only when the user has asked for it: they are foreign code.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from fmilin.codegen.compiler import find_compiler, library_suffix
from fmilin.errors import ModelError
from fmilin.fmi.platforms import fmpy_folder
from fmilin.fmi.read.archive import FmuFile
from fmilin.fmi.read.description import ModelDescription
from fmilin.fmi.read.instance import Instance
from fmilin.fmi.read.xml import safe_root
from fmilin.sandbox import cage
from fmilin.sandbox.other_processes import run_program
from fmilin.sandbox.watchdog import calling


def class_of_instances(description: ModelDescription) -> type[Instance]:
    """Return the class for the description's interface in its version of the standard; no other is imported."""
    number = description.fmi_version.split(".")[0]
    if number == "3" and ("alpha" in description.fmi_version or "beta" in description.fmi_version):
        raise ModelError(
            f"'{description.source}' was made for a draft of FMI 3.0 ({description.fmi_version}), whose functions took "
            "other arguments than those of the standard, so its code is not called. Export it again as FMI 3.0 or 2.0."
        )
    is_stepped = description.interface == "CoSimulation"
    if number == "3":
        from fmilin.fmi.read.instance3 import Instance3, SteppedInstance3

        return SteppedInstance3 if is_stepped else Instance3
    from fmilin.fmi.read.early_instances import Instance1, Instance2, SteppedInstance1, SteppedInstance2

    if number == "2":
        return SteppedInstance2 if is_stepped else Instance2
    return SteppedInstance1 if is_stepped else Instance1


def unexpected_library(fmu: FmuFile, description: ModelDescription, kind: type[Instance]) -> str:
    """Return the only library for this platform, where none bears the name that the description gives; else ""."""
    if _has_library(fmu, description.model_identifier + library_suffix(), kind):
        return ""
    for folder in kind.binaries:
        paths = [PurePosixPath(path) for path in fmu.by_path if path.startswith(f"binaries/{folder}/")]
        named = [p.name for p in paths if len(p.parts) == 3 and p.suffix == library_suffix()]
        if len(named) == 1:
            return named[0]
    return ""


def _has_library(fmu: FmuFile, library: str, kind: type[Instance]) -> bool:
    return any(f"binaries/{folder}/{library}" in fmu.by_path for folder in kind.binaries)


def must_be_compiled(fmu: FmuFile, description: ModelDescription, kind: type[Instance]) -> bool:
    """Return whether the sources have to be compiled, and may be; nothing of that when a library is there."""
    library = description.model_identifier + library_suffix()
    if _has_library(fmu, library, kind) or unexpected_library(fmu, description, kind):
        return False
    if fmu.options.compile_sources and "C sources" in fmu.platforms:
        return True
    here = kind.binaries[0]
    inside = ", ".join(fmu.platforms) or "none at all"
    advice = "Ask for an export that includes this platform."
    if "C sources" in fmu.platforms:
        advice = (
            "Its sources can be compiled with this machine's compiler: say so with "
            "fmu=FmuOptions(compile_sources=True)."
        )
    elif any(folder in fmu.platforms for folder in kind.binaries):
        advice = f"The folder is there, but '{library}', the name that the model description gives, is not in it."
    raise ModelError(f"'{fmu.name}' has no library for this platform ({here}); inside are: {inside}. {advice}")


PATIENCE = 600.0  # seconds that the compiler may take
_SUFFIXES = (".c", ".cc", ".cpp", ".cxx")
_NAME = re.compile(r"[A-Za-z_]\w*(\([\w, ]*\))?")
_LIBRARY = re.compile(r"[\w.+-]+")


@dataclass
class _Plan:
    """What is compiled, all of it inside the folder of sources."""

    sources: list[Path] = field(default_factory=list)
    definitions: list[str] = field(default_factory=list)
    includes: list[Path] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)


def compile_sources(folder: Path, description: ModelDescription, binaries: str) -> str:
    """Compile an unpacked FMU's C sources to ``binaries``, writing nothing outside; return a sentence about it."""
    root = (folder / "sources").resolve()
    build = root / "buildDescription.xml"
    if build.is_file():
        plan = _from_build_description(build, root, description)
    else:
        names = [n for n in description.source_files if n.lower().endswith(_SUFFIXES)]
        plan = _Plan([_inside(root, name, description) for name in names])
    if not plan.sources:
        plan.sources = sorted(p for p in root.glob("*") if p.suffix in _SUFFIXES)
    if not plan.sources:
        raise ModelError(f"'{description.source}' has no C source files at the top of its folder 'sources'.")
    identifier = description.model_identifier
    target = folder / "binaries" / binaries / f"{identifier}{library_suffix()}"
    target.parent.mkdir(parents=True, exist_ok=True)
    command = _command(folder, plan, target)
    _run(command, folder, description.source)
    prefixed = _prefixed_functions(target, identifier) if not description.fmi_version.startswith("1") else []
    if prefixed:  # the sources name their functions as for static linking
        _run([*command, *_without_prefix(prefixed, identifier)], folder, description.source)
    return (
        f"No binary for this platform is inside: {len(plan.sources)} C source file(s) were compiled with {command[0]}."
    )


def _command(folder: Path, plan: _Plan, target: Path) -> list[str]:
    settings = [f"-D{d}" for d in plan.definitions]
    settings += [f"-I{i}" for i in (*plan.includes, folder / "sources", fmpy_folder() / "c-code")]
    cplusplus = [] if all(s.suffix == ".c" for s in plan.sources) else ["stdc++"]
    libraries = [f"-l{name}" for name in ("m", *cplusplus, *plan.libraries)]
    position = [] if sys.platform == "win32" else ["-fPIC"]
    command = [*find_compiler(), "-O2", "-w", "-shared", *position, *settings, "-o", str(target)]
    return [*command, *map(str, plan.sources), *libraries]


def _from_build_description(path: Path, root: Path, description: ModelDescription) -> _Plan:
    """Read FMI 3.0's buildDescription.xml: the configuration of this library, all its sets of files."""
    tree = safe_root(path.read_bytes(), f"sources/buildDescription.xml in '{description.source}'")
    fitting = [c for c in tree.findall("BuildConfiguration") if _fits(c, description.model_identifier)]
    if not fitting:
        raise ModelError(
            f"sources/buildDescription.xml in '{description.source}' has no configuration for the library "
            f"'{description.model_identifier}' on this platform."
        )
    plan = _Plan()
    for files in fitting[0].findall("SourceFileSet"):
        plan.sources += [_inside(root, f.get("name") or "", description) for f in files.findall("SourceFile")]
        plan.includes += [_inside(root, d.get("name") or "", description) for d in files.findall("IncludeDirectory")]
        plan.definitions += [_definition(d, description) for d in files.findall("PreprocessorDefinition")]
    for library in fitting[0].findall("Library"):
        name = library.get("name") or ""
        if library.get("external") == "true" and _LIBRARY.fullmatch(name):
            plan.libraries.append(name)
    return plan


def _fits(configuration: Any, identifier: str) -> bool:
    platform = configuration.get("platform")
    system = {"win32": "windows", "darwin": "darwin"}.get(sys.platform, "linux")
    return configuration.get("modelIdentifier") == identifier and (platform is None or platform.endswith(system))


def _definition(element: Any, description: ModelDescription) -> str:
    name, value = element.get("name") or "", element.get("value")
    if not _NAME.fullmatch(name):
        raise ModelError(f"'{description.source}' defines '{name}' for its sources, which is no name in C.")
    return name if value is None else f"{name}={value}"


def _inside(root: Path, name: str, description: ModelDescription) -> Path:
    path = (root / name.replace("\\", "/")).resolve()
    if not path.is_relative_to(root) or not path.exists():
        raise ModelError(
            f"'{description.source}' names '{name}' for compilation, which is not in its folder 'sources'. It cannot "
            f"be compiled."
        )
    return path


def _prefixed_functions(library: Path, identifier: str) -> list[str]:
    """Return the functions that bear the name of the model in front; none when the plain ones are there."""
    content = library.read_bytes()
    if re.search(rb"\0fmi[23]GetVersion\0", content):
        return []
    symbols = re.findall(rb"\0(?:" + re.escape(identifier.encode()) + rb"_)(fmi[23]\w+)(?=\0)", content)
    return sorted({name.decode() for name in symbols})


def _without_prefix(functions: Sequence[str], identifier: str) -> list[str]:
    if sys.platform == "darwin":
        return [f"-Wl,-alias,_{identifier}_{name},_{name}" for name in functions]
    return [f"-Wl,--defsym={name}={identifier}_{name}" for name in functions]


def _run(command: Sequence[str], folder: Path, source: str) -> None:
    cage.close()  # a compiler includes whatever file it is told to
    try:
        with calling("the compilation of its sources"):
            status, printed = run_program(command, folder, seconds=PATIENCE)
    except TimeoutError:
        raise ModelError(f"The sources of '{source}' were not compiled within {PATIENCE:g} s.") from None
    except OSError as error:
        raise ModelError(
            f"The C compiler '{command[0]}' cannot be started: {error.strerror or error}. Install it, or let the "
            f"environment variable CC name another one.{cage.advice()}"
        ) from None
    if status:
        lines = printed.replace(f"{folder}/", "").splitlines()
        errors = [line.strip() for line in lines if "error" in line.lower() or "undefined" in line.lower()] or lines
        raise ModelError(
            f"The sources of '{source}' cannot be compiled with '{command[0]}': {' | '.join(errors[:3])}. They may "
            f"need libraries or another compiler; ask for an export with a binary for this platform."
        )
