"""The sandbox of the FMU host: what code of an FMU tries is refused where the kernel offers a protection against it."""

from __future__ import annotations

import os
import platform
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import psutil
import pytest

from fmilin.fmi.sandbox_protections import Protection, read_sandbox_report
from tests.fmi_host.probe import NOBODY, Workplace, workplace

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the probe tries what Linux offers")

FILES, SYSTEM_CALLS, PROCESSES = ("root", "landlock-files"), ("system-calls",), ("no-new-processes",)
OTHERS = ("system-calls", "processes-hidden", "landlock-scope")
ATTEMPTS = [
    ("read", "{home}/secret.txt", FILES),
    ("read", "/etc/shadow", FILES),
    ("read", "/etc/passwd", FILES),
    ("read", "/proc/net/tcp", FILES),
    ("read", "/proc/keys", FILES),
    ("read", "/proc/cmdline", FILES),
    ("read", "/proc/version", FILES),
    ("write", "{home}/new", FILES),
    ("write", "/tmp/fmilin-probe-was-here", FILES),
    ("write", "/dev/shm/fmilin-probe-was-here", FILES),
    ("make-folder", "{home}/new", FILES),
    ("delete", "{home}/secret.txt", FILES),
    ("empty", "{home}/secret.txt", FILES),
    ("list", "{home}", FILES),
    ("list", "/", FILES[1:]),
    ("stat", "{home}/secret.txt", ("root",)),
    ("readlink", "{home}/link", ("root",)),
    ("attributes", "{home}/secret.txt", ("root",)),
    ("stat", "/proc/keys", ("proc",)),
    ("change-mode", "{home}/secret.txt", (*SYSTEM_CALLS, "root")),
    ("load-library", "{home}/secret.txt", FILES),
    ("find-descriptor", "", ("descriptors",)),
    ("socket", "", SYSTEM_CALLS),
    ("connect", "{port}", (*SYSTEM_CALLS, "network", "landlock-network")),
    ("connect-unix", "{socket}", (*SYSTEM_CALLS, "root")),
    ("send-unix", "{datagrams}", (*SYSTEM_CALLS, "root")),
    ("fork", "", PROCESSES),
    ("vfork", "", PROCESSES),
    ("clone", "", PROCESSES),
    ("clone3", "", PROCESSES),
    ("system", "", PROCESSES),
    ("fork-bomb", "10", PROCESSES),
    ("execute", "/bin/true", PROCESSES),
    ("leave-process", "fmilin-stayer", PROCESSES),
    ("trace-client", "", OTHERS),
    ("trace-first-process", "", OTHERS),
    ("kill-client", "", OTHERS),
    ("stop-client", "", OTHERS),
    ("kill-first-process", "", OTHERS),
    ("kill-all", "", OTHERS),
    ("queue-signal", "", OTHERS),
    ("open-process", "", SYSTEM_CALLS),
    ("read-memory", "", SYSTEM_CALLS),
    ("own-signals", "", SYSTEM_CALLS),
    ("ask-limits", "", SYSTEM_CALLS),
    ("lower-priority", "", SYSTEM_CALLS),
    ("change-scheduling", "", SYSTEM_CALLS),
    ("bind-client-to-processor", "", (*SYSTEM_CALLS, "processes-hidden")),
    ("see-processes", "", ("proc", "landlock-files")),
    ("survive-parent", "", SYSTEM_CALLS),
    ("type-into-terminal", "", SYSTEM_CALLS),
    ("select-on-console", "", SYSTEM_CALLS),
    ("control-file", "/usr/bin", SYSTEM_CALLS),
    ("send-descriptor", "", SYSTEM_CALLS),
    ("open-descriptors", "10000", ("files",)),
    ("start-threads", "5000", ("threads",)),
    ("mount", "{scratch}", SYSTEM_CALLS),
    ("make-namespace", "", SYSTEM_CALLS),
    ("start-in-namespace", "", SYSTEM_CALLS),
    ("enter-namespace", "", SYSTEM_CALLS),
    ("change-root", "", SYSTEM_CALLS),
    ("become-another", "", ("no-new-privileges", "capabilities")),
    ("io-uring", "", SYSTEM_CALLS),
    ("bpf", "", SYSTEM_CALLS),
    ("perf", "", SYSTEM_CALLS),
    ("keys", "", SYSTEM_CALLS),
    ("userfaultfd", "", SYSTEM_CALLS),
    ("memfd", "", SYSTEM_CALLS),
    ("shmget", "", SYSTEM_CALLS),
    ("msgget", "", SYSTEM_CALLS),
    ("semget", "", SYSTEM_CALLS),
    ("kexec", "", SYSTEM_CALLS),
    ("change-personality", "", SYSTEM_CALLS),
    ("unknown-call", "", SYSTEM_CALLS),
    ("other-numbers", "", SYSTEM_CALLS),
    ("x32", "", SYSTEM_CALLS),
    ("ask-host-name", "{name}", ("host-name",)),
]  # fmt: skip
BOUNDS = [
    ("allocate", "4", "memory"),
    ("map-page-tables", "500", "memory"),
    ("fill-sockets", "500", "files"),
    ("write-large-file", "{scratch}/large", "file-size"),
    ("write-gigabytes", "{scratch}/full 10", "file-size"),
]
PASSING = [
    ("nothing", ""),
    ("write", "{scratch}/own"),
    ("stat", "/usr"),
    ("load-library", "libz.so.1"),
    ("start-threads", "50"),
    ("kill-itself", ""),
    ("use-pair", ""),
    ("ask-personality", ""),
    ("read", "/dev/urandom"),
    ("read", "/proc/self/maps"),
]
USERS = [pytest.param(NOBODY if os.geteuid() == 0 else None, id="user")]
USERS += [pytest.param(None, id="administrator")] if os.geteuid() == 0 else []
UNSHARE = {"x86_64": 272, "aarch64": 97}.get(platform.machine(), 0)
MOUNT = {"x86_64": 165, "aarch64": 40}.get(platform.machine(), 0)
SECCOMP = {"x86_64": 317, "aarch64": 277}.get(platform.machine(), 0)
LANDLOCK, MOUNT_SETATTR, CLOSE_RANGE = 444, 442, 436


