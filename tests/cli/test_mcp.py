"""``fmilin mcp``: the tools as a program calls them, with the client of the protocol's own library."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client, types

from fmilin.cli.confined import LIBRARY_VARIABLES
from fmilin.cli.tool_server import TOOLS, describe_tool, write_command
from fmilin.errors import UsageError
from fmilin.models.mechanism.sdf_include import SEARCH_PATHS
from tests.command_line import main

PENDULUM = """\
name = "pendulum"
gravity = [0, -9.81, 0]
body = [{name = "rod", mass = 2.0, center = [0, -0.5, 0]}]
joint = [{name = "swing", type = "revolute", parent = "ground", child = "rod"}]
input = [{kind = "joint_force", name = "torque", joint = "swing"}]
"""
ROBOT = '<robot name="r"><link name="base"/></robot>'


@dataclass(frozen=True)
class Session:
    """A server of a folder, and a client that calls its tools."""

    folder: Path
    portal: BlockingPortal
    client: Client

    def call(self, name: str, **arguments: Any) -> types.CallToolResult:
        answer: types.CallToolResult = self.portal.call(self.client.call_tool, name, arguments)
        return answer


@contextmanager
def serve(folder: Path, *options: str) -> Iterator[Session]:
    words = ["-m", "fmilin", "mcp", "--folder", str(folder), *options]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    with start_blocking_portal() as portal:
        connection: AbstractContextManager[Client] = portal.wrap_async_context_manager(Client(stdio_client(server)))
        with connection as client:
            yield Session(folder, portal, client)


@pytest.fixture(scope="module")
def session(fmus: Path, zoo: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    outside = tmp_path_factory.mktemp("outside")
    folder = outside / "models"
    folder.mkdir()
    shutil.copyfile(fmus / "four_bar.fmu", folder / "four_bar.fmu")
    for name in ("prints", "hangs"):
        shutil.copyfile(zoo(name), folder / f"{name}.fmu")
    (folder / "pendulum.toml").write_text(PENDULUM)
    (folder / "plant.py").write_text("from fmilin.systems import four_bar\nplant = four_bar()\n")
    (folder / "refers.toml").write_text('name = "refers"\nurdf = "../robot.urdf"\n')
    (outside / "robot.urdf").write_text(ROBOT)
    shutil.copyfile(fmus / "four_bar.fmu", outside / "secret.fmu")
    if sys.platform != "win32":
        (folder / "link.fmu").symlink_to(outside / "secret.fmu")
        (folder / "prints.fmilin.toml").symlink_to(outside / "robot.urdf")
    with serve(folder) as session:
        yield session


def read_text(result: types.CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("info", {"check": True}, ["--check"]),
        (
            "linearize",
            {"trim": True, "fix": {"phi": 1.0}, "free": ["torque"], "outputs": ["w", "coupler.y"]},
            ["--trim", "--fix", "phi=1.0", "--free", "torque", "--outputs", "w,coupler.y"],
        ),
        ("trim", {"fix": {"coupler.y": 0.7}, "free": ["torque"]}, ["--fix", "coupler.y=0.7", "--free", "torque"]),
        (
            "sweep",
            {"vary": ["phi=0.5:2.5:3"], "trim": True, "free": ["torque"]},
            ["--vary", "phi=0.5:2.5:3", "--trim", "--free", "torque"],
        ),
        ("explain", {"input": "torque", "output": "w"}, ["--input", "torque", "--output", "w"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_tool_answers_what_its_command_prints(
    name: str,
    arguments: dict[str, Any],
    words: list[str],
    session: Session,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(session.folder)
    answer = session.call(name, model="four_bar.fmu", **arguments)
    capfd.readouterr()
    assert main([name, "four_bar.fmu", *words, "--json"]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert not answer.is_error
    assert isinstance(answer.content[0], types.TextContent)
    assert answer.structured_content == json.loads(answer.content[0].text) == printed


def test_a_linear_model_is_written_verified_and_audited(session: Session) -> None:
    written = session.call("linearize", model="pendulum.toml", output=["plant.json"])
    # g / l of a point mass of 2 kg, 0.5 m below its pin
    assert written.structured_content["A"] == [[0.0, 1.0], [pytest.approx(-9.81 / 0.5, rel=1e-12), 0.0]]
    assert written.structured_content["B"] == [[0.0], [pytest.approx(1 / (2.0 * 0.5**2), rel=1e-12)]]
    verified = session.call("verify", model="pendulum.toml", linear=str(session.folder / "plant.json"))
    assert verified.structured_content["passed"]
    audited = session.call("audit", model="plant.json")
    assert audited.structured_content["ok"]


def test_a_table_takes_the_place_of_the_json(session: Session) -> None:
    answer = session.call("info", model="pendulum.toml", json=False)
    assert "swing.q" in read_text(answer)
    assert answer.structured_content is None


def test_the_message_of_a_failure_is_that_of_the_command(
    session: Session, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(session.folder)
    capfd.readouterr()
    assert main(["linearize", "five_bar.fmu"]) == 3
    message = capfd.readouterr().err
    answer = session.call("linearize", model="five_bar.fmu")
    assert answer.is_error
    assert read_text(answer) == f"{message}Exit status 3: the model cannot be read or fails to initialize."


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("info", {"model": "../secret.fmu"}),
        ("info", {"model": "folder/../../secret.fmu"}),
        ("info", {"model": "/secret.fmu"}),
        ("linearize", {"model": "four_bar.fmu", "output": ["../plant.json"]}),
        ("linearize", {"model": "four_bar.fmu", "output": ["plant.json", "/plant.json"]}),
        ("linearize", {"model": "four_bar.fmu", "point": "../point.toml"}),
        ("linearize", {"model": "crane.mo:Crane", "library": ["../msl"]}),
        ("linearize", {"model": "modelica:../crane.mo"}),
        ("verify", {"model": "four_bar.fmu", "linear": "../plant.json"}),
        ("verify", {"model": "four_bar.fmu", "linear": "plant.json", "plot": "../responses.png"}),
        ("audit", {"model": "plant.json", "against": "../secret.fmu"}),
        ("sweep", {"model": "../plant.py:plant", "vary": ["x=0:1:2"]}),
        ("trim", {"model": "four_bar.fmu", "output": {"../point": "1.toml"}}),
        ("info", {"model": "four_bar.fmu\0"}),
    ],
)
def test_paths_outside_the_folder_are_rejected(name: str, arguments: dict[str, Any], session: Session) -> None:
    answer = session.call(name, **arguments)
    assert answer.is_error
    assert "the folder of this server" in read_text(answer)
    assert sorted(path.name for path in session.folder.parent.iterdir()) == ["models", "robot.urdf", "secret.fmu"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
@pytest.mark.parametrize("model", ["link.fmu", "prints.fmu"])
def test_links_out_of_the_folder_are_rejected(model: str, session: Session) -> None:
    """Of the second model it is the file with its constraints."""
    answer = session.call("linearize", model=model)
    assert "a link that leads out of it" in read_text(answer)


def test_a_file_that_refers_to_another_one_outside_is_rejected(session: Session) -> None:
    answer = session.call("info", model="refers.toml")
    assert answer.is_error
    assert "robot.urdf" in read_text(answer)
    assert "it is outside" in read_text(answer)


def test_libraries_that_the_user_names_are_readable() -> None:
    assert {"MODELICAPATH", *SEARCH_PATHS} == set(LIBRARY_VARIABLES)


def test_a_command_that_cannot_be_started_is_an_error_of_the_call(session: Session) -> None:
    answer = session.call("linearize", model="four_bar.fmu", inputs=["tor\0que"])
    assert answer.is_error
    assert "The command cannot be started" in read_text(answer)


def test_models_in_python_need_a_permission(session: Session) -> None:
    rejected = session.call("info", model="plant.py:plant")
    assert rejected.is_error
    assert "start the server with --allow-python" in read_text(rejected)
    assert "start the server with --allow-python" in read_text(session.call("info", model="os:getcwd"))
    assert session.call("info", model="fmilin.systems:four_bar(loops=2)").structured_content["states"]
    with serve(session.folder, "--allow-python") as permitted:
        assert permitted.call("info", model="plant.py:plant").structured_content["states"]


def test_an_fmu_that_prints_does_not_disturb_the_protocol(session: Session, zoo: Callable[[str], Path]) -> None:
    shutil.copyfile(zoo("prints"), session.folder / "printer.fmu")
    answer = session.call("linearize", model="printer.fmu")
    assert not answer.is_error
    assert isinstance(answer.content[0], types.TextContent)
    assert json.loads(answer.content[0].text) == answer.structured_content


def test_a_call_that_hangs_blocks_no_other_and_ends_when_it_is_cancelled(session: Session) -> None:
    def list_commands() -> list[psutil.Process]:
        mine = [p for p in psutil.Process().children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE]
        return [p for p in mine if "hangs.fmu" in " ".join(p.cmdline())]

    call = session.portal.start_task_soon(partial(session.client.call_tool, "linearize", {"model": "hangs.fmu"}))
    wait_until(lambda: bool(list_commands()))
    assert session.call("info", model="pendulum.toml").structured_content["states"]
    assert not call.done()
    assert list_commands()
    call.cancel()
    wait_until(lambda: not list_commands())
    assert session.call("info", model="pendulum.toml").structured_content["states"]


def wait_until(is_over: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_over():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_command_may_have_a_deadline(session: Session) -> None:
    answer = session.call("linearize", model="hangs.fmu", deadline=0.5)
    assert answer.is_error
    assert "Exit status 6: the model crashed, hung or was killed, or the --deadline passed." in read_text(answer)


def test_each_tool_describes_its_parameters(session: Session) -> None:
    tools = {tool.name: tool for tool in session.portal.call(session.client.list_tools).tools}
    assert tuple(tools) == TOOLS
    for tool in tools.values():
        properties = tool.input_schema["properties"]
        assert all(len(schema["description"]) > 10 for schema in properties.values())
        assert all("type" in schema for schema in properties.values())
        assert not {"no_isolation", "allow_read", "allow_network", "scheduler", "compile"} & properties.keys()
    linearize = tools["linearize"].input_schema
    assert linearize["required"] == ["model"]
    assert linearize["properties"]["fix"]["type"] == "object"
    assert linearize["properties"]["free"]["type"] == "array"
    assert linearize["properties"]["time"]["type"] == "number"
    assert linearize["properties"]["coordinates"]["enum"] == ["partition", "tangent"]
    assert tools["verify"].input_schema["required"] == ["model", "linear"]
    hints = {name: tool.annotations.read_only_hint for name, tool in tools.items() if tool.annotations is not None}
    assert [name for name, hint in hints.items() if hint] == ["info", "explain"]


def test_arguments_become_a_command_line() -> None:
    arguments = {
        "model": "-o.fmu",
        "set": {"a": 1.5, "pos,x": -2, "on": True},
        "independent": ["q[1,2]", "theta=atan2(x,-y)"],
        "constraint": ["x + y", "x*y"],
        "trim": True,
        "discover": False,
        "no_constraints": None,
        "json": False,
    }
    assert write_command("linearize", {k: v for k, v in arguments.items() if v is not None}) == [
        "linearize",
        *("--set=a=1.5", "--set=`pos,x`=-2", "--set=on=true"),
        "--independent=`q[1,2]`,`theta=atan2(x,-y)`",
        *("--constraint=x + y", "--constraint=x*y"),
        "--trim",
        *("--", "-o.fmu"),
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("linearise", {}, "Did you mean 'linearize'?"),
        ("linearize", {"model": "a.fmu", "independant": ["x"]}, "Did you mean 'independent'"),
        ("linearize", {"model": "a.fmu", "no_isolation": True}, "only a person may set it"),
        ("linearize", {"model": "a.fmu", "no-isolation": True}, "only a person may set it"),
        ("linearize", {"model": "a.fmu", "trim": "yes"}, "must be true or false"),
        ("linearize", {"model": "a.fmu", "free": [["torque"]]}, "Give texts or numbers"),
        ("linearize", {"model": ["a.fmu", "b.fmu"], "x --no-isolation": 1}, "is not a parameter of 'linearize'"),
    ],
)
def test_wrong_arguments_are_rejected(name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        write_command(name, arguments)


def test_descriptions_are_short_enough_for_a_program_that_reads_all_of_them() -> None:
    assert sum(len(describe_tool(name).model_dump_json(exclude_none=True)) for name in TOOLS) < 60_000


def test_the_server_ends_with_its_input_and_prints_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "fmilin", "mcp", "--folder", str(tmp_path)]
    ended = subprocess.run(words, input=b"", capture_output=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_the_folder_must_exist_and_the_package_be_installed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["mcp", "--folder", str(tmp_path / "models")]) == 2
    assert "There is no folder" in capfd.readouterr().err
    monkeypatch.delitem(sys.modules, "fmilin.cli.tool_server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["mcp", "--folder", str(tmp_path)]) == 2
    assert capfd.readouterr().err == (
        "fmilin: 'fmilin mcp' needs the package mcp, version 2: pip install 'fmilin[mcp]'.\n"
    )
