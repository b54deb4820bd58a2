"""``fmilin``: the program, and ``--install-completion``. Each command is a module that imports nothing heavy."""

import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from fmilin.cli.duration import read_deadline, within
from fmilin.cli.job_runner import failure
from fmilin.cli.streams import escape_standard_error, open_missing, silence
from fmilin.errors import UsageError, nearest_names
from fmilin.support.files import write_atomically
from fmilin.support.interrupts import forget
from fmilin.version import __version__

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_FMILIN_COMPLETE"  # the environment variable by which the shell's function asks
_AUTOMATIC = "the shell in use"


def completion_option() -> click.Option:
    """Return ``--install-completion [SHELL]``, which installs and ends."""

    def run(context: click.Context, _: click.Parameter, shell: str | None) -> None:
        if shell is None or context.resilient_parsing:
            return
        click.echo(install(context.find_root().command, "" if shell == _AUTOMATIC else shell), err=True)
        context.exit()

    return click.Option(
        ["--install-completion"],
        metavar="[bash|zsh|fish]",
        is_flag=False,
        flag_value=_AUTOMATIC,
        expose_value=False,
        callback=run,
        help="Let the shell complete commands, options and files, and end.",
    )


def install(program: click.Command, shell: str = "") -> str:
    """Write the completion script of a shell, SHELL's by default, have the shell read it, and return what was done."""
    shell = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(shell)
    if shell not in SHELLS or kind is None:
        named = f"'{shell}' is" if shell else "The shell in use is not known; it is"
        raise UsageError(
            f"{named} not a shell for which completion exists. Name one: --install-completion bash, zsh or fish."
        )
    script = kind(program, {}, "fmilin", VARIABLE).source()
    home = Path.home()
    if shell == "fish":
        path = Path(os.environ.get("XDG_CONFIG_HOME", home / ".config")) / "fish" / "completions" / "fmilin.fish"
        _write(path, script)
        return f"Completion for fish is in {path}. Open a new shell to use it."
    path = Path(os.environ.get("XDG_DATA_HOME", home / ".local" / "share")) / "fmilin" / f"completion.{shell}"
    start = Path(os.environ.get("ZDOTDIR", home)) / ".zshrc" if shell == "zsh" else home / ".bashrc"
    line = f"source '{path}'  # completion of fmilin"
    if shell == "zsh":
        line = f"autoload -Uz compinit && compinit; {line}"
    _write(path, script)
    before = _read_text(start)
    if line not in before.splitlines():
        _write(start, before + ("\n" if before and not before.endswith("\n") else "") + line + "\n")
    return f"Completion for {shell} is in {path}, and {start} reads it. Open a new shell to use it."


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read '{path}': {error}. Make it readable, or choose another shell.") from None


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"Cannot make the folder '{path.parent}': {error.strerror}. Create it, or make its parent writable."
        ) from None
    write_atomically(path, text.encode())


COMMANDS = {
    "linearize": "A linear model at an operating point.",
    "info": "Contents of a model.",
    "discover": "Constraints that a model does not declare.",
    "explain": "Why an input does not move an output.",
    "trim": "An equilibrium or a steady motion.",
    "floquet": "A motion that repeats, and its stability.",
    "sweep": "Linear models at many operating points.",
    "simulate": "Integrate on the manifold; compare with a linear model.",
    "verify": "A linear model against the nonlinear one.",
    "design": "A regulator with margins, as C code or an FMU.",
    "audit": "Check every number of a result by a second method.",
    "plot": "Pictures of linear models, families and mechanisms.",
    "mcp": "Commands as tools for programs that reason.",
    "explore": "A page with sliders, in the browser.",
    "report": "A linear model or a family as one page.",
    "spectrum": "A few eigenvalues of a large constrained system.",
    "build": "A native description as an FMU.",
    "convert": "Between the formats of linear models.",
    "adapters": "Engines with files that can be read here.",
    "demo": "Build, linearize and draw a four-bar linkage.",
    "examples": "List the examples, and copy one.",
}
"""Each is the module of that name next to this one, with a click command ``command``."""

EXIT_STATUSES = {
    0: "done",
    2: "the command line is wrong",
    3: "the model cannot be read or fails to initialize",
    4: "the constraints are wrong",
    5: "numerical failure",
    6: "the model crashed, hung or was killed, or the --deadline passed",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program, with the shell's arguments by default, and return its exit status."""
    open_missing()
    with escape_standard_error():
        return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    forget()
    os.umask(os.umask(0o077) & ~0o700)  # files that their owner may not read would be of no use to the next command
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words and VARIABLE not in os.environ:
        with redirect_stdout(sys.stderr):
            program.main(["--help"], prog_name="fmilin", standalone_mode=False)
        return 2
    return within(read_deadline(words), lambda: _run(words))


def _run(arguments: list[str]) -> int:
    try:
        status = program.main(arguments, prog_name="fmilin", standalone_mode=False)
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        text = " ".join(error.format_message().split()).rstrip(".")
        end = "" if text.endswith("?") else "."
        sys.stderr.write(f"fmilin: {text}{end} See '{context.command_path if context else 'fmilin'} --help'.\n")
        return 2
    except click.Abort as error:  # what click makes of an interrupt, or of a deadline
        return failure(error.__cause__ or error, debug="--debug" in arguments)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - becomes one paragraph and an exit status
        if isinstance(error, OSError):
            silence(sys.stdout)
        return failure(error, debug="--debug" in arguments)
    return status if isinstance(status, int) else 0


class _CommandGroup(click.Group):
    """The commands, each imported when it is asked for: only the one that is called costs time."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called; a misspelt name is answered with the nearest ones."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            if near := nearest_names(args[0], COMMANDS):
                listed = " or ".join(f"'{name}'" for name in near)
                raise click.UsageError(f"No such command '{args[0]}'. Did you mean {listed}?", ctx) from None
            raise

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"fmilin.cli.{cmd_name}").command
        command.short_help = COMMANDS[cmd_name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=_CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    help="Correct linear models of constrained dynamic systems: FMUs and mechanisms with more states than degrees of "
    "freedom.",
    epilog=f"Exit status: {'; '.join(f'{status} {meaning}' for status, meaning in EXIT_STATUSES.items())}.",
)
@click.version_option(__version__, message="%(prog)s %(version)s", help="Print the version and end.")
def program() -> None:
    """Correct linear models of constrained dynamic systems."""


program.params.append(completion_option())
