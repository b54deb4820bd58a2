"""``fmilin explore``: its page in a real browser, who may open it, how long an answer takes, and how it ends."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import psutil
import pytest

import fmilin as fl
from fmilin import TrimRequest
from fmilin.cli.explore import _answer_anew, _line
from fmilin.cli.model_options import Running, Trimming
from fmilin.cli.request import build_request
from fmilin.explore.page import PageChoice
from fmilin.trimming.trim_request import PointRequest
from tests.browser import Browser, browsing, needs_chromium
from tests.cli.conftest import Run

ENDS = 20.0  # seconds within which a program ends


def explore(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    words = [sys.executable, "-P", "-m", "fmilin", "explore", *arguments]
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True, **options)


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    line = process.stderr.readline().strip()
    assert line.startswith("http://127.0.0.1:"), line + process.stderr.read()
    return line


@pytest.fixture
def address() -> Iterator[str]:
    process = explore("fmilin.systems:four_bar", "--no-browser")
    try:
        yield address_of(process)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=ENDS)[1].endswith("fmilin: interrupted.\n")
        assert process.returncode == 130


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


def refused(address: str, **headers: str) -> int:
    with pytest.raises(HTTPError) as error:
        urlopen(Request(address, headers=headers))
    error.value.close()
    return error.value.code


def test_a_token_opens_the_page_once_and_a_cookie_from_then_on(address: str) -> None:
    page, _, token = address.partition("?token=")
    port = page.rstrip("/").rpartition(":")[2]
    assert refused(page) == 403
    assert refused(f"{page}?token={token[:-1]}") == 403
    assert refused(address, Origin="http://127.0.0.1:1") == 403
    assert refused(address, Host=f"rebound.example:{port}") == 403
    with urlopen(address) as answer:
        attributes = answer.headers["Set-Cookie"].split("; ")
    cookie = attributes[0]
    assert attributes[1:] == ["HttpOnly", "SameSite=Strict", "Path=/"]
    assert token not in cookie
    assert refused(address) == 403
    assert refused(page, Cookie=cookie.partition("=")[0] + f"={token}") == 403
    assert refused(f"{page}_nicegui_ws/socket.io/?EIO=4&transport=polling") == 403
    assert refused(page, Cookie=cookie, Origin="http://127.0.0.1:1") == 403
    assert refused(page, Cookie=cookie, Host=f"rebound.example:{port}") == 403
    with urlopen(Request(page, headers={"Cookie": cookie})) as answer:
        assert answer.status == 200


@contextmanager
def opened_by_itself(folder: Path, *arguments: str) -> Iterator[str]:
    """The command line of the browser that the command starts, which is a script that writes it into a file."""
    arguments_file = folder / "arguments"
    program = folder / "browser"
    program.write_text(f'#!/bin/sh\necho "$@" > {arguments_file}.new; mv {arguments_file}.new {arguments_file}\n')
    program.chmod(0o755)
    process = explore(*arguments, env={**os.environ, "BROWSER": f"{program} %s"})
    try:
        address_of(process)
        until = time.monotonic() + ENDS
        while not arguments_file.exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        yield arguments_file.read_text().strip()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=ENDS)


@needs_chromium
def test_the_browser_gets_its_token_in_a_private_file_of_one_use(browser: Browser, tmp_path: Path) -> None:
    with opened_by_itself(tmp_path, "fmilin.systems:four_bar") as argument:
        assert argument.startswith("file:///")
        file = Path(argument.removeprefix("file://"))
        assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
        assert "token=" in file.read_text()
        assert "token=" not in argument
        browser.open(argument)
        browser.wait_for("document.querySelector('#modes')?.innerText.length > 3")
        assert not file.exists()
        assert browser.evaluate("location.search") == ""
    assert not file.parent.exists()


NAMES = {
    kind: f"""{kind}" :x="(document.title='X')" z="'><img src=x onerror="document.title='X'">"""
    f"""<script>document.title='X'</script>`${{document.title='X'}}`{{{{document.title='X'}}}}"""
    for kind in ("model", "state", "rate", "input", "output", "parameter", "unit")
}
MODEL = f"""
import sympy as sp
from fmilin import Signal
from fmilin.models import Labels, OdeModel

NAMES = {NAMES!r}

def plant():
    x, v, u, k = (sp.Symbol(NAMES[kind]) for kind in ("state", "rate", "input", "parameter"))
    equations = {{x: v, v: -k * x - v / 5 + u}}
    labels = Labels(units={{NAMES[kind]: NAMES["unit"] for kind in ("state", "input", "output")}})
    return OdeModel(
        NAMES["model"], equations, inputs=[u], parameters={{k: 4.0}}, outputs={{NAMES["output"]: x}}, labels=labels
    )
"""


