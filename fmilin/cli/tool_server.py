"""The server of ``fmilin mcp``: each tool is a command, its parameters are the options, its answer is the output.

A call runs in a process of its own, because a command takes standard output, signals and the working directory for
itself. So several calls run at a time, and a call that is cancelled ends, whatever it computes.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import click
from mcp import types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server

from fmilin.adapters.registry import chosen_adapter
from fmilin.cli.command import list_model_files
from fmilin.cli.confined import require_confined
from fmilin.cli.derive import DerivedOption
from fmilin.cli.duration import GRACE_SECONDS
from fmilin.cli.main import COMMANDS, EXIT_STATUSES, program
from fmilin.cli.options import NewFile
from fmilin.errors import UnknownNameError, UsageError
from fmilin.loading.load import is_python
from fmilin.options.groups import FMU_PROCESS
from fmilin.support.files import temporary_folder
from fmilin.version import __version__

TOOLS = ("info", "linearize", "trim", "verify", "sweep", "audit", "explain")
WITHHELD_OPTIONS = ("--compile", "--scheduler", "--debug", "--verbose")
"""Options that reach beyond the folder (a compiler reads any file) or are for people; so are those of FMU_PROCESS."""

OWN_SYSTEMS = "fmilin.systems:"  # models in Python that come with fmilin

RUN_CONFINED = (
    "import pathlib, sys; from fmilin.cli.confined import confine_files; confine_files(pathlib.Path(sys.argv.pop(1))); "
    "from fmilin.__main__ import run; run()"
)
"""Python's program for a command, with the folder as the first argument."""

INSTRUCTIONS = """\
Tools for linear models of constrained dynamic systems (FMUs, mechanisms, robots, systems of FMUs). Each tool is the
command 'fmilin NAME', and returns its JSON. Paths are relative to one folder; files elsewhere cannot be used. Begin
with 'info'. 'linearize' returns A, B, C, D, the eigenvalues, error estimates and warnings; with output=["plant.json"]
it also writes a file that 'verify' compares with the nonlinear model, and that 'audit' checks by a second computation.
A failed call says what is wrong, where, and what to do; an option that it names, such as --tangent-only, is the
parameter tangent_only.
"""


def serve(folder: Path, *, allow_python: bool) -> None:
    """Serve the tools over standard input and output until the input ends."""
    with temporary_folder() as temporary:
        environment = {name: str(temporary) for name in ("TMPDIR", "TEMP", "TMP")} | {"PYTHONIOENCODING": "utf-8"}
        asyncio.run(_ToolServer(folder, os.environ | environment, allow_python=allow_python).run())


