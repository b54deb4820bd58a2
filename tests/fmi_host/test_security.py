"""SECURITY.md, sentence by sentence: attempts of hostile FMUs, and other tests, that prove it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.model.capabilities import read_event_indicators
from tests.attacks import Attacks, hostile_fmu, sandbox_holds
from tests.takeovers import TAKEOVERS

ROOT = Path(__file__).parents[2]
SANDBOX, ARCHIVES = "tests/cli/test_sandbox.py", "tests/fmi/read/test_archive.py"
ALLOWED = f"{SANDBOX}::test_what_is_allowed_by_name_and_nothing_else_is_possible"
WINE = "tests/fmi/read/test_wine.py"
ESCAPES = "tests/cli/test_escape_sequences.py"
PROBED = "tests/fmi_host/test_sandbox.py::test_attempts_are_refused_where_a_protection_is_active"
COPIES = "tests/fmi_host/test_sandbox.py::test_where_the_host_may_be_copied_few_processes_of_less_memory_are_had"
BOUNDED = "tests/fmi_host/test_sandbox.py::test_what_is_taken_is_bounded"

PROOFS: dict[str, Sequence[str]] = {
    # Wine
    "Wine runs them in this sandbox, and only": (f"{WINE}::test_without_a_root_of_its_own_wine_is_not_run",),
    "Wine needs processes and sockets": (f"{WINE}::test_code_for_windows_reaches_neither_files_nor_the_network",),
    # 32 bits
    "They are rejected unless all is": (f"{WINE}::test_an_fmu_for_windows_of_32_bits_is_rejected_in_the_sandbox",),
    "The host for 32 bits is in the same": (
        "tests/fmi/read/test_linux32.py::test_code_for_32_bits_does_not_leave_the_sandbox",
    ),
    # Files, reading
    "The code of an FMU reads its own": (
        "read a file at home",
        "list the files at home",
        "read the passwords of the system",
        "read the connections of the machine",
        "read the keys of the kernel",
        "read the command line of the kernel",
        "load a library at home",
        "tests/fmi_host/test_sandbox.py::test_what_fmus_need_passes",
    ),
    "Other files do not exist for it": (
        "ask whether a file at home is there",
        "ask whether it may read a file at home",
        "read where a link at home leads",
    ),
    "`--allow-read PATH` adds": (
        ALLOWED,
        f"{SANDBOX}::test_a_model_that_needs_a_file_says_which_option_to_add_and_runs_with_it",
    ),
    # Files, writing
    "It writes into a temporary folder": (
        "append to ~/.bashrc",
        "write to /tmp",
        "write to /dev/shm",
        "takeover: beside",
        "takeover: disk",
        "raise the limit of the size of files",
        f"{SANDBOX}::test_files_that_a_hostile_fmu_was_after_are_as_before",
    ),
    "It changes no modes, owners, times": (
        "change the mode of a file at home",
        "change the time of a file at home",
        "empty a file at home",
        "make a link at home",
        "delete a file in another run's folder",
        "rename another run's folder",
    ),
    "It leaves no core file": ("takeover: core", "raise the limit of core files"),
    # Environment
    "It is started with a short list of variables": (
        "read a secret from the environment",
        "read it from /proc/self/environ",
        "find the secret in its own memory",
        "tests/fmi_host/test_restrictions.py::test_an_fmu_sees_few_variables_and_those_that_are_named",
    ),
    "`--allow-env NAME` adds": (ALLOWED,),
    # Network
    "It opens no sockets": (
        "open a TCP connection",
        "send a UDP message",
        "connect to a unix socket",
        "connect to an abstract unix socket",
        "send through a socket pair to a path",
    ),
    "`--allow-network` allows": (ALLOWED,),
    # Other processes
    "It traces none": (
        "trace fmilin",
        "read fmilin's memory",
        "open its parent's memory",
        "read it from the environment of fmilin",
        "read it from the environment of its parent",
        "write into fmilin's standard output",
        "write into its parent's standard output",
        "signal fmilin",
        "stop fmilin",
        "end fmilin",
        "stop its parent",
        "signal the first process",
        "signal all processes",
        "signal fmilin by queue",
        "signal its parent by descriptor",
        "have fmilin signalled through a pipe",
        "ask for fmilin's limits",
        "lower the priority of fmilin",
        "read fmilin's command line",
        "see processes besides its own",
    ),
    # Starting processes
    "It starts none": (
        "start a process",
        "start a session of its own",
        "takeover: fork bomb",
        "takeover: fork bomb at load",
    ),
    "`--allow-processes` allows them": (ALLOWED, "takeover: allowed fork bomb"),
    "All end with it, and with fmilin": (
        "outlive its parent",
        "leave a process behind",
        "takeover: killed client",
        "takeover: threads",
        "tests/fmi_host/test_process.py::test_the_host_ends_with_its_client",
        "tests/fmi_host/test_sandbox.py::test_started_processes_do_not_outlive_the_host",
    ),
    # Copies
    "A co-simulation FMU that cannot save": (
        "tests/fmi/read/test_run_starts.py::test_a_copy_takes_the_place_of_a_state_that_cannot_be_saved",
        "tests/fmi_host/test_copies.py::test_without_the_option_a_host_is_not_copied",
    ),
    "The kernel cannot tell which code asks": (
        COPIES,
        "tests/fmi_host/test_sandbox.py::test_processes_that_all_start_others_stay_few",
        "tests/fmi_host/test_sandbox.py::test_copies_need_a_namespace_and_a_filter",
        "tests/fmi_host/test_copies.py::test_an_fmu_with_threads_is_not_copied",
    ),
    "A copy has a third of the memory": (COPIES,),
    "All copies end with the FMU": (
        "tests/fmi_host/test_copies.py::test_all_copies_end_with_the_host",
        "tests/fmi_host/test_sandbox.py::test_processes_of_copies_do_not_outlive_the_host",
    ),
    # The terminal
    "It has none: it cannot open it": ("open the terminal", "type into the terminal", "takeover: terminal"),
    "What it prints is shown line by line": (
        "tests/fmi_host/test_process.py::test_what_an_fmu_prints_is_logged_line_by_line",
    ),
    "Control characters are escaped in that": (
        "takeover: escape sequences",
        f"{ESCAPES}::test_no_command_prints_what_a_terminal_would_obey",
        f"{ESCAPES}::test_a_terminal_gets_nothing_but_bold_letters",
        f"{ESCAPES}::test_members_of_an_archive_are_named_by_text",
    ),
    # The kernel
    "It makes no mounts and namespaces": (
        "mount",
        "make a namespace",
        "make a namespace with a process",
        "use io_uring",
        "use bpf",
        "use perf",
        "use the kernel's keys",
        "ask for the attributes of a folder by ioctl",
        PROBED,
    ),
    "An administrator's rights are given up": ("become another user", PROBED),
    # Open files
    "It has no file or socket that fmilin": (
        "find a file that fmilin has open",
        "tests/fmi_host/test_process.py::test_only_the_protocols_descriptors_are_open",
    ),
    # Time
    "A call that takes longer": (
        "takeover: shared pages",
        "takeover: unloading",
        "tests/fmi_host/test_process.py::test_a_call_that_does_not_return_is_stopped_by_the_clients_clock",
    ),
    "fmilin has the clock": (
        "takeover: stopped",
        "takeover: endless output",
        "takeover: slow answers",
        "takeover: drained answers",
        "takeover: closed",
    ),
    # Memory
    "The address space of the process is bounded": (
        "raise its limit of memory",
        "takeover: memory",
        "takeover: page tables",
        BOUNDED,
    ),
    "Files, and what waits in sockets": ("raise its limit of open files", "takeover: memory", BOUNDED),
    "Memory that belongs to no process": (
        "hide memory in a file without a name",
        "hide memory in a shared segment",
        PROBED,
    ),
    # Results
    "fmilin takes numbers from places": (
        "takeover: pickles",
        "takeover: others",
        "tests/fmi_host/test_process.py::test_answers_that_an_fmu_makes_up_change_nothing_but_numbers",
    ),
    "Answers that are malformed": ("takeover: answers",),
    "fmilin itself writes the files": ("takeover: beside",),
    # fmilin's memory, and the rest
    "The FMU does not share it": ("find the secret in its own memory", "takeover: terminal"),
    "The description of an FMU is read without": ("tests/cli/test_commands.py::test_info_runs_no_code_of_the_fmu",),
    "C sources are compiled with `--compile` only": (
        f"{ARCHIVES}::test_no_library_for_this_platform_says_which_are_inside",
        "tests/fmi_host/test_sandbox.py::test_programs_run_in_the_sandbox_and_write_where_they_may",
    ),
    "Archives and descriptions are read with care": (
        f"{ARCHIVES}::test_members_that_would_leave_the_directory",
        f"{ARCHIVES}::test_symbolic_link",
        f"{ARCHIVES}::test_encrypted_member",
        f"{ARCHIVES}::test_zip_bomb_is_not_unpacked",
        f"{ARCHIVES}::test_description_that_is_a_bomb",
        "tests/fmi/read/test_description.py::test_external_entities_are_not_read",
        "tests/fmi/read/test_description.py::test_entities_and_document_types_are_refused",
    ),
}
"""By the first words of a sentence: attempts within one call, takeovers, and tests elsewhere."""


def sentences() -> list[str]:
    """Return the sentences that SECURITY.md says to hold."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    section = text.partition("## What holds")[2].partition("\n## ")[0]
    points = re.split(r"^- ", section, flags=re.MULTILINE)[1:]
    plain = [re.sub(r"^\*\*.*?\*\* ", "", " ".join(point.split())) for point in points]
    return [sentence for point in plain for sentence in re.split(r"(?<=\.) (?=[A-Z`]|fmilin )", point)]


