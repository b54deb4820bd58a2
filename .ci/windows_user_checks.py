"""What .ci/windows runs about paths, consoles and Ctrl-C on Windows: .ci/windows_user_checks.py FOLDER.

The folder holds the FMUs that ``windows_checks.py prepare`` has written there.
"""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # which the Python for Windows does not do

import windows_checks as base

import fmilin as fl
from fmilin.cli.main import main

LONG_PATH_CHARACTERS = 300  # Windows without its setting for long paths, and old programs, end at 260
MODEL = b"import fmilin as fl\r\n\r\ndef plant():\r\n    return fl.systems.four_bar()\r\n"
MECHANISM = """\
name = "pendulum"
gravity = [0, -9.81, 0]

[[body]]
name = "rod"
mass = 2.0
center = [0, -0.5, 0]
inertia = [0.1667, 0, 0.1667]

[[joint]]
name = "swing"
type = "revolute"
parent = "ground"
child = "rod"
"""
TABLE_COMMAND = ("linearize", "fmilin.systems:four_bar")
SECONDS_UNTIL_INTERRUPT = 20.0  # enough for imports: the call of the FMU has begun
PATIENCE_SECONDS = 60.0  # of the time limit of the call, which is 120 s
INTERRUPTED = """
import signal, sys, threading, time
import fmilin as fl
fl.linearize(fl.systems.cartesian_pendulum())
threading.Timer(float(sys.argv[2]), signal.raise_signal, [signal.SIGINT]).start()
begin = time.monotonic()
try:
    fl.load(sys.argv[1])  # which hangs in its initialization
except KeyboardInterrupt:
    print(time.monotonic() - begin)
    sys.exit(130)
"""


def run(*arguments: str) -> tuple[int, str]:
    """Run the command line in this process; return its status and what it says."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        status = main(list(arguments))
    return status, said.getvalue()


def use_long_paths(folder: Path) -> str:
    """Load an FMU from a path that is too long for old programs, and write results beside it."""
    place = folder
    while len(str(place)) < LONG_PATH_CHARACTERS:
        place /= "a folder with a long name"
    place.mkdir(parents=True, exist_ok=True)
    fmu = place / "model.fmu"
    fmu.write_bytes((folder / "pendulum.fmu").read_bytes())
    with fl.load(fmu) as model:
        linear = fl.linearize(model)
    for suffix in (".mat", ".json", ".m"):
        linear.save(place / f"linear{suffix}")
    loaded = {suffix: fl.LinearModel.load(place / f"linear{suffix}") for suffix in (".mat", ".json")}
    texts = [base.compare(suffix, copy.A, linear.A) for suffix, copy in loaded.items()]
    status, said = run("linearize", str(fmu), "-o", str(place / "by_command.mat"))
    return "; ".join(filter(None, [*texts, said if status else ""]))


def name_models_on_drives(folder: Path) -> str:
    r"""Name models as ``C:\folder\model.py:name``, with slashes, and relative to a drive."""
    place = folder / "Ordner \xfc"
    place.mkdir(exist_ok=True)
    file = place / "my model.py"
    file.write_bytes(MODEL)
    os.chdir(folder)
    drive, rest = os.path.splitdrive(str(folder))
    sources = (f"{file}:plant", f"{file.as_posix()}:plant", f"{drive}pendulum.fmu", f"{rest}\\pendulum.fmu")
    answers = [run("info", source) for source in sources]
    return "; ".join(f"{source}: {said}" for source, (status, said) in zip(sources, answers, strict=True) if status)


def protect_models_on_drives(folder: Path) -> str:
    """Write a result to the file of the model that is read, which is an error."""
    file = folder / "Ordner \xfc" / "my model.py"
    file.write_bytes(MODEL)
    status, said = run("linearize", f"{file}:plant", "-o", f"{file}")
    return "" if status and file.read_bytes() == MODEL else f"status {status}: {said}"


def quote_backslashes(folder: Path) -> str:
    """Name a file that does not exist: the message has its path with single backslashes."""
    path = folder / "new" / "table.fmu"
    status, said = run("linearize", str(path))
    return "" if status and str(path) in said else said


def keep_read_only_files(folder: Path) -> str:
    """Write to a file that is read-only, which is an error, and load such an FMU."""
    target = folder / "read_only.mat"
    if target.exists():
        target.chmod(0o600)
    target.write_bytes(b"old")
    target.chmod(0o400)
    status, said = run(*TABLE_COMMAND, "-o", str(target))
    if not status or target.read_bytes() != b"old" or "is not writable" not in said:
        return f"status {status}: {said}"
    fmu = folder / "read_only.fmu"
    if not fmu.exists():
        fmu.write_bytes((folder / "pendulum.fmu").read_bytes())
        fmu.chmod(0o400)
    status, said = run("linearize", str(fmu))
    return said if status else ""


def read_line_ends(folder: Path) -> str:
    """Read a mechanism with the line ends of Windows."""
    outcomes = []
    for name, ends in (("unix", "\n"), ("windows", "\r\n")):
        file = folder / f"pendulum_{name}.toml"
        file.write_bytes(MECHANISM.replace("\n", ends).encode())
        with fl.load(file) as model:
            outcomes.append(fl.linearize(model, fl.operating_point(model)).A)
    return base.compare("A", *outcomes)


def print_tables(_: Path) -> str:
    """Print tables to consoles of Western Europe and in ASCII."""
    problems = []
    for encoding in ("cp1252", "ascii"):
        environment = {**os.environ, "PYTHONIOENCODING": encoding}
        command = [sys.executable, "-m", "fmilin", *TABLE_COMMAND]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False)
        text = done.stdout.decode(encoding, "replace")
        is_legible = "-----" in text
        if done.returncode or not is_legible or "?" in text or "\ufffd" in text:
            problems.append(f"{encoding}: status {done.returncode}, {text[:300]!r} {done.stderr[-300:]!r}")
    return "; ".join(problems)


def interrupt(folder: Path) -> str:
    """Raise SIGINT, as Ctrl-C does, during a call that hangs: it ends at once."""
    command = [sys.executable, "-c", INTERRUPTED, str(folder / "hangs.fmu"), str(SECONDS_UNTIL_INTERRUPT)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 130:
        return f"status {done.returncode}: {done.stderr[-500:]}"
    seconds = float(done.stdout.split()[-1])
    return "" if SECONDS_UNTIL_INTERRUPT <= seconds + 1.0 < PATIENCE_SECONDS else f"it took {seconds:.0f} s"


CHECKS = {
    "paths of more than 260 characters": use_long_paths,
    "models on drives": name_models_on_drives,
    "the model that is read is not replaced": protect_models_on_drives,
    "backslashes in messages": quote_backslashes,
    "files that are read-only": keep_read_only_files,
    "line ends of Windows": read_line_ends,
    "tables in consoles of Windows": print_tables,
    "an interrupt during a call of an FMU": interrupt,
}

if __name__ == "__main__":
    for title, function in CHECKS.items():
        base.attempt(title, lambda function=function: function(Path(sys.argv[1]).absolute()))
    sys.exit(1 if base.failures else 0)