@needs_chromium
def test_no_name_runs_script_in_the_page(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "hostile.py").write_text(MODEL)
    process = explore(f"{tmp_path}/hostile.py:plant", "--no-browser")
    try:
        browser.open(address_of(process))
        browser.wait_for("document.querySelector('#modes')?.innerText.length > 3")
        labels = browser.evaluate("[...document.querySelectorAll('.q-slider')].map(s => s.getAttribute('aria-label'))")
        assert labels == [NAMES[kind] for kind in ("state", "rate", "input", "parameter")]
        browser.evaluate("document.querySelector('.q-slider [tabindex]').focus()")
        browser.press("ArrowRight", 39)
        browser.wait_for("document.querySelector('#time').innerText != ''")
        browser.evaluate("[...document.querySelectorAll('.q-select')].forEach(s => s.click())")
        text = browser.evaluate("document.body.innerText")
        assert all(name in text for kind, name in NAMES.items() if kind != "rate")
        assert browser.evaluate("document.title") == f"fmilin: {NAMES['model']}"
        assert browser.evaluate("document.querySelectorAll('img[src=x], script:not([nonce]):not([src])').length") == 0
        assert [text for text in browser.said if "CONNECTION_REFUSED" not in text] == []  # of the page before
    finally:
        process.terminate()
        process.communicate(timeout=ENDS)


@needs_chromium
def test_the_policy_of_the_page_stops_scripts_that_got_into_it(address: str, browser: Browser) -> None:
    browser.open(address)
    browser.wait_for("document.querySelector('#modes')?.innerText.length > 3")
    title = browser.evaluate("document.title")
    browser.evaluate("document.body.insertAdjacentHTML('beforeend', `<img src=x onerror=\"document.title = 'X'\">`)")
    browser.evaluate(
        "document.head.append(Object.assign(document.createElement('script'), {textContent: \"document.title='X'\"}))"
    )
    browser.evaluate("fetch('http://127.0.0.1:1/secret').catch(() => { window.blocked = true })")
    browser.wait_for("window.blocked")
    assert browser.evaluate("document.title") == title
    said = [text for text in browser.said if "Content Security Policy" in text]
    assert {"script-src", "connect-src"} <= set(re.findall(r"(?:script|connect)-src", " ".join(said)))


def test_no_python_file_of_the_current_folder_is_imported(fmus: Path, tmp_path: Path) -> None:
    for module in ("json", "pickle", "select", "struct", "numpy", "fmilin"):
        (tmp_path / f"{module}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'a').write({module!r})")
    process = explore(str(fmus / "four_bar.fmu"), "--set", "phi=2.0", "--no-browser", cwd=tmp_path)
    try:
        address_of(process)
    finally:
        process.terminate()
        process.communicate(timeout=ENDS)
    assert not (tmp_path / "imported").exists()


def at_browser(browser: Browser, address: str, name: str, times: int = 1) -> tuple[str, str]:
    """Move a slider to the right; the modes that are shown then, and the line."""
    browser.open(address)
    browser.wait_for("document.querySelector('#modes')?.innerText.length > 3")
    browser.evaluate(f"document.querySelector('[aria-label=\"{name}\"] [tabindex]').focus()")
    for _ in range(times):
        browser.press("ArrowRight", 39)
    browser.wait_for("document.querySelector('#time').innerText != ''")
    return tuple(browser.evaluate(f"document.querySelector('#{part}').innerText") for part in ("modes", "line"))


def eigenvalues_of(line: str, run: Run) -> np.ndarray:
    words = shlex.split(line)
    assert words[:2] == ["fmilin", "linearize"]
    document = json.loads(run(*words[1:], "--json").out)
    return np.linalg.eigvals(np.array(document["A"]))