@pytest.fixture(scope="module", params=USERS)
def place(request: pytest.FixtureRequest) -> Iterator[Workplace]:
    with workplace(request.param) as made:
        yield made


@pytest.fixture(scope="module")
def targets(place: Workplace) -> Iterator[dict[str, str]]:
    """Return what attempts aim at, with sockets that are listened to."""
    named, datagrams = place.home / "socket", place.home / "datagrams"
    with (
        socket.socket() as tcp,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as packets,
    ):
        tcp.bind(("127.0.0.1", 0))
        unix.bind(str(named))
        packets.bind(str(datagrams))
        tcp.listen()
        unix.listen()
        for path in (named, datagrams):
            path.chmod(0o777)
        yield {
            "home": str(place.home),
            "scratch": str(place.scratch),
            "port": str(tcp.getsockname()[1]),
            "socket": str(named),
            "datagrams": str(datagrams),
            "name": socket.gethostname(),
        }


@pytest.mark.parametrize(("attempt", "argument", "protections"), ATTEMPTS, ids=str)
def test_attempts_are_refused_where_a_protection_is_active(
    place: Workplace, targets: dict[str, str], attempt: str, argument: str, protections: tuple[str, ...]
) -> None:
    answer = place.attempt(attempt, argument.format(**targets))
    if any(map(answer.report.is_active, protections)):
        assert answer.was_refused, answer
    else:
        assert set(protections) & set(answer.report.missing)


@pytest.mark.parametrize(("attempt", "argument", "protection"), BOUNDS)
def test_what_is_taken_is_bounded(
    place: Workplace, targets: dict[str, str], attempt: str, argument: str, protection: str
) -> None:
    limits = ("--memory", str(2 << 30), "--file-size", str(100 << 20))
    answer = place.attempt(attempt, argument.format(**targets), limits)
    assert answer.report.is_active(protection)
    assert answer.was_refused, answer


def test_page_tables_are_a_512th_of_the_address_space_and_sockets_what_256_descriptors_hold(place: Workplace) -> None:
    limits = ("--memory", str(2 << 30))
    tables = place.attempt("map-page-tables", "500", limits).text.split()
    sockets = place.attempt("fill-sockets", "500", limits).text.split()
    assert tables[1] == sockets[1] == "KiB"
    assert 3000 < int(tables[0]) <= (2 << 30) // 512 // 1024
    assert int(sockets[0]) < 256 * 512


