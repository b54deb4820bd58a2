"""Options about a model: what its file is asked for, its constraints, its point, and the limits it runs within."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli import options
from fmilin.cli.job_runner import Job, work
from fmilin.errors import UsageError
from fmilin.loading.request import is_fmu, is_system
from fmilin.sandbox.limits import Limits
from fmilin.trimming.request import TrimRequest

if TYPE_CHECKING:
    from fmilin.options import FmuOptions

TIMEOUT = 120.0  # seconds for a single call of an FMU's function, unless others are given

VERBOSE = click.option(
    "--verbose", is_flag=True, help="Say on standard error what is tried, and what an FMU's description departs in."
)
DEBUG = click.option("--debug", is_flag=True, help="Show tracebacks.")
PROJECT = click.option("--project", is_flag=True, help="Start from the nearest point that satisfies the constraints.")
UNPACK_LIMIT = click.option(
    "--unpack-limit", metavar="GIB", type=float, help="That an FMU's files may take unpacked; 4."
)
POINT = options.path_option("--point", "saved", metavar="FILE", help="A point that 'fmilin trim -o' saved: .toml .json")


@dataclass(frozen=True)
class FileOptions:
    """What stands on the command line about the model's file; its fields are options of :func:`fmilin.load`."""

    floating_base: bool = options.flag("Let the root link of a URDF file move freely.")
    fix_joint: Sequence[str] | None = options.names_field("Joints of a URDF file that stay where they are at zero.")
    hold: tuple[str, ...] = options.repeated(
        "FOOT[:point|:flat|:center|:lowest]",
        "Repeatable: a body, site, geom or marker that stays where it is at the point, as a foot on the ground.",
    )
    keyframe: str | None = options.option(metavar="NAME", help="Start at this keyframe of an MJCF file.")
    library: tuple[str, ...] = options.repeated(
        "FOLDER", "Repeatable: libraries of a Modelica model are in here; also those of MODELICAPATH."
    )

    def given(self) -> dict[str, Any]:
        """Return ``options`` of :func:`fmilin.load`: those that were given."""
        return {name: value for name, value in vars(self).items() if value}


file_options = options.grouped("opened", FileOptions)
"""Gives a command the parameter ``opened``."""


@dataclass(frozen=True)
class Constraints:
    """What stands on the command line about constraints."""

    constraint: tuple[str, ...] = options.repeated("TEXT", "Repeatable: an expression or a variable that must be zero.")
    constraints: Path | None = options.option(by=options.path_option, metavar="FILE.toml", help="The same from a file.")
    no_constraints: bool = False

    def expressions(self) -> list[str] | None:
        """Return the expressions; None for those that come with the model, the empty list for none at all."""
        if self.no_constraints and (self.constraint or self.constraints):
            raise UsageError("--no-constraints contradicts --constraint and --constraints. Leave one of them out.")
        return [] if self.no_constraints else list(self.constraint) or None


def constraints_options(without: str) -> options.Decorator:
    """Return the options of :class:`Constraints`; the help explains ``--no-constraints`` by ``without``."""
    return options.grouped("constrained", Constraints, click.option("--no-constraints", is_flag=True, help=without))


def _bounds(texts: Sequence[str], option: str) -> dict[str, tuple[float, float]]:
    """Return ``NAME=LO:HI`` as a pair by name; a missing side is infinite."""
    bounds: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, equals, pair = text.rpartition("=")
        low, colon, high = pair.partition(":")
        if not (equals and colon and name.strip()):
            raise UsageError(f"{option} '{text}' is no NAME=LO:HI. Write for example {option} torque=-5:5.")
        name = name.strip().strip("`")
        if name in bounds:
            raise UsageError(f"{option}: '{name}' has bounds twice. Keep one pair.")
        sides = [options.assignments([f"side={s}"], option)["side"] if s.strip() else None for s in (low, high)]
        bounds[name] = (-math.inf if sides[0] is None else sides[0], math.inf if sides[1] is None else sides[1])
    return bounds