class _ToolServer:
    """The server of a folder, and the processes of its calls."""

    def __init__(self, folder: Path, environment: Mapping[str, str], *, allow_python: bool) -> None:
        self._folder = folder
        self._environment = environment
        self._allow_python = allow_python
        self._cancelled: set[asyncio.subprocess.Process] = set()

    async def run(self) -> None:
        """Answer requests until the input ends; no process is left then."""
        server = Server(
            "fmilin",
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        async with stdio_server() as (requests, answers):
            await server.run(requests, answers, server.create_initialization_options())
        if self._cancelled:
            await asyncio.wait([asyncio.create_task(p.wait()) for p in self._cancelled], timeout=GRACE_SECONDS)
        for process in list(self._cancelled):
            self._kill(process)

    async def _list_tools(
        self, _: ServerRequestContext, __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[describe_tool(name) for name in TOOLS])

    async def _call_tool(self, _: ServerRequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        try:
            words = write_command(params.name, arguments)
            for file in self._list_files(params.name, arguments):
                require_confined(self._folder, file)
        except UsageError as error:
            return _answer(UsageError.exit_status, "", f"fmilin: {error}")
        try:
            return _answer(*await self._run(words))
        except (OSError, ValueError) as error:  # a text that no command line can hold, or too many processes
            return _answer(UsageError.exit_status, "", f"fmilin: The command cannot be started: {error}.")

    def _list_files(self, name: str, arguments: Mapping[str, Any]) -> Iterator[str]:
        """Return all paths that the arguments of a call name; raise UsageError for Python where it is not allowed."""
        for key, parameter in list_parameters(name).items():
            texts = _write_values(key, arguments.get(key), is_repeatable=_is_repeatable(parameter))
            is_model = parameter.name == "model" or parameter.metavar == "MODEL"
            if is_model or parameter.metavar == "FOLDER" or isinstance(parameter.type, click.Path):
                yield from texts
            for text in texts if is_model else ():
                yield from map(str, list_model_files(text))
                runs_python = is_python(text) and not text.startswith(OWN_SYSTEMS) and chosen_adapter(text) is None
                if runs_python and not self._allow_python:
                    raise UsageError(
                        f"'{text}' is a program in Python, and would run with all rights of the user. Use a model in a "
                        "file of another kind, or ask the user to start the server with --allow-python."
                    )

    async def _run(self, words: Sequence[str]) -> tuple[int, str, str]:
        """Run a command and return its exit status, its output and its messages; end it where the call is cancelled."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-c", RUN_CONFINED, str(self._folder), *words),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._folder,
            env=self._environment,
        )
        try:
            out, err = await process.communicate()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.terminate()
            self._cancelled.add(process)
            asyncio.get_running_loop().call_later(GRACE_SECONDS, self._kill, process)
            raise
        return process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace")

    def _kill(self, process: asyncio.subprocess.Process) -> None:
        self._cancelled.discard(process)
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()


def _answer(status: int, out: str, err: str) -> types.CallToolResult:
    """Return the answer of a tool: the output of the command, its messages, and the meaning of its exit status."""
    meaning = f"Exit status {status}: {EXIT_STATUSES.get(status, 'see the message')}." if status else ""
    messages = "\n".join(text for text in (err.strip(), meaning) if text)
    try:
        document = json.loads(out)
    except ValueError:
        document = None
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text) for text in (out, messages) if text],
        structured_content=document if isinstance(document, dict) else None,
        is_error=status != 0,
    )


@cache
def list_parameters(name: str) -> Mapping[str, click.Parameter]:
    """Return the parameters of a tool by name: the arguments and the options of its command."""
    parameters = {_get_flag(parameter): parameter for parameter in _get_command(name).params}
    withheld_options = _list_withheld_options(name)
    return {
        flag.removeprefix("--").replace("-", "_"): parameter
        for flag, parameter in parameters.items()
        if flag not in withheld_options
    }


def _list_withheld_options(name: str) -> list[str]:
    """Return the options of a command that are not parameters of its tool."""
    options = [option for option in _get_command(name).params if isinstance(option, DerivedOption)]
    return [option.flag for option in options if option.group == FMU_PROCESS or option.flag in WITHHELD_OPTIONS]


def _get_command(name: str) -> click.Command:
    command = program.get_command(click.Context(program), name) if name in TOOLS else None
    if command is None:
        raise UnknownNameError.among(name, TOOLS, "a tool")
    return command


def _get_flag(parameter: click.Parameter) -> str:
    return parameter.flag if isinstance(parameter, DerivedOption) else parameter.opts[0]


@cache
def describe_tool(name: str) -> types.Tool:
    """Return the description of a tool: the help of its command, and a schema of its parameters."""
    parameters = list_parameters(name)
    return types.Tool(
        name=name,
        title=COMMANDS[name].rstrip("."),
        description=_get_command(name).help,
        input_schema={
            "type": "object",
            "properties": {key: _describe_parameter(parameter) for key, parameter in parameters.items()},
            "required": [key for key, parameter in parameters.items() if parameter.required],
            "additionalProperties": False,
        },
        annotations=types.ToolAnnotations(
            read_only_hint=not any(isinstance(parameter.type, NewFile) for parameter in parameters.values())
        ),
    )


_NAMES = {"type": "array", "items": {"type": "string"}}
_VALUES = {"type": "object", "additionalProperties": {"type": ["number", "boolean"]}}
_SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "switch": {"type": "boolean"},
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "names": _NAMES,
    "assignments": _VALUES,
    "assignment lists": _VALUES,
}
"""By kind of an option; the others are texts, or lists of texts, as on the command line."""


def _describe_parameter(parameter: click.Parameter) -> dict[str, Any]:
    """Return the schema of an argument or an option."""
    if not isinstance(parameter, click.Option):
        return {"type": "string", "description": f"{(parameter.name or '').upper()}, a path in the folder."}
    kind = parameter.kind if isinstance(parameter, DerivedOption) else "number"
    text = (parameter.help or "").removeprefix("Repeatable: ")
    schema: dict[str, Any] = dict(_SCHEMAS.get(kind, _NAMES if parameter.multiple else {"type": "string"}))
    if isinstance(parameter.type, click.Choice):
        schema["enum"] = list(parameter.type.choices)
    elif kind not in _SCHEMAS and parameter.metavar not in (None, "TEXT", "NAME", "FILE"):
        text += f" Written as {parameter.metavar}"
    if parameter.name is not None and parameter.name.endswith("as_json"):
        schema["default"] = True
    return {**schema, "description": text[:1].upper() + text[1:]}


def write_command(name: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the command line of a call, without the program; its values are checked by the command."""
    parameters = list_parameters(name)
    options: list[str] = []
    operands: list[str] = []
    for key, value in {"json": True, **arguments}.items():
        flag = f"--{key.replace('_', '-')}"
        if flag in _list_withheld_options(name):
            raise UsageError(
                f"The option {flag} is not a parameter of '{name}': only a person may set it. Leave it out."
            )
        if key not in parameters:
            raise UnknownNameError.among(key, parameters, f"a parameter of '{name}'")
        parameter = parameters[key]
        if not isinstance(parameter, click.Option):
            continue
        if parameter.is_flag:
            options += [flag] if _require_switch(key, value) else []
        else:
            texts = _write_values(key, value, is_repeatable=_is_repeatable(parameter))
            options += [f"{flag}={text}" for text in texts]
    for key, parameter in parameters.items():
        if not isinstance(parameter, click.Option):
            operands += _write_values(key, arguments.get(key), is_repeatable=False)
    return [name, *options, "--", *operands]


def _is_repeatable(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and parameter.multiple


def _require_switch(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(
            f"'{key}' is {json.dumps(value)}, and must be true or false. Give one of the two, or leave it out."
        )
    return value


def _write_values(key: str, value: Any, *, is_repeatable: bool) -> list[str]:
    """Return the texts of a value for the command line: one for each item where the option may be repeated."""
    match value:
        case None:
            return []
        case dict():
            return [f"{_quote(name)}={_write_value(key, item)}" for name, item in value.items()]
        case list() if is_repeatable:
            return [_write_value(key, item) for item in value]
        case list():
            return [",".join(_quote(_write_value(key, item)) for item in value)]
        case _:
            return [_write_value(key, value)]


def _write_value(key: str, value: Any) -> str:
    if isinstance(value, dict | list) or value is None:
        raise UsageError(f"'{key}' contains {json.dumps(value)}. Give texts or numbers, as its schema says.")
    return value if isinstance(value, str) else json.dumps(value)


def _quote(name: str) -> str:
    """Return a name as the command line reads it: in backquotes if it contains a comma."""
    return f"`{name}`" if "," in name else name
