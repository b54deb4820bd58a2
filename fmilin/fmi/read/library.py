"""The library of an FMU: which one is loaded, what speaks to it, and how it is compiled from the sources inside.

Sources are compiled only when the user has asked for it: they are foreign code.
"""

import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from fmilin.codegen.compiler import cache_library, content_key, find_compiler, library_suffix, read_cached_library
from fmilin.errors import ModelError
from fmilin.fmi.client.linux32 import LINUX32, can_run_32_bits, missing_libraries
from fmilin.fmi.client.restrictions import MAX_PROCESSES, Limits, current_restrictions
from fmilin.fmi.client.wine import WINDOWS, WINDOWS32, find_wine, missing_wine
from fmilin.fmi.host.sandboxed_run import NOT_STARTED_STATUS, ProgramEnd, run_in_sandbox
from fmilin.fmi.platforms import Machine, fmpy_folder
from fmilin.fmi.platforms import host as this_machine
from fmilin.fmi.read.archive import FmuFile
from fmilin.fmi.read.description import ModelDescription
from fmilin.fmi.read.instance import Instance
from fmilin.fmi.read.xml import safe_root
from fmilin.support.dataclass import dataclass
from fmilin.support.files import temporary_folder


def class_of_instances(description: ModelDescription) -> type[Instance]:
    """Return the class for the description's interface in its version of the standard; no other is imported."""
    number = description.fmi_version.split(".")[0]
    if number == "3" and ("alpha" in description.fmi_version or "beta" in description.fmi_version):
        raise ModelError(
            f"'{description.source}' was made for a draft of FMI 3.0 ({description.fmi_version}), in which functions "
            "have other arguments than in the standard, so its code is not called. Export it again as FMI 3.0 or 2.0."
        )
    is_stepped = description.interface == "CoSimulation"
    if description.is_sampled and not is_stepped:
        from fmilin.fmi.read.sampled_instance import class_of_sampled_instances

        return class_of_sampled_instances(description)
    if number == "3":
        from fmilin.fmi.read.instance3 import Instance3, SteppedInstance3

        return SteppedInstance3 if is_stepped else Instance3
    from fmilin.fmi.read.early_instances import Instance1, Instance2, SteppedInstance1, SteppedInstance2

    if number == "2":
        return SteppedInstance2 if is_stepped else Instance2
    return SteppedInstance1 if is_stepped else Instance1


def explain_library(fmu: FmuFile, description: ModelDescription, machine: Machine, version: int) -> str:
    """Return the only library for a machine, where none bears the name that the description gives; else ""."""
    if _has_named_library(fmu, description, machine, version):
        return ""
    for folder in machine.folders(version):
        paths = [PurePosixPath(path) for path in fmu.by_path if path.startswith(f"binaries/{folder}/")]
        named = [p.name for p in paths if len(p.parts) == 3 and p.suffix == machine.suffix]
        if len(named) == 1:
            return named[0]
    return ""


def _has_named_library(fmu: FmuFile, description: ModelDescription, machine: Machine, version: int) -> bool:
    name = description.model_identifier + machine.suffix
    return any(f"binaries/{folder}/{name}" in fmu.by_path for folder in machine.folders(version))


def _has_library(fmu: FmuFile, description: ModelDescription, machine: Machine, version: int) -> bool:
    return _has_named_library(fmu, description, machine, version) or bool(
        explain_library(fmu, description, machine, version)
    )


def choose_machine(fmu: FmuFile, description: ModelDescription, version: int) -> tuple[Machine, bool]:
    """Return the machine of the library to load, and whether the sources have to be compiled, and may be.

    That is this machine, if the FMU has a library for it; else, on Linux, one of 32 bits, or Windows under wine.

    Raises
    ------
    ModelError
        Where there is no library that could be loaded here.
    """
    this = this_machine()
    if _has_library(fmu, description, this, version):
        return this, False
    if fmu.options.compile_sources and "C sources" in fmu.platforms:
        return this, True
    can_compile = "C sources" in fmu.platforms
    foreign = [machine for machine in _foreign_machines() if _has_library(fmu, description, machine, version)]
    runnable = [machine for machine in foreign if _can_run(machine)]
    if runnable:
        return runnable[0], False
    if foreign and not can_compile:
        raise missing_libraries(fmu.name) if foreign[0] == LINUX32 else missing_wine(fmu.name, foreign[0])
    folders = this.folders(version)
    library = description.model_identifier + this.suffix
    inside = ", ".join(fmu.platforms) or "none at all"
    advice = "Request an export for this platform."
    if "C sources" in fmu.platforms:
        advice = "Compile its sources with this machine's compiler: fmu=FmuOptions(compile_sources=True)."
    elif any(folder in fmu.platforms for folder in folders):
        advice = f"The folder exists, but lacks '{library}', the name in the model description."
    raise ModelError(f"'{fmu.name}' has no library for this platform ({folders[0]}); inside are: {inside}. {advice}")


