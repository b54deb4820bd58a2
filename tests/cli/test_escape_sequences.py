"""Whatever a file of a model says is printed as text: a terminal obeys none of it, and a browser runs none of it."""

from __future__ import annotations

import json
import os
import pty
import re
import sys
import unicodedata
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import fmilin as fl
from fmilin.errors import FmilinError
from fmilin.models import OdeModel
from fmilin.signals import Signals
from tests.attacks import hostile_fmu
from tests.cli.conftest import Outcome, Run, shell
from tests.fmus.make import description_of

C1 = "\x9b6n\x85\x9d52;c;ZXZpbA==\x9c\u202e"  # XML has room for these, and not for ESC
ESC = "\x1b]52;c;ZXZpbA==\x07\x1b[6n"  # writes to the clipboard, and asks for the position of the cursor
SCRIPT = '"<script>alert(1)</script><img src=x onerror=alert(1)>'
STYLE = re.compile(r"\x1b\[[0-9;]*m")  # bold letters of fmilin's own
SHOWN = r"\x9b6n"


def obeyed(text: str) -> list[str]:
    """Return the characters of a text that a terminal would obey."""
    return [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in "\n\t"]


def spoil(description: str, evil: str) -> str:
    """Return a model description with something in all texts that may hold it."""
    code = "".join(f"&#{ord(c)};" for c in evil)
    for name in ("x", "v", "u", "y", "square"):
        description = description.replace(f'name="{name}"', f'name="{name}{code}" description="described {code}"')
    return (
        description.replace("<Real derivative", f'<Real unit="m{code}" derivative')
        .replace("<Real start", f'<Real unit="m{code}" start')
        .replace("<Real/>", f'<Real unit="m{code}"/>')
        .replace('modelName="', f'description="{code}" author="{code}" version="{code}" generationTool="{code}" '
                 f'generationDateAndTime="{code}" copyright="{code}" license="{code}" modelName="{code}')
    )  # fmt: skip