@pytest.fixture(scope="module")
def attacks(tmp_path_factory: pytest.TempPathFactory) -> Attacks:
    return Attacks(tmp_path_factory.mktemp("attacks")).run()


def test_every_sentence_has_a_proof_and_every_proof_a_sentence() -> None:
    by_sentence = {sentence: [start for start in PROOFS if sentence.startswith(start)] for sentence in sentences()}
    assert {sentence for sentence, starts in by_sentence.items() if len(starts) != 1} == set()
    assert sorted(start for starts in by_sentence.values() for start in starts) == sorted(PROOFS)


@pytest.mark.skipif(not sandbox_holds(), reason="this system does not offer all protections")
@pytest.mark.parametrize("start", PROOFS)
def test_the_attempts_of_a_sentence_fail_and_its_tests_exist(start: str, attacks: Attacks) -> None:
    for proof in PROOFS[start]:
        path, is_test, name = proof.partition("::")
        if is_test:
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")
        elif proof.startswith("takeover: "):
            assert proof.removeprefix("takeover: ") in TAKEOVERS
        else:
            assert attacks.outcomes[proof] != "SUCCEEDED"


@pytest.mark.skipif(not sandbox_holds(), reason="this system does not offer all protections")
def test_all_attempts_belong_to_sentences(attacks: Attacks) -> None:
    proofs = {proof for proofs in PROOFS.values() for proof in proofs}
    assert set(attacks.outcomes) <= proofs
    assert {f"takeover: {name}" for name in TAKEOVERS} <= proofs


def test_an_impossible_number_of_event_indicators_is_an_answer_that_is_refused(tmp_path: Path) -> None:
    with fl.load(hostile_fmu("counts", tmp_path)) as model:
        indicators = read_event_indicators(model, 0.0, np.array([1.0]), np.array([0.5]))
        assert indicators.size == 0


@pytest.mark.skipif(not sandbox_holds(), reason="this system does not offer all protections")
@pytest.mark.parametrize("name", TAKEOVERS)
def test_no_takeover_gets_through(name: str, tmp_path: Path) -> None:
    attempts = TAKEOVERS[name](tmp_path)
    assert attempts
    assert [attempt for attempt in attempts if attempt.got_through] == []
