"""The code blocks of a page of documentation: run from top to bottom in one folder, as a reader would.

``python`` and ``bash`` blocks are run; a ``text`` block behind one is what it prints. A block with a caption is a file:
it is written under that name. ``console`` blocks (installations) and blocks of other languages are not run. HTML
comments that begin with ``run`` hold commands that a reader of the page need not see.
"""

from __future__ import annotations

import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from tests.command_line import main

READ_ONLY = ("console", "toml", "xml", "json", "matlab", "modelica", "c")
"""Languages of blocks that are shown and not run."""

_FENCE = re.compile(
    r"^(?P<fence>```+)(?P<info>[^\n]*)\n(?P<body>.*?)^(?P=fence)[ ]*$|^<!-- run\n(?P<hidden>.*?)-->", re.M | re.S
)
_NUMBER = re.compile(r"(?<![\w.])[-+±]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")
_ISOLATED = ("linearize", "trim", "simulate", "verify", "sweep", "discover")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its caption where it has one, and what it says."""

    language: str
    caption: str
    body: str
    line: int


def blocks_of(text: str) -> Iterator[Block]:
    """Return the fenced blocks of a page in Markdown."""
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if found["hidden"] is not None:
            yield Block("bash", "", found["hidden"], line)
            continue
        info, body = found["info"].strip(), found["body"]
        caption = ""
        if directive := re.fullmatch(r"\{code-block\}\s*(\S*)", info):
            info = directive[1]
            options = re.match(r"(?::\w+:[^\n]*\n)*", body)
            assert options is not None
            if named := re.search(r"^:caption:\s*(.*)$", options[0], re.M):
                caption = named[1].strip().strip("`")
            body = body[options.end() :].lstrip("\n")
        elif info.startswith("{"):
            continue  # another directive: Sphinx reads it
        yield Block(info, caption, body, line)


def run_page(page: Path, text: str) -> int:
    """Run the blocks of a page in the working directory, compare what they print, and return how many ran.

    Raises
    ------
    AssertionError
        When a block fails, prints something else than the page shows, or has no known language.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    printed, ran = None, 0
    for block in blocks_of(text):
        where = f"{page.name}, line {block.line}"
        if block.caption:
            Path(block.caption).write_text(block.body, encoding="utf-8")
            printed = None
        elif block.language == "python":
            printed, ran = _printed_by(block, names, where), ran + 1
        elif block.language == "bash":
            printed, ran = "".join(_command(line, where) for line in _lines(block.body)), ran + 1
        elif block.language == "text":
            assert printed is not None, f"{where}: output of what?"
            difference = _difference(printed, block.body)
            assert not difference, f"{where}: {difference}\n--- printed:\n{printed}"
            printed = None
        else:
            assert block.language in READ_ONLY, f"{where}: a block in '{block.language}' is neither run nor known"
            printed = None
    return ran


def _printed_by(block: Block, names: dict[str, object], where: str) -> str:
    code = compile("\n" * block.line + block.body, where, "exec")
    with redirect_stdout(io.StringIO()) as out:
        exec(code, names)
    return out.getvalue()


def _lines(body: str) -> list[str]:
    return [line for line in body.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]


def _command(line: str, where: str) -> str:
    """Run a line of the shell and return what it prints, errors included; ``# status 4`` says how it ends."""
    expected = re.search(r"#.*\bstatus (\d)", line)
    words = shlex.split(line, comments=True)
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
        status = _status(line, words)
    assert status == (int(expected[1]) if expected else 0), f"{where}: status {status} of '{line}'\n{out.getvalue()}"
    return out.getvalue()


def _status(line: str, words: list[str]) -> int:
    plain = not {"|", ">", "<", "&&"} & set(words)
    if words[0] == "fmilin" and plain:
        isolated = len(words) > 1 and words[1] in _ISOLATED and "--help" not in words
        return main([*words[1:], "--no-isolation"] if isolated else words[1:])
    if words[0] == "python" and plain and len(words) == 2:
        runpy.run_path(words[1], run_name="__main__")
        return 0
    ours = os.environ | {"PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))}
    done = subprocess.run(["bash", "-ec", line], capture_output=True, text=True, env=ours, check=False)
    sys.stdout.write(done.stdout + done.stderr)
    return done.returncode


def _difference(printed: str, shown: str) -> str:
    """Return what the page shows and the run did not print; '' when they agree but for rounding and spaces.

    A line ``...`` stands for any lines, and ``...`` within a line for any words.
    """
    texts = [_plain(printed), _plain(shown)]
    words, numbers = _NUMBER.sub("#", texts[0]), [float(n.replace("±", "")) for n in _NUMBER.findall(texts[0])]
    pattern = ".*?".join(re.escape(part) for part in _NUMBER.sub("#", texts[1]).split("..."))
    found = re.fullmatch(pattern.replace(re.escape("#"), "(#)"), words, re.S)
    if not found:
        return "the page shows something else than what is printed"
    wanted = [float(n.replace("±", "")) for n in _NUMBER.findall(texts[1])]
    places = [found.start(i + 1) for i in range(len(wanted))]
    order = [i for i, character in enumerate(words) if character == "#"]
    for value, place in zip(wanted, places, strict=True):
        got = numbers[order.index(place)]
        if abs(got - value) > 1e-3 * max(abs(got), abs(value)) and max(abs(got), abs(value)) > 1e-6:
            return f"{got:g} is printed where the page shows {value:g}"
    return ""


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[─━]+", "─", text).split())