def _assigned(texts: Sequence[str], option: str) -> dict[str, float]:
    """Return ``A=VALUE,B=VALUE`` texts as values by name."""
    return options.assignments([item for text in texts for item in options.names(text, option) or []], option)


def _guesses(texts: Sequence[str], option: str) -> list[dict[str, float]]:
    return [options.assignments(options.names(text, option) or [], option) for text in texts]


@dataclass(frozen=True)
class TrimOptions:
    """What stands on the command line about the point that is looked for."""

    fix: Mapping[str, float] = options.repeated(
        "NAME=VALUE,...",
        "Repeatable: what has this value: a state, input, parameter, output, any variable or der(STATE).",
        _assigned,
    )
    free: Sequence[str] | None = options.names_field("Inputs and parameters to solve for; states are free.")
    steady: Sequence[str] | None = options.names_field("States that may move: rolling, turning, cruising.")
    bound: Mapping[str, tuple[float, float]] = options.repeated(
        "NAME=LO:HI", "Repeatable: bounds of what is free or comes out; one side may be left out.", _bounds
    )
    near: Mapping[str, float] = options.repeated(
        "NAME=VALUE,...", "Repeatable: what comes as near to this value as it can.", _assigned
    )
    minimize: str | None = options.option(metavar="EXPRESSION", help="What is to be small where freedoms are left.")
    stable: bool = options.flag("Look for a rest at which the motion stays.")
    # one search each; empty: one search from where the model starts
    guess: Sequence[Mapping[str, float]] = options.repeated(
        "A=VALUE,B=...", "Where to start; repeat it to look for several points.", _guesses
    )

    def with_settings(self, settings: Mapping[str, float]) -> dict[str, float]:
        """Return what ``--set`` and ``--fix`` say together."""
        if both := sorted(settings.keys() & self.fix.keys()):
            raise UsageError(f"'{both[0]}' has a value both in --set and in --fix. Leave one of them out.")
        return dict(settings) | dict(self.fix)

    def request(self) -> TrimRequest:
        """Return the trim problem, without what is set."""
        free, steady = self.free or (), self.steady or ()
        return TrimRequest(
            self.fix, steady, free, self.bound, minimize=self.minimize, near=self.near, stable=self.stable
        )

    def of_point(self, settings: Mapping[str, float], *, trim: bool) -> dict[str, Any]:
        """Return the fields of :class:`~fmilin.trimming.request.PointRequest` for one point, trimmed or not."""
        for_trims = (self.free, self.steady, self.bound, self.near, self.minimize, self.stable, self.guess)
        if not trim and any(for_trims):
            for_trims_only = "--free, --steady, --bound, --near, --minimize, --stable and --guess"
            raise UsageError(f"{for_trims_only} are for trimmed points: add --trim.")
        if len(self.guess) > 1:
            raise UsageError("Here one guess is enough: give --guess once. 'fmilin trim' looks for several points.")
        guess = self.guess[0] if self.guess else {}
        return {"settings": self.with_settings(settings), "trim": self.request() if trim else None, "guess": guess}


trim_options = options.grouped("trimming", TrimOptions)