@needs_chromium
def test_a_slider_moves_the_eigenvalues_to_those_of_the_line_below(
    address: str, browser: Browser, run: Run, tmp_path: Path
) -> None:
    shown, line = at_browser(browser, address, "k")
    assert "--set k=" in line
    browser.keep_downloads(tmp_path)
    browser.evaluate("[...document.querySelectorAll('button')].find(b => b.innerText == 'Save the file').click()")
    while not (tmp_path / "linear.json").exists():
        browser.evaluate("0")
    saved = fl.LinearModel.load(tmp_path / "linear.json").eigenvalues()
    np.testing.assert_allclose(np.sort(saved.imag), np.sort(eigenvalues_of(line, run).imag), rtol=1e-12)
    (imaginary,) = re.findall(r"±([\d.]+) i", shown)
    assert float(imaginary) == pytest.approx(np.max(eigenvalues_of(line, run).imag), rel=1e-7)
    assert float(imaginary) != pytest.approx(2.1476766, rel=1e-4)
    took = browser.evaluate("document.querySelector('#time').innerText")
    assert re.fullmatch(r"computed in \d+ ms", took), took
    assert [text for text in browser.said if "CONNECTION_REFUSED" not in text] == []
    assert all(asked.startswith("http://127.0.0.1:") for asked in browser.requested)


@needs_chromium
def test_an_fmu_answers_from_a_process_of_its_own(browser: Browser, fmus: Path, run: Run) -> None:
    process = explore(str(fmus / "four_bar.fmu"), "--set", "phi=2.0", "--no-browser")
    try:
        shown, line = at_browser(browser, address_of(process), "phi")
        sliders = "[...document.querySelectorAll('.q-slider')].map(s => s.getAttribute('aria-label'))"
        declared = set(browser.evaluate(sliders))
        assert not any(
            "binaries" in m.path for m in psutil.Process(process.pid).memory_maps()
        )  # its code was not loaded
    finally:
        process.terminate()
        process.communicate(timeout=ENDS)
    assert "phi=2.02" in line
    assert {"m", "k", "l0"} <= declared
    (imaginary,) = re.findall(r"±([\d.]+) i", shown)
    assert float(imaginary) == pytest.approx(np.max(eigenvalues_of(line, run).imag), rel=1e-7)


@pytest.mark.parametrize("moved", [{}, {"phi": 2.1}, {"k": 25.0}])
def test_an_fmu_is_loaded_for_each_answer_which_is_that_of_the_command(
    moved: dict[str, float], fmus: Path, run: Run
) -> None:
    fmu = str(fmus / "four_bar.fmu")
    request = build_request(fmu, running=Running(), point=PointRequest(settings={"phi": 2.0}))
    choice = PageChoice(moved)
    linear = _answer_anew(request, choice)
    words = _line(request, [fmu, "--set", "phi=2.0"], choice, "")[1:]
    np.testing.assert_array_equal(linear.A, json.loads(run(*words, "--json").out)["A"])


def test_the_page_ends_with_its_parent() -> None:
    script = (
        "import subprocess, sys, time; "
        "p = subprocess.Popen(sys.argv[1:]); print(p.pid, flush=True); sys.stdin.readline()"
    )
    words = [sys.executable, "-m", "fmilin", "explore", "fmilin.systems:cartesian_pendulum", "--no-browser"]
    parent = subprocess.Popen(
        [sys.executable, "-c", script, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    address_of(parent)
    parent.kill()
    assert parent.stderr is not None
    parent.stderr.read()  # ends when the page's process has ended, which holds the other end
    parent.communicate()


def test_typed_values_give_way_to_those_of_the_sliders() -> None:
    typed = ["m.toml", "--trim", "--set", "k=1", "--fix=q=2,f=3", "--free", "u"]
    request = build_request(
        "m.toml",
        running=Running(),
        point=PointRequest(settings={"k": 1.0}),
        trimming=Trimming(trim=True),
        problem=TrimRequest({"q": 2.0, "f": 3.0}),
    )
    assert _line(request, typed, PageChoice({}), "") == ["fmilin", "linearize", *typed]
    line = _line(request, typed, PageChoice({"q": 2.5, "a,b": 1.0}, ("q",), projects=True), ".mat")
    assert line[2:6] == ["m.toml", "--trim", "--free", "u"]
    assert line[6:14] == ["--fix", "q=2.5", "--fix", "f=3.0", "--fix", "`a,b`=1.0", "--set", "k=1.0"]
    assert line[14:] == ["--independent", "q", "--project", "-o", "linear.mat"]


def test_without_its_library_the_extra_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nicegui", None)
    monkeypatch.delitem(sys.modules, "fmilin.explore.page")
    done = run("explore", "fmilin.systems:four_bar")
    assert done.status == 2
    assert "pip install 'fmilin[explore]'" in done.err
