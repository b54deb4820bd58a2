"""The options of a command under headings: those of every day first, at most fourteen below each.

A new option needs no entry: without one it counts among those of every day of its command.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

FIRST = "Options"
EVERY_DAY = {
    "linearize": "-o --json --set --trim --fix --free --constraint --discover --independent --inputs --outputs --point",
    "info": "--json --run --check",
    "discover": "--excite --set -o --json",
    "explain": "--input --output --set --trim --fix --free --point --json",
    "trim": "--fix --free --steady --bound --near --minimize --stable --guess --set -o --json",
    "sweep": "--vary --zip --trim --fix --free --independent --inputs --outputs -o --plot --json --jobs --resume",
    "simulate": "--stop-time --start-time --input --set -o --plot --against --outputs --method --step --tolerance",
    "floquet": "--period --turn --fix --free --steady --set --vary -o --plot --json --points --independent",
    "verify": "--horizon --plot --json",
    "plot": "--kind -o --against --mode --amplitude --stop-time --quantity --orders --hertz --inputs --outputs",
    "explore": "--set --trim --fix --free --independent --inputs --outputs --point --no-browser",
    "report": "-o --against --verify --horizon --inputs --outputs",
    "spectrum": "--around --count --formulation --penalty --set --json",
    "build": "-o --fmi --platforms --no-directional-derivatives",
    "convert": "-o --grid",
}
"""By command: those of the first heading that stand below another one elsewhere, in their order."""

GROUPS = {
    "Model and constraints": "--constraint --constraints --no-constraints --discover --tangent-only --floating-base "
    "--fix-joint --hold --keyframe --library --interface --compile",
    "Operating point": "--set --time --point --trim --fix --free --steady --bound --near --minimize --stable --guess "
    "--simulate-to --simulate-until --snapshots --input --project",
    "Coordinates, signals and slopes": "--independent --coordinates --inputs --outputs --derivatives --keep-inaccurate "
    "--one-sided --hold-modes --at-singularity --parameters",
    "Loops of connected systems": "--loop-at --sensitivity-at --open",
    "Smaller, sampled or scaled": "--minimal --keep-frequencies --reduce --discretize --sample-time --modal --balance",
    "Files": "--plot --deviation --modelica --precision --fmi --platforms --sparsity",
    "Co-simulation": "--method --step --lifted --amplitude --order --as-cosimulated --master --solver-tolerance",
    "Formulations of Lagrange's equations": "--formulation --basis --spurious --penalty",
    "Motion": "--segments --tolerance --stabilization --longest-step --energy --keep-energy",
    "Many processes": "--jobs --scheduler --resume --strict",
    "The FMU's process": "--no-isolation --timeout --memory --unpack-limit --allow-read --allow-env --allow-network",
    "Messages and limits": "--json --verbose --debug --deadline --help",
}
_GROUP_OF = {name: title for title, names in GROUPS.items() for name in names.split()}


def grouped(command: str, options: Sequence[click.Parameter]) -> dict[str, list[click.Parameter]]:
    """Return the options of a command by heading, both in the order in which its help shows them."""
    everyday = EVERY_DAY.get(command, "").split()
    groups: dict[str, list[click.Parameter]] = {title: [] for title in (FIRST, *GROUPS)}
    for option in options:
        title = next((_GROUP_OF[name] for name in option.opts if name in _GROUP_OF), FIRST)
        groups[FIRST if set(option.opts) & set(everyday) else title].append(option)
    groups[FIRST].sort(key=lambda o: next((i for i, name in enumerate(everyday) if name in o.opts), len(everyday)))
    return {title: members for title, members in groups.items() if members}
