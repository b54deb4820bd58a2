"""The probe that applies the sandbox of the FMU host to itself and tries one thing: compiled once, and run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fmilin.codegen.compiler import find_compiler
from fmilin.fmi.sandbox_protections import HostSandbox, read_sandbox_report
from tests.shared import shared

__all__ = ["HOST", "NOBODY", "WARNINGS", "Answer", "Workplace", "compile_probe", "workplace"]

HOST = Path(__file__).parents[2] / "fmilin" / "fmi" / "host"
NOBODY = 65534
WARNINGS = ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
_PROBE = Path(__file__).parent / "sandbox_probe.c"


def compile_probe(compiler: Sequence[str], path: Path) -> None:
    """Compile the sandbox and the probe without a warning."""
    sources = [_PROBE, *sorted(HOST.glob("sandbox*.c")), HOST / "run_command.c"]
    command = [*compiler, "-O1", *WARNINGS, f"-I{HOST}", *map(str, sources), "-o", str(path), "-ldl", "-lpthread"]
    subprocess.run(command, check=True)


@dataclass(frozen=True)
class Answer:
    """What became of one attempt."""

    status: int  # 0: refused, 1: it got through, negative: a signal
    report: HostSandbox
    text: str  # what else was written

    @property
    def was_refused(self) -> bool:
        """Whether it did not get through; a call by other numbers ends the process."""
        return self.status == 0 or self.status == -31


@dataclass(frozen=True)
class Workplace:
    """A user with a home, a scratch folder and the probe."""

    folder: Path
    user: int | None  # None: the one who runs the tests

    @property
    def home(self) -> Path:
        """Where files lie that are not to be reached."""
        return self.folder / "home"

    @property
    def scratch(self) -> Path:
        """The folder that may be written to."""
        return self.folder / "scratch"

    def command(
        self, attempt: str, argument: str = "", options: Sequence[str] = (), hidden: Sequence[int] = ()
    ) -> list[str]:
        """Return the command of one attempt."""
        hiding = [text for number in hidden for text in ("--hide-call", str(number))]
        scratch = ["--scratch", str(self.scratch)]
        return [str(self.folder / "probe"), *hiding, *scratch, *options, "--", attempt, argument]

    def run(self, command: Sequence[str], **options: object) -> subprocess.CompletedProcess[str]:
        """Run a command as this user."""
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            command, capture_output=True, text=True, timeout=60, check=False, cwd="/", **self.identity(), **options
        )

    def identity(self) -> dict[str, object]:
        """Return what makes subprocess run something as this user."""
        return {} if self.user is None else {"user": self.user, "group": self.user, "extra_groups": []}

    def attempt(
        self, attempt: str, argument: str = "", options: Sequence[str] = (), hidden: Sequence[int] = ()
    ) -> Answer:
        """Try something in the sandbox."""
        done = self.run(self.command(attempt, argument, options, hidden))
        assert done.returncode in (0, 1) or done.returncode < 0, done.stdout + done.stderr
        lines = done.stdout.splitlines()
        return Answer(
            done.returncode,
            read_sandbox_report("\n".join(line for line in lines if re.match(r"[a-z-]+=", line))),
            "\n".join(line for line in lines if not re.match(r"[a-z-]+=", line)),
        )


@contextmanager
def workplace(user: int | None) -> Iterator[Workplace]:
    """Make folders that this user, too, can reach, and remove them."""
    built = shared("sandbox_probe", lambda path: compile_probe(find_compiler(), path))
    with tempfile.TemporaryDirectory(prefix="fmilin-probe-", dir="/tmp") as name:
        place = Workplace(Path(name), user)
        place.folder.chmod(0o755)
        shutil.copy(built, place.folder / "probe")
        for folder in (place.home, place.scratch):
            folder.mkdir()
        (place.home / "secret.txt").write_text("a secret")
        (place.home / "link").symlink_to("/etc")
        if user is not None:
            for path in (place.home, place.scratch, *place.home.iterdir()):
                os.chown(path, user, user, follow_symlinks=False)
        yield place
