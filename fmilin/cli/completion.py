"""``fmilin --install-completion``: commands, options and files are completed by the shell from then on."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from fmilin.ground.errors import UsageError
from fmilin.ground.files import write_atomically

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
        raise UsageError(f"{named} none that can be completed here. Name one: --install-completion bash, zsh or fish.")
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
    before = _text_of(start)
    if line not in before.splitlines():
        _write(start, before + ("\n" if before and not before.endswith("\n") else "") + line + "\n")
    return f"Completion for {shell} is in {path}, and {start} reads it. Open a new shell to use it."


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read '{path}': {error}. Make it readable, or choose another shell.") from None


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"Cannot make the folder '{path.parent}': {error.strerror}.") from None
    write_atomically(path, text.encode())
