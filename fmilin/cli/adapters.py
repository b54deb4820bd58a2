"""``fmilin adapters``: the engines with files that can be read here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fmilin.cli.command import Command
from fmilin.cli.derive import json_switch, options_of_commands, take
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.model_options import DEBUG, Debugging
from fmilin.errors import FmilinError

if TYPE_CHECKING:
    from fmilin.adapters.registry import Installed

Row = dict[str, Any]


@options_of_commands
class Shown:
    """How the adapters are shown."""

    as_json: bool = json_switch("The same as one JSON document on standard output.")


@click.command(cls=Command, examples=["fmilin adapters"])
@take("listing", Shown)
@DEBUG
def command(listing: Shown, debugging: Debugging) -> int:
    """List the installed adapters: what they read, the engine they run on, and what they are missing."""

    def job(runner: JobRunner) -> None:
        from fmilin.adapters.registry import PUBLISHED, installed_adapters

        rows = [_row(installed) for installed in installed_adapters()]
        if listing.as_json:
            runner.print_json({"adapters": rows})
            return
        if not rows:
            runner.results.write("No adapter is installed. FMUs, Python models and mechanisms need none.\n")
            for adapter in PUBLISHED:
                runner.results.write(
                    f"For {adapter.engine} ({', '.join(adapter.suffixes)}): pip install {adapter.distribution}\n"
                )
        for row in rows:
            what = row["problem"] or f"{row['description']}: {', '.join(row['suffixes'])}"
            engine = f"; {row['engine']}" if row["engine"] else ""
            runner.results.write(f"{row['name']:<12} {row['distribution']}{engine}\n{'':<12} {what}\n")

    return work(job, debug=debugging.debug)


def _row(installed: Installed) -> Row:
    row: Row = {"name": installed.name, "distribution": installed.distribution}
    row |= {"description": "", "suffixes": [], "engine": "", "problem": ""}
    try:
        adapter = installed.adapter()
        return row | {
            "description": adapter.description, "suffixes": list(adapter.suffixes), "engine": adapter.engine(),
        }  # fmt: skip
    except FmilinError as error:
        return row | {"problem": str(error)}
