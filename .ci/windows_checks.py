"""What .ci/windows runs: .ci/windows_checks.py prepare|check FOLDER.

``prepare`` writes FMUs for Linux and Windows, and what fmilin computes from them on Linux. ``check`` runs on Windows,
computes the same from them, and has FMUs crash, hang and take memory.
"""

import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import fmilin as fl

TOLERANCE = 1e-12
PLATFORMS = ("linux64", "win64")
MODELS = ("four_bar", "four_bar_linear", "pendulum", "prints")
BROKEN = {  # FMU: what the error says on Windows
    "crashes": "crashed (0xC0000005: access violation)",
    "aborts": "ended the whole process by itself (exit status 3)",
    "exits": "ended the whole process by itself",
    "overflows_the_stack": "crashed (0xC00000FD: stack overflow)",
    "hangs": "did not return from",
}
HANGS_WHEN_LOADED = "hangs_when_loaded"
SYNCHRONIZE, PROCESS_TERMINATE = 0x00100000, 1  # rights to wait for a process and to end it
GREEDY = "takes_a_gibibyte"
OUT_OF_MEMORY = "It used nearly all of its memory limit"
GREEDY_SOURCE = """
#include <stdlib.h>
#include <string.h>
#define ON_GET_DERIVATIVES for (int k = 0; k < 64; k++) memset(malloc(1 << 24), 1, 1 << 24);
#include "spring.h"
"""
STARTS = "starts_a_program"
STARTS_SOURCE = """
#include <stdlib.h>
#ifdef _WIN32
#include <process.h>
#define ON_GET_DERIVATIVES if (_spawnlp(_P_WAIT, "cmd.exe", "cmd.exe", "/c", "exit", NULL) != -1) abort();
#endif
#include "spring.h"
"""
SOURCES = {GREEDY: GREEDY_SOURCE, STARTS: STARTS_SOURCE}


def jacobians(linear: fl.LinearModel) -> dict[str, list[list[float]]]:
    """Return A, B, C and D."""
    return {name: np.asarray(getattr(linear, name)).tolist() for name in "ABCD"}


def compute(folder: Path) -> dict[str, dict[str, list[list[float]]]]:
    """Linearize all models that work."""
    results = {}
    for name in MODELS:
        with fl.load(folder / f"{name}.fmu") as model:
            results[name] = jacobians(fl.linearize(model))
    return results


def sweep(folder: Path, jobs: int) -> list[float]:
    """Return the entries of A of a pendulum for several lengths."""
    family = fl.sweep(folder / "pendulum.fmu", {"L": [0.5, 1.0, 1.5, 2.0]}, settings={}, jobs=jobs)
    return np.asarray(family.A).ravel().tolist()


def prepare(folder: Path) -> None:
    """Write the FMUs, and results.json."""
    import ziglang  # noqa: F401 - without it there is nothing to try

    from fmilin.fmi.write import build_fmu
    from fmilin.systems import four_bar

    build_fmu(four_bar(), folder / "four_bar.fmu", platforms=PLATFORMS)
    linear = folder / "four_bar_linear.fmu"
    command = ["linearize", str(folder / "four_bar.fmu"), "-o", str(linear), "--platforms", ",".join(PLATFORMS)]
    subprocess.run([sys.executable, "-m", "fmilin", *command], check=True, stdout=subprocess.DEVNULL)
    compile_fmus(folder)
    results = {"models": compute(folder), "sweep": sweep(folder, 1)}
    (folder / "results.json").write_text(json.dumps(results), "utf-8")