@pytest.mark.parametrize(("attempt", "argument"), PASSING)
def test_what_fmus_need_passes(place: Workplace, targets: dict[str, str], attempt: str, argument: str) -> None:
    assert place.attempt(attempt, argument.format(**targets), ("--memory", str(2 << 30))).status == 1


def test_all_that_is_written_to_scratch_is_bounded_and_stays_in_memory(place: Workplace) -> None:
    answer = place.attempt("write-gigabytes", f"{place.scratch}/full 1", ("--scratch-size", str(10 << 20)))
    if answer.report.is_active("scratch-size"):
        assert answer.was_refused
        assert not any(place.scratch.iterdir())


def test_allowed_paths_are_read_and_written_also_through_links(place: Workplace) -> None:
    link = place.folder / "link-home"
    link.symlink_to(place.home)
    try:
        for path in (place.home, link):
            secret = f"{path}/secret.txt"
            reading, writing = ("--read", str(path)), ("--write", str(path))
            assert place.attempt("read", secret, reading).status == 1
            assert place.attempt("write", secret, reading).was_refused
            assert place.attempt("write", secret, writing).status == 1
        assert place.attempt("read", f"{place.home}/secret.txt", ("--read", str(link))).status == 1
        assert place.attempt("read", f"{place.home}/secret.txt", ("--read", f"{place.home}/../home")).status == 1
    finally:
        link.unlink()


def test_network_is_reached_when_it_is_allowed(place: Workplace, targets: dict[str, str]) -> None:
    answer = place.attempt("connect", targets["port"], ("--network",))
    assert answer.status == 1
    assert not {"network", "landlock-network"} & {p.name for p in answer.report.protections if p.state != "off"}


def test_without_restrictions_files_and_processes_are_those_of_the_user(place: Workplace) -> None:
    free = ("--no-restrictions", "--memory", str(2 << 30))
    assert place.attempt("read", f"{place.home}/secret.txt", free).status == 1
    assert place.attempt("system", "", free).status == 1
    assert place.attempt("allocate", "4", free).was_refused


# --- Kernels and containers that lack something.


@pytest.mark.parametrize(
    ("hidden", "missing", "attempt", "argument"),
    [
        (LANDLOCK, "landlock-files", "read", "{home}/secret.txt"),
        (UNSHARE, "root", "read", "{home}/secret.txt"),
        (UNSHARE, "processes-hidden", "kill-client", ""),
        (UNSHARE, "processes-hidden", "bind-client-to-processor", ""),
        (UNSHARE, "network", "connect", "{port}"),
        (MOUNT, "root", "read", "{home}/secret.txt"),
        (MOUNT_SETATTR, "root", "write", "/usr/fmilin-probe-was-here"),
        (SECCOMP, "system-calls", "kill-client", ""),
        (SECCOMP, "system-calls", "connect", "{port}"),
    ],
)
def test_a_protection_that_is_missing_is_reported_and_the_others_hold(
    place: Workplace, targets: dict[str, str], hidden: int, missing: str, attempt: str, argument: str
) -> None:
    answer = place.attempt(attempt, argument.format(**targets), hidden=(hidden,))
    assert missing in answer.report.missing
    assert answer.was_refused


@pytest.mark.parametrize("hidden", [(), (CLOSE_RANGE,)], ids=["at once", "one by one"])
def test_descriptors_of_the_client_are_closed(place: Workplace, hidden: tuple[int, ...]) -> None:
    command = place.command("find-descriptor", hidden=hidden)
    with (place.home / "secret.txt").open() as file:
        assert place.run(command, pass_fds=(file.fileno(),)).returncode == 0


def test_without_a_required_protection_nothing_is_run(place: Workplace) -> None:
    done = place.run(place.command("nothing", options=("--require", "root"), hidden=(UNSHARE,)))
    assert done.returncode == 2
    assert "root=missing" in done.stdout
    assert place.attempt("nothing", options=("--require", "memory", "--memory", "1000000000")).status == 1


# --- The processes of the sandbox.