def _foreign_machines() -> tuple[Machine, ...]:
    """Return other machines of which libraries run here in a host of their own, the first choice first."""
    return (LINUX32, WINDOWS, WINDOWS32) if this_machine() == Machine("x86_64", "linux") else ()


def _can_run(machine: Machine) -> bool:
    return can_run_32_bits() if machine == LINUX32 else find_wine(machine) is not None


MAX_COMPILE_SECONDS = 600.0  # seconds that the compiler may take
LARGEST_FILE = 1 << 30  # bytes, of the library and of all that is temporary
_VISIBLE_VARIABLES = (
    *("PATH", "LD_LIBRARY_PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "INCLUDE", "LIB"),
    *("SDKROOT", "DEVELOPER_DIR", "MACOSX_DEPLOYMENT_TARGET", "SYSTEMROOT", "PATHEXT"),
)
_REASONS = ("error", "undefined", "out of memory", "memory exhausted", "no space left", "file too large", "killed")
_SUFFIXES = (".c", ".cc", ".cpp", ".cxx")
_EXPORT_ADVICE = "Request an export with a binary for this platform."
_NAME = re.compile(r"[A-Za-z_]\w*(\([\w, ]*\))?")
_LIBRARY = re.compile(r"[\w.+-]+")


@dataclass
class _Plan:
    """A compilation: sources, definitions and libraries, all inside the folder of sources."""

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
    compiler = find_compiler()
    arguments = _arguments(folder, plan)
    name = _cache_name(folder, identifier, compiler, arguments)
    is_cached = not current_restrictions().unrestricted  # it could include files that the name does not depend on
    library = read_cached_library(name) if is_cached else None
    if library is None:
        library = _compile([*compiler, *arguments], folder, description)
        if is_cached:
            cache_library(name, library)
    target.write_bytes(library)
    return (
        f"The FMU has no binary for this platform: {len(plan.sources)} C source file(s) were compiled with "
        f"{compiler[0]}."
    )


def _cache_name(folder: Path, identifier: str, compiler: Sequence[str], arguments: Sequence[str]) -> str:
    """Return the name in the cache for all that the library depends on: all files of the sources are part of it."""
    files = {
        str(path.relative_to(root)): path.read_bytes()
        for root in (folder, fmpy_folder())
        for path in (root / ("sources" if root == folder else "c-code")).rglob("*")
        if path.is_file()
    }
    flags = [argument.replace(str(folder), ".") for argument in arguments]
    settings = [f"{name}={os.environ.get(name)}" for name in _VISIBLE_VARIABLES]
    key = content_key(files, identifier, compiler, [*flags, *settings, this_machine().fmi3_folder])
    return f"sources-{key}{library_suffix()}"


def _compile(command: Sequence[str], folder: Path, description: ModelDescription) -> bytes:
    """Compile, and again where the sources name their functions as for static linking."""
    identifier = description.model_identifier
    library = _run(command, folder, description.source)
    prefixed = [] if description.fmi_version.startswith("1") else _prefixed_functions(library, identifier)
    if prefixed:
        library = _run([*command, *_without_prefix(prefixed, identifier)], folder, description.source)
    return library


def _arguments(folder: Path, plan: _Plan) -> list[str]:
    settings = [f"-D{d}" for d in plan.definitions]
    settings += [f"-I{i}" for i in (*plan.includes, folder / "sources", fmpy_folder() / "c-code")]
    cplusplus = [] if all(s.suffix == ".c" for s in plan.sources) else ["stdc++"]
    libraries = [f"-l{name}" for name in ("m", *cplusplus, *plan.libraries)]
    position = [] if sys.platform == "win32" else ["-fPIC"]
    return ["-O2", "-w", "-shared", *position, *settings, *map(str, plan.sources), *libraries]


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
        raise ModelError(f"'{description.source}' defines '{name}' for its sources, which is not a name in C.")
    return name if value is None else f"{name}={value}"


def _inside(root: Path, name: str, description: ModelDescription) -> Path:
    path = (root / name.replace("\\", "/")).resolve()
    if not path.is_relative_to(root) or not path.exists():
        raise ModelError(
            f"'{description.source}' names '{name}' for compilation, which is not in its folder 'sources'. It cannot "
            f"be compiled."
        )
    return path


def _prefixed_functions(content: bytes, identifier: str) -> list[str]:
    """Return the functions that bear the name of the model in front; none when the plain ones are there."""
    if re.search(rb"\0fmi[23]GetVersion\0", content):
        return []
    symbols = re.findall(rb"\0(?:" + re.escape(identifier.encode()) + rb"_)(fmi[23]\w+)(?=\0)", content)
    return sorted({name.decode() for name in symbols})


def _without_prefix(functions: Sequence[str], identifier: str) -> list[str]:
    if sys.platform == "darwin":
        return [f"-Wl,-alias,_{identifier}_{name},_{name}" for name in functions]
    return [f"-Wl,--defsym={name}={identifier}_{name}" for name in functions]


def _run(command: Sequence[str], folder: Path, source: str) -> bytes:
    """Run the compiler in the sandbox of the host, since it includes whatever file the sources name.

    Files that the FMU may read are not for the compiler: the cache could not depend on them.
    """
    restrictions = current_restrictions()
    with temporary_folder() as work:
        built, scratch = work / "built", work / "scratch"
        built.mkdir()
        scratch.mkdir()
        library = built / f"library{library_suffix()}"
        program = shutil.which(command[0]) or command[0]
        limits = [
            *replace(restrictions, read=(), network=False, processes=MAX_PROCESSES).to_options(),
            *("--file-size", str(LARGEST_FILE)),
            *("--scratch", str(scratch), "--scratch-size", str(LARGEST_FILE), "--write", str(built)),
        ]
        readable = [folder / "sources", fmpy_folder() / "c-code", *_installation(Path(program).absolute())]
        options = [*limits, *(text for path in readable for text in ("--read", str(path)))]
        complete = [program, *command[1:], "-o", str(library)]
        end = run_in_sandbox(complete, options, _environment(restrictions, scratch), MAX_COMPILE_SECONDS)
        is_built = library.is_file() and not library.is_symlink()
        content = library.read_bytes() if is_built else b""
    _check_end(end, command[0], folder, source)
    if not content:
        raise ModelError(
            f"The C compiler '{command[0]}' ended without an error, but wrote no library of '{source}'. "
            f"{_EXPORT_ADVICE}"
        )
    return content


def _check_end(end: ProgramEnd, compiler: str, folder: Path, source: str) -> None:
    if end.stopped == "time":
        raise ModelError(
            f"The sources of '{source}' were not compiled within the limit of {MAX_COMPILE_SECONDS:g} s. "
            f"{_EXPORT_ADVICE}"
        )
    if end.stopped == "output":
        raise ModelError(
            f"The C compiler '{compiler}' printed more than a megabyte about the sources of '{source}' and was "
            f"stopped. {_EXPORT_ADVICE}"
        )
    if end.status == NOT_STARTED_STATUS:
        raise ModelError(
            f"The C compiler '{compiler}' cannot be started: {' '.join(end.printed.split())}. Install it, or let "
            "the environment variable CC name another one."
        )
    if end.status:
        lines = end.printed.replace(f"{folder}/", "").splitlines()
        errors = [line.strip() for line in lines if any(reason in line.lower() for reason in _REASONS)] or lines
        raise ModelError(
            f"The sources of '{source}' cannot be compiled with '{compiler}': "
            f"{' | '.join(errors[:3]) or f'it ends with status {end.status}'}. They may need libraries or another "
            "compiler; request an export with a binary for this platform."
        )


def _installation(program: Path) -> list[Path]:
    """Return what a compiler reads of its own: the folder above its ``bin``, unless files of the user lie in it."""
    home, readable = Path(os.path.expanduser("~")), []  # noqa: PTH111 - Path.home() fails where there is none
    for path in dict.fromkeys((program, program.resolve())):
        folder = path.parent.parent if path.parent.name == "bin" else path.parent
        is_private = folder == Path(folder.anchor) or home.is_relative_to(folder)
        readable.append(path if is_private else folder)
    return readable


def _environment(restrictions: Limits, scratch: Path) -> dict[str, str]:
    visible = {name: os.environ[name] for name in _VISIBLE_VARIABLES if name in os.environ}
    temporary = dict.fromkeys(("TMPDIR", "TMP", "TEMP", "ZIG_LOCAL_CACHE_DIR", "ZIG_GLOBAL_CACHE_DIR"), str(scratch))
    return {**restrictions.to_environment(), **visible, **temporary, "LC_ALL": "C", "CCACHE_DISABLE": "1"}