@dataclass(frozen=True)
class Running:
    """Where and within which limits a model runs."""

    no_isolation: bool = options.flag("Load the FMU in this process instead of a child.")
    timeout: float = options.option(
        metavar="S", default=TIMEOUT, help="Seconds that a single call of the FMU may take; 0: no limit."
    )
    memory: float | None = options.option(
        metavar="GIB", type=float, help="Memory that the FMU's process may take; nine tenths of what is free."
    )
    compile_sources: bool = options.option(
        "--compile", is_flag=True, help="Compile an FMU's C sources when it has no binary for this platform."
    )
    unpack_limit: float | None = None
    solver_tolerance: float | None = options.option(
        metavar="R",
        type=float,
        help="Relative tolerance that a co-simulation FMU's solver is asked for; 1e-10; 0: its own.",
    )
    allow_read: tuple[Path, ...] = options.repeated(
        "PATH", "Repeatable: a file or folder that the FMU may read.", by=options.path_option
    )
    allow_env: tuple[str, ...] = options.repeated("NAME", "Repeatable: an environment variable that the FMU may see.")
    allow_network: bool = options.flag("Let the FMU use the network, as for a licence server.")
    verbose: bool = False
    debug: bool = False

    def fmu(self) -> FmuOptions | None:
        """Return how an FMU is opened; None as usual."""
        limit, tolerance = self.unpack_limit, self.solver_tolerance
        if limit is None and tolerance is None and not self.compile_sources:
            return None
        from fmilin.fmi.read.archive import GIB
        from fmilin.options import FmuOptions

        fmu = FmuOptions(compile_sources=self.compile_sources)
        if limit is not None:
            if not (math.isfinite(limit) and limit > 0):
                raise UsageError(f"--unpack-limit {limit}: give GiB, more than 0.")
            fmu = replace(fmu, most_bytes=limit * GIB)
        if tolerance is not None:
            if not 0 <= tolerance < 1:
                raise UsageError(f"--solver-tolerance {tolerance}: give a number between 0 and 1, such as 1e-8.")
            fmu = replace(fmu, solver_tolerance=tolerance or None)
        return fmu

    def work(self, job: Job, model: str) -> int:
        """Do ``job`` with ``model``, in a child process when it is an FMU or has some, and return the exit status."""
        if self.verbose:
            import logging

            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("fmilin: %(message)s"))
            log = logging.getLogger("fmilin")
            log.addHandler(handler)
            log.setLevel(logging.INFO)
        isolate = (is_fmu(model) or is_system(model)) and not self.no_isolation
        return work(job, isolate=isolate, debug=self.debug, limits=self.limits())

    def limits(self) -> Limits:
        """Return what the model may take, and what it may reach."""
        if not (math.isfinite(self.timeout) and self.timeout >= 0):
            raise UsageError(f"--timeout {self.timeout}: give seconds, or 0 for no limit.")
        if self.memory is not None and not (math.isfinite(self.memory) and self.memory > 0):
            raise UsageError(f"--memory {self.memory}: give GiB, more than 0.")
        if missing := [path for path in self.allow_read if not path.exists()]:
            raise UsageError(f"--allow-read '{missing[0]}': there is no such file or folder.")
        return Limits(
            self.timeout or None,
            None if self.memory is None else self.memory * 2**30,
            read=tuple(path.resolve() for path in self.allow_read),
            network=self.allow_network,
            environment=self.allow_env,
            caged=not self.no_isolation,
        )


running_options = options.grouped("running", Running, UNPACK_LIMIT, VERBOSE, DEBUG)


def of_model(without: str) -> options.Decorator:
    """Return the options about the model itself and how it runs; ``without`` as for :func:`constraints_options`."""
    return options.together(constraints_options(without), file_options, running_options)


COORDINATES = options.choice_option(
    "--coordinates", "How coordinates are chosen when none are named.", "partition", "tangent", default="partition"
)
SLOPES = "Exact directional derivatives, or differences on the manifold."
DERIVATIVES = options.choice_option("--derivatives", SLOPES, "auto", "exact", "differences", default="auto")
INTERFACE = options.choice_option(
    "--interface", "Of an FMU: model exchange or co-simulation; model exchange where it has both.", "me", "cs"
)
INPUTS_OVER_TIME = options.path_option(
    "--input", "inputs", metavar="FILE.csv", help="Inputs over time: a column 'time', and one per input."
)
of_model_options = options.together(
    of_model("Of a model: treat all states as independent."),
    options.names_option("--independent", "Of a model: states to keep as coordinates."),
    options.settings_option("Of a model: a start value, parameter or input."),
    options.TIME,
    POINT,
    click.option("--trim", is_flag=True, help="Of a model: at the equilibrium nearest to the point."),
    PROJECT,
)
"""Of a command that shows something of a model, which it linearizes first."""