@pytest.mark.parametrize("options", [(), ("--copies", str(1 << 30))], ids=["alone", "copies"])
@pytest.mark.parametrize(("attempt", "number"), [("crash", signal.SIGSEGV), ("abort", signal.SIGABRT)])
def test_the_process_that_waits_ends_as_the_host_does(
    place: Workplace, attempt: str, number: int, options: tuple[str, ...]
) -> None:
    assert place.attempt(attempt, "", options).status == -number


@pytest.mark.parametrize("hidden", [(), (UNSHARE,)], ids=["namespace", "no namespace"])
def test_started_processes_do_not_outlive_the_host(place: Workplace, hidden: tuple[int, ...]) -> None:
    name = f"stay{os.getpid()}"
    assert place.attempt("leave-process", name, ("--processes", "4"), hidden).status == 1
    assert not [process for process in psutil.process_iter(["name"]) if process.info["name"] == name]


def test_a_fork_bomb_is_bounded_where_processes_are_allowed(place: Workplace) -> None:
    answer = place.attempt("fork-bomb", "400", ("--processes", "4", "--threads", "16"))
    assert answer.was_refused or "threads" in answer.report.missing


COPIES = ("--copies", str(1 << 30))
KILLS_AT_START = 60
COPYING = [
    ("fork-bomb", "1", 1),  # two more than the one that asks
    ("fork-bomb", "2", 0),
    ("fork", "", 1),
    ("clone", "", 1),
    ("clone3", "", 0),
    ("vfork", "", 0),
    ("share-memory-with-child", "", 0),
    ("fork-beside-thread", "", 0),
    ("start-in-namespace", "", 0),
    ("execute", "/bin/true", 0),
    ("system", "", 0),
    ("allocate-after-fork", "2", 0),
    ("allocate", "2", 1),
    ("start-threads", "50", 1),
    ("kill-client", "", 0),
    ("kill-first-process", "", 0),
]


@pytest.mark.parametrize(("attempt", "argument", "status"), COPYING, ids=str)
def test_where_the_host_may_be_copied_few_processes_of_less_memory_are_had(
    place: Workplace, attempt: str, argument: str, status: int
) -> None:
    answer = place.attempt(attempt, argument, (*COPIES, "--memory", str(4 << 30)))
    if {"processes-hidden", "system-calls"} & set(answer.report.missing):
        pytest.skip("a namespace of processes and a filter are needed for copies")
    assert answer.report.is_active("no-new-processes")
    assert answer.status == status, answer


@pytest.mark.parametrize(("hidden", "missing"), [(UNSHARE, "processes-hidden"), (SECCOMP, "system-calls")])
def test_copies_need_a_namespace_and_a_filter(place: Workplace, hidden: int, missing: str) -> None:
    answer = place.attempt("fork", "", COPIES, hidden=(hidden,))
    assert missing in answer.report.missing
    assert answer.was_refused == answer.report.is_active("no-new-processes")


@pytest.mark.parametrize(("attempt", "argument"), [("fork-bomb", "10"), ("system", ""), ("fork-beside-thread", "")])
def test_processes_that_are_allowed_are_had_beside_copies(place: Workplace, attempt: str, argument: str) -> None:
    assert place.attempt(attempt, argument, (*COPIES, "--processes", "20")).status == 1


def test_processes_that_all_start_others_stay_few(place: Workplace) -> None:
    """Each of them asks anew all the time, for two seconds."""
    command = place.command("fork-everywhere", options=COPIES)
    most = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **place.identity()) as process:  # type: ignore[call-overload]
        while process.poll() is None:
            try:
                family = psutil.Process(process.pid).children(recursive=True)
            except psutil.NoSuchProcess:
                break
            most = max(most, len(family))
    assert 4 <= most <= 5  # with the first of the namespace and the keeper, which are not the FMU's


def test_processes_of_copies_do_not_outlive_the_host(place: Workplace) -> None:
    name = f"copy{os.getpid()}"
    assert place.attempt("leave-process", name, COPIES).status == 1
    assert not [process for process in psutil.process_iter(["name"]) if process.info["name"] == name]


