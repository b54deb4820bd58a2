"""``fmilin mcp --folder DIR``: commands as tools of the Model Context Protocol, for programs that reason."""

from pathlib import Path

import click

from fmilin.cli.command import Command
from fmilin.cli.derive import OPTIONS, command_option, options_of_commands, switch, take
from fmilin.errors import UsageError


@options_of_commands
class ServerOptions:
    """The files and rights of the programs that call the tools."""

    folder: Path | None = command_option(
        None, "The files that the tools may use.", OPTIONS, "path", flag="--folder", metavar="DIR"
    )
    allow_python: bool = switch("Also load models in Python, which are programs with all your rights.", OPTIONS)


@click.command(cls=Command, examples=["fmilin mcp --folder models"])
@take("options", ServerOptions)
def command(options: ServerOptions) -> int:
    """Serve info, linearize, trim, verify, sweep, audit and explain as tools of the Model Context Protocol.

    A program starts this server, and calls the tools over standard input and output. They read and write files in
    DIR only. Needs fmilin[mcp].
    """
    try:
        from fmilin.cli.tool_server import serve
    except ImportError:
        raise UsageError("'fmilin mcp' needs the package mcp, version 2: pip install 'fmilin[mcp]'.") from None
    if options.folder is None:
        raise UsageError("Name the folder with the files that the tools may use: fmilin mcp --folder DIR.")
    if not options.folder.is_dir():
        raise UsageError(f"There is no folder '{options.folder}'. Name the one with the files that the tools may use.")
    serve(options.folder.resolve(), allow_python=options.allow_python)
    return 0