def windows_compiler() -> list[str]:
    """Return MinGW-w64, else zig."""
    name = "x86_64-w64-mingw32-gcc"
    return (
        [name, "-static-libgcc"]
        if shutil.which(name)
        else [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu"]
    )


def compile_fmus(folder: Path) -> None:
    """Compile the FMUs of tests/fmus for both systems."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import fmpy

    from tests.fmus import make

    headers = Path(fmpy.__file__).parent / "c-code"
    for name, text in SOURCES.items():
        (folder / f"{name}.c").write_text(text)
    for name in ("pendulum", "prints", HANGS_WHEN_LOADED, *BROKEN, *SOURCES):
        source = (folder if name in SOURCES else make.HERE) / f"{name}.c"
        description = (
            make.description_of("crashes").replace("crashes", name) if name in SOURCES else make.description_of(name)
        )
        members: dict[str, bytes | str] = {"modelDescription.xml": description}
        for platform, compiler, suffix in (("linux64", ["cc", "-fPIC"], "so"), ("win64", windows_compiler(), "dll")):
            library = folder / f"{name}.{suffix}"
            command = [*compiler, "-shared", "-O1", "-w", "-s", f"-I{headers}", f"-I{make.HERE}", "-o", str(library)]
            subprocess.run([*command, str(source), "-lm"], check=True)
            members[f"binaries/{platform}/{library.name}"] = library.read_bytes()
        make.pack(folder / f"{name}.fmu", members)


failures: list[str] = []


def report(name: str, problem: str) -> None:
    """Print a line for what was checked."""
    print(f"{'FAILED' if problem else 'ok':8}{name}{': ' if problem else ''}{problem}", flush=True)
    if problem:
        failures.append(name)


def attempt(name: str, action: Callable[[], str]) -> None:
    """Run a check, which returns what is wrong."""
    begin = time.monotonic()
    try:
        problem = action()
    except Exception as error:  # noqa: BLE001 - whatever it is, the check has failed
        problem = f"{type(error).__name__}: {error}"
    report(f"{name} ({time.monotonic() - begin:.1f} s)", problem)


def compare(name: str, actual: object, expected: object) -> str:
    """Return by how much numbers differ, nothing if they agree."""
    difference = float(np.max(np.abs(np.asarray(actual) - np.asarray(expected)), initial=0.0))
    return "" if difference <= TOLERANCE else f"{name} differs by {difference:.3g}"


def compare_models(folder: Path, expected: dict[str, dict[str, object]]) -> str:
    """Linearize the FMUs and compare."""
    actual = compute(folder)
    texts = [compare(f"{m}.{name}", value, expected[m][name]) for m in MODELS for name, value in actual[m].items()]
    return "; ".join(filter(None, texts))


def linearize_broken(folder: Path, name: str, limits: fl.Limits) -> str:
    """Return what is wrong with the error that an FMU ends in."""
    try:
        with fl.load(folder / f"{name}.fmu", limits=limits) as model:
            fl.linearize(model)
    except fl.errors.ModelCrashError as error:
        return "" if {**BROKEN, GREEDY: OUT_OF_MEMORY}[name] in str(error) else f"another error: {error}"
    return "it ended without an error"


def run_command(folder: Path) -> str:
    """Linearize from the command line, into a file that is read again."""
    target = folder / "by_command.mat"
    command = [sys.executable, "-m", "fmilin", "linearize", str(folder / "four_bar.fmu"), "-o", str(target)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"exit status {done.returncode}: {done.stderr[-500:]}"
    expected = json.loads((folder / "results.json").read_text("utf-8"))["models"]["four_bar"]
    return compare("A", fl.LinearModel.load(target).A, expected["A"])


def check_printed_lines(folder: Path) -> str:
    """Return what is wrong with the lines that an FMU prints."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("fmilin.fmu").addHandler(handler)
    with fl.load(folder / "prints.fmu") as model:
        fl.linearize(model)
    return "" if lines else "nothing was printed"


PRINTS_MODEL = "import fmilin as fl; print(fl.linearize(fl.systems.four_bar()))"
PRINTED_ENCODING = "cp1252"  # of files and pipes on a Windows for Western Europe


def print_into_file(folder: Path) -> str:
    """Return what is wrong with a linear model that is printed into a file."""
    target = folder / "printed.txt"
    with target.open("wb") as file:
        command = [sys.executable, "-c", PRINTS_MODEL]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        return f"exit status {done.returncode}: {done.stderr[-500:]!r}"
    text = target.read_bytes().decode(PRINTED_ENCODING)
    return "" if "\xb12.1476766 i" in text and "?" not in text else f"the text is {text[:500]!r}"


def export_models(folder: Path) -> str:
    """Save a linear model in all formats that need no compiler, in a folder with a space and an umlaut; read some."""
    target = folder / "Ordner \xfc"
    target.mkdir(exist_ok=True)
    linear = fl.linearize(fl.systems.four_bar())
    for suffix in (".mat", ".json", ".npz", ".m", ".c", ".mo", ".tex", ".txt"):
        linear.save(target / f"linear_model{suffix}")
    texts = [
        compare(suffix, fl.LinearModel.load(target / f"linear_model{suffix}").A, linear.A)
        for suffix in (".mat", ".json", ".npz")
    ]
    return "; ".join(filter(None, texts))


def load_from_elsewhere(folder: Path) -> str:
    """Load an FMU whose path has a space and an umlaut, is relative, or has slashes."""
    target = folder / "Ordner \xfc" / "model \xf6.fmu"
    target.parent.mkdir(exist_ok=True)
    target.write_bytes((folder / "pendulum.fmu").read_bytes())
    before = Path.cwd()
    os.chdir(target.parent)
    try:
        models = [jacobians(fl.linearize(fl.load(path))) for path in (target, target.name, target.as_posix())]
    finally:
        os.chdir(before)
    expected = json.loads((folder / "results.json").read_text("utf-8"))["models"]["pendulum"]
    return "; ".join(filter(None, [compare("A", model["A"], expected["A"]) for model in models]))


def start_program(folder: Path) -> str:
    """Return what is wrong where an FMU tries to start a program, which fails under its limit of processes."""
    with fl.load(folder / f"{STARTS}.fmu") as model:
        fl.linearize(model)
    return ""


HANGING_CLIENT = """
import sys
from pathlib import Path
from fmilin.fmi.client.arena import Arena
from fmilin.fmi.client.process import HostProcess
host = HostProcess(Arena(1 << 20), "it", lambda *_: None, seconds=600.0)
print(host.process_id, flush=True)
host.open_library(Path(sys.argv[1]), 2, stepped=False)
"""


def kill_client(folder: Path) -> str:
    """Return what is wrong with the host's end when the Python that uses it is killed during a call of the FMU."""
    if sys.platform != "win32":
        return "this is a check for Windows"
    import _winapi

    command = [sys.executable, "-c", HANGING_CLIENT, str(folder / f"{HANGS_WHEN_LOADED}.dll")]
    client = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    number = int(client.stdout.readline() if client.stdout else "")
    host = _winapi.OpenProcess(SYNCHRONIZE | PROCESS_TERMINATE, False, number)  # noqa: FBT003 - a function of Windows
    time.sleep(5.0)  # until the library is being loaded
    if client.poll() is not None or _winapi.WaitForSingleObject(host, 0) == _winapi.WAIT_OBJECT_0:
        return "the library did not hang"
    client.kill()
    has_ended = _winapi.WaitForSingleObject(host, 20_000) == _winapi.WAIT_OBJECT_0
    if has_ended:
        return ""
    _winapi.TerminateProcess(host, 1)
    return "the host goes on"


def check(folder: Path) -> None:
    """Run all checks; exit with status 1 if one fails."""
    print(f"Python {sys.version.split()[0]} on {sys.platform}, fmilin {fl.__version__}", flush=True)
    expected = json.loads((folder / "results.json").read_text("utf-8"))
    attempt("FMUs give what they give on Linux", lambda: compare_models(folder, expected["models"]))
    attempt("what an FMU prints is logged", lambda: check_printed_lines(folder))
    limits = (fl.Limits(), fl.Limits(seconds=10.0))
    for name in BROKEN:
        attempt(f"{name} ends in an error", lambda name=name: linearize_broken(folder, name, limits[name == "hangs"]))
    attempt("the host ends with its client", lambda: kill_client(folder))
    attempt("a sweep with two jobs", lambda: compare("A", sweep(folder, 2), expected["sweep"]))
    attempt("the command line", lambda: run_command(folder))
    attempt("a linear model is printed into a file", lambda: print_into_file(folder))
    attempt("linear models are exported and read", lambda: export_models(folder))
    attempt("FMUs in folders with spaces and umlauts", lambda: load_from_elsewhere(folder))
    small = fl.Limits(seconds=60.0, memory=2**28)
    if problem := linearize_broken(folder, GREEDY, small):
        print("NOT RUN the limit of memory: wine 8 does not apply that of a job object, which Windows does:", problem)
    else:
        report("a limit of memory ends in an error", "")
    try:
        report("an FMU starts no program", start_program(folder))
    except fl.errors.ModelCrashError as error:
        print("NOT RUN the limit of processes: wine 8 does not apply that of a job object, which Windows does:", error)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    {"prepare": prepare, "check": check}[sys.argv[1]](Path(sys.argv[2]).absolute())