@contextmanager
def hanging(place: Workplace, *options: str, **how: object) -> Iterator[subprocess.Popen[str]]:
    command = place.command("hang", options=options)
    with subprocess.Popen(  # type: ignore[call-overload]
        command, stdout=subprocess.PIPE, text=True, **place.identity(), **how
    ) as process:
        for line in process.stdout:
            if line.startswith("no-new-processes"):  # the last of the report
                break
        yield process


@pytest.mark.parametrize("options", [(), COPIES], ids=["alone", "copies"])
def test_all_ends_with_the_process_that_was_started(place: Workplace, options: tuple[str, ...]) -> None:
    with hanging(place, *options) as process:
        family = psutil.Process(process.pid).children(recursive=True)
        assert family
        process.kill()
        assert not psutil.wait_procs(family, timeout=60)[1]


def test_a_process_that_is_killed_at_its_start_leaves_none(place: Workplace) -> None:
    generator = np.random.default_rng(1)
    for seconds in generator.uniform(0.0, 0.01, KILLS_AT_START):
        started = subprocess.Popen(place.command("hang"), stdout=subprocess.DEVNULL, **place.identity())  # type: ignore[call-overload]
        time.sleep(seconds)
        started.kill()
        started.wait()
    deadline = time.monotonic() + 60.0
    program = str(place.folder / "probe")
    while any(process.info["exe"] == program for process in psutil.process_iter(["exe"])):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize("options", [(), COPIES], ids=["alone", "copies"])
def test_all_ends_when_the_client_has_gone(place: Workplace, options: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    with hanging(place, "--client-descriptor", str(reading), *options, pass_fds=(reading,)) as process:
        os.close(reading)
        time.sleep(0.1)
        assert process.poll() is None
        os.close(writing)
        assert process.wait(timeout=30) == -signal.SIGKILL


def test_the_terminal_is_neither_read_nor_taken(place: Workplace) -> None:
    def run(attempt: str) -> int:
        child, terminal = pty.fork()
        if child == 0:
            command = place.command(attempt, os.ttyname(0))
            if place.user is not None:
                os.fchown(0, place.user, place.user)
                os.setgroups([])
                os.setgid(place.user)
                os.setuid(place.user)
            os.execv(command[0], command)
        os.write(terminal, b"typed\n")
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.close(terminal)
        return status

    for attempt in ("read-terminal", "take-terminal", "type-into-terminal"):
        assert run(attempt) == 0, attempt


def test_programs_run_in_the_sandbox_and_write_where_they_may(place: Workplace) -> None:
    source = place.home / "source.c"
    source.write_text("int twice(int x) { return 2 * x; }\n")
    if place.user is not None:
        os.chown(source, place.user, place.user)
    probe, library = str(place.folder / "probe"), place.home / "library.so"
    compiler = ["cc", "-shared", "-fPIC", "-O1", str(source), "-o", str(library)]
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(place.scratch)}
    scratch = ["--scratch", str(place.scratch)]
    refused = place.run([probe, "--run", *scratch, "--read", str(place.home), "--", *compiler], env=environment)
    assert refused.returncode
    assert not library.exists()
    done = place.run(
        [probe, "--run", *scratch, "--report", "2", "--write", str(place.home), "--", *compiler], env=environment
    )
    assert done.returncode == 0, done.stderr
    assert read_sandbox_report(done.stderr).is_active("system-calls")
    assert library.stat().st_size > 1000


# --- The command line, the report, and other systems.


@pytest.mark.parametrize(
    "options", [["--memory", "-1"], ["--memory", "1e9"], ["--memory"], ["--require", "luck"], ["--files", "9" * 20]]
)
def test_wrong_options_are_an_error(place: Workplace, options: list[str]) -> None:
    done = place.run([str(place.folder / "probe"), *options, "--", "nothing"])
    assert done.returncode == 2
    assert options[0] in done.stderr


def test_a_report_is_read_line_by_line() -> None:
    report = read_sandbox_report("descriptors=active\nroot=missing: mount: a: b\nnetwork=off: --network\n")
    assert report.protections[1] == Protection("root", "missing", "mount: a: b")
    assert report.missing == ("root",)
    assert report.is_active("descriptors")
    assert not report.is_active("network")
    assert not report.is_active("unknown")
    for line in ("root", "root=broken", "=active"):
        with pytest.raises(ValueError, match="not of the form"):
            read_sandbox_report(line)