@pytest.fixture(scope="module")
def fmu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An FMU with control characters in its description, in what it prints, and in its messages."""
    return spoiled(tmp_path_factory.mktemp("escapes"), C1)


def spoiled(folder: Path, evil: str) -> Path:
    folder.mkdir(exist_ok=True)
    plain = hostile_fmu("escapes", folder)
    target = folder / "spoiled.fmu"
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(target, "w") as archive:
        for name in source.namelist():
            content = source.read(name)
            if name == "modelDescription.xml":
                content = spoil(description_of("crashes").replace("crashes", "escapes"), evil).encode()
            archive.writestr(name, content)
        archive.writestr(f"resources/file{ESC}{C1}.txt", "a file")
    return target


COMMANDS = [
    ["info"],
    ["info", "--check", "--verbose"],
    ["info", "--run"],
    ["linearize"],
    ["linearize", "--verbose"],
    ["linearize", "--set", f"u{C1}=1"],
    ["linearize", "--set", f"nothing{ESC}{C1}=1"],
    ["explain"],
    ["trim"],
    ["simulate", "--stop-time", "0.1"],
    ["verify", "--horizon", "0.1"],
    ["discover"],
    ["sweep", "--vary", f"u{C1}=[0,0.1,1]", "--jobs", "1"],
    ["plot", "-o", "picture.svg"],
    ["report", "-o", "page.html"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: "-".join(w for w in c if w.isascii()))
def test_no_command_prints_what_a_terminal_would_obey(command: list[str], fmu: Path, run: Run) -> None:
    done: Outcome = run(command[0], fmu, *command[1:])
    assert done.status != 1, done.err  # 1: a bug
    assert done.out + done.err
    assert obeyed(done.out + done.err) == []


def test_tables_and_messages_show_the_characters_as_escapes(fmu: Path, run: Run) -> None:
    done = run("linearize", fmu)
    assert done.status == 0, done.err
    assert f"x{SHOWN}" in done.out
    assert r"\x1b]52;c;ZXZpbA==\x07\x1b[6n" in done.err


def test_json_says_the_same_names_by_ascii_alone(fmu: Path, run: Run) -> None:
    done = run("linearize", fmu, "--json")
    assert done.out.isascii()
    assert obeyed(done.out) == []
    assert json.loads(done.out)["states"][0] == f"x{C1}"


def test_an_error_of_the_fmu_is_text(fmu: Path, run: Run) -> None:
    done = run("linearize", fmu, "--set", f"u{C1}=1")
    assert done.status == 3
    assert done.err.count(r"\x1b]52;c") >= 2  # printed, and in its message


def test_representations_of_results_are_text(fmu: Path) -> None:
    with fl.load(fmu) as model:
        linear = fl.linearize(model)
        assert obeyed(f"{model!r}{linear!r}{linear}") == []


@pytest.mark.parametrize("suffix", [".json", ".mat", ".npz"])
def test_files_of_results_are_read_with_their_names_as_text(suffix: str, run: Run) -> None:
    plain = fl.linearize(OdeModel("plain", {"x": "-x + u"}, inputs=["u"], outputs={"y": "x"}))
    named = Signals([replace(plain.inputs[0], name=f"u{ESC}{C1}")])
    path = Path(f"plant{suffix}")
    replace(plain, inputs=named).save(path)
    for command in (["explain", path, "--input", "nothing"], ["explain", path], ["report", path, "-o", "page.html"]):
        done = run(*command)
        assert done.status in (0, 2), done.err
        assert obeyed(done.out + done.err) == []


def test_names_in_a_mechanism_are_text(run: Run) -> None:
    Path("arm.toml").write_text(
        '[[body]]\nname = "arm\\u001b[6n"\nmass = 1.0\ncenter = [0, 0, 1]\ninertia = [1, 1, 1]\n'
        '[[joint]]\nname = "j\\u001b]52;c;\\u0007"\ntype = "revolute"\nparent = "ground"\nchild = "arm\\u001b[6n"\n'
        "axis = [0, 1, 0]\n"
    )
    done = run("info", "arm.toml")
    assert done.out + done.err
    assert obeyed(done.out + done.err) == []


def test_members_of_an_archive_are_named_by_text(run: Run, fmu: Path) -> None:
    Path("evil.fmu").write_bytes(fmu.read_bytes())
    with zipfile.ZipFile("evil.fmu", "a") as archive:
        archive.writestr(f"resources/../../{ESC}{C1}", "")
    done = run("linearize", "evil.fmu")
    assert done.status == 3
    assert r"\x1b]52" in done.err
    assert obeyed(done.out + done.err) == []
    with pytest.raises(FmilinError) as caught:
        fl.load("evil.fmu")
    assert obeyed(str(caught.value)) == []


def test_a_file_may_have_any_name(run: Run, fmu: Path) -> None:
    path = Path(f"{ESC}.fmu")
    path.write_bytes(fmu.read_bytes())
    for command in ("info", "linearize"):
        done = run(command, path)
        assert done.status == 0, done.err
        assert obeyed(done.out + done.err) == []


@pytest.mark.filterwarnings("ignore:constrained_layout not applied")  # such names leave no room for curves
def test_a_page_holds_names_as_text(tmp_path: Path, run: Run) -> None:
    fmu = spoiled(tmp_path / "page", SCRIPT)
    done = run("report", fmu, "-o", "page.html")
    assert done.status == 0, done.err
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<img src=x" not in page


@pytest.mark.parametrize("command", ["info", "linearize", "simulate"])
def test_a_terminal_gets_nothing_but_bold_letters(command: str, fmu: Path, tmp_path: Path) -> None:
    given = [command, str(fmu), *(["--stop-time", "0.1"] if command == "simulate" else [])]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, "-m", "fmilin", *given])
    content = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:
            break
        if not part:
            break
        content += part
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    text = content.decode()
    assert SHOWN in text
    own = re.sub(r"\r\n|\r\x1b\[K|\r|\x1b\[(K|2K|1A|\?25[hl])", "", STYLE.sub("", text))  # lines, and a bar's cursor
    assert obeyed(own) == []


def test_messages_are_text_in_the_program_as_it_is_started(fmu: Path, tmp_path: Path) -> None:
    done = shell(["linearize", fmu], tmp_path)
    assert done.status == 0
    assert r"\x1b[6n" in done.err
    assert obeyed(done.out + done.err) == []
