"""Options about a model: its file, its constraints, its point, and the limits within which it runs."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fmilin.cli import options
from fmilin.cli.derive import (
    MESSAGES,
    Decorator,
    ValueReader,
    command_option,
    options_of_commands,
    switch,
    take,
    together,
)
from fmilin.cli.job_runner import Job, work
from fmilin.errors import UsageError
from fmilin.fmi.client.restrictions import DEFAULT_SECONDS, MAX_PROCESSES, Limits
from fmilin.options import FmuOptions, Loading, SourceOptions
from fmilin.options.groups import FMU_PROCESS, MODEL, POINT
from fmilin.trimming.trim_request import PointRequest, TrimRequest

BYTES_PER_GIB = 2**30
NO_CONSTRAINTS = "Treat all states as independent, as other tools do."


INPUTS_OVER_TIME: Path | None = command_option(
    None,
    "Inputs over time: a column 'time', and one per input.",
    POINT,
    "path",
    flag="--input",
    metavar="FILE.csv",
)
"""A field for ``--input``."""


@options_of_commands
class Debugging:
    """The options for showing failures of a command."""

    debug: bool = switch("Show tracebacks.", MESSAGES)


@options_of_commands
class Running(Debugging):
    """Where and within which limits a model runs, and what is said meanwhile."""

    no_isolation: bool = switch("Run the FMU's process without restrictions.", FMU_PROCESS)
    # limits() says what is wrong with values that are not finite.
    timeout: float = command_option(
        DEFAULT_SECONDS,
        "Seconds that a single call of the FMU may take; 0: no limit.",
        FMU_PROCESS,
        "number",
        metavar="S",
        reading=ValueReader(float, shows_default=True),
    )
    memory: float | None = command_option(
        None,
        "Memory limit of the FMU's process; 90 % of the free memory by default.",
        FMU_PROCESS,
        "number",
        metavar="GIB",
        reading=ValueReader(float),
    )
    allow_read: tuple[Path, ...] = command_option((), "A file or folder that the FMU may read.", FMU_PROCESS, "paths")
    allow_env: tuple[str, ...] = command_option(
        (), "An environment variable that the FMU may see.", FMU_PROCESS, "texts", metavar="NAME"
    )
    allow_network: bool = switch("Let the FMU use the network, as for a licence server.", FMU_PROCESS)
    allow_processes: bool = switch("Let the FMU start other processes.", FMU_PROCESS)
    verbose: bool = switch(
        "Report each attempt, and deviations of an FMU from the standard, on standard error.", MESSAGES
    )

    def work(self, job: Job) -> int:
        """Do ``job``, with FMUs under the limits that are asked for, and return the exit status."""
        if not self.verbose:
            return work(job, debug=self.debug, limits=self.limits())
        import logging

        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("fmilin: %(message)s"))
        log = logging.getLogger("fmilin")
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        try:
            return work(job, debug=self.debug, limits=self.limits())
        finally:
            log.removeHandler(handler)

    def limits(self) -> Limits:
        """Return what an FMU may take, and what it may reach."""
        if not (math.isfinite(self.timeout) and self.timeout >= 0):
            raise UsageError(f"--timeout {self.timeout}: give seconds, or 0 for no limit.")
        if self.memory is not None and not (math.isfinite(self.memory) and self.memory > 0):
            raise UsageError(f"--memory {self.memory}: give GiB, more than 0.")
        if missing := [path for path in self.allow_read if not path.exists()]:
            raise UsageError(f"--allow-read '{missing[0]}': there is no such file or folder.")
        return Limits(
            seconds=self.timeout or None,
            memory=None if self.memory is None else self.memory * BYTES_PER_GIB,
            processes=MAX_PROCESSES if self.allow_processes else 0,
            read=tuple(path.resolve() for path in self.allow_read),
            network=self.allow_network,
            environment=self.allow_env,
            unrestricted=self.no_isolation,
        )


@options_of_commands
class DeclarationOptions:
    """The options for the constraints that a model declares."""

    no_constraints: bool = switch(NO_CONSTRAINTS, MODEL, conflicts="--constraint --constraints")

    @property
    def declares_none(self) -> bool:
        """Whether the constraints that the model declares are not used."""
        return self.no_constraints

    @property
    def ignores_constraints(self) -> bool:
        """Whether the directions of motion are to be found without constraints."""
        return False


@options_of_commands
class DiscoveryOptions(DeclarationOptions):
    """The options for the constraints of a model, declared or not."""

    discover: bool = switch(
        "Find constraints that the model does not declare, and use them.",
        MODEL,
        conflicts="--constraint --constraints",
    )

    @property
    def declares_none(self) -> bool:
        """Whether the constraints that the model declares are not used."""
        return self.no_constraints or self.discover


@options_of_commands
class Replacement(DiscoveryOptions):
    """The options that replace the constraints of a model."""

    tangent_only: bool = switch(
        "Find the directions of motion from numbers, without constraints.",
        MODEL,
        conflicts="--discover --constraint --constraints --open --loop-at --sensitivity-at --as-cosimulated",
    )

    @property
    def declares_none(self) -> bool:
        """Whether the constraints that the model declares are not used."""
        return self.no_constraints or self.discover or self.tangent_only

    @property
    def ignores_constraints(self) -> bool:
        """Whether the directions of motion are to be found without constraints."""
        return self.tangent_only


@options_of_commands
class Trimming:
    """Whether the point is an equilibrium or a steady motion."""

    trim: bool = switch("Find the equilibrium nearest to the point first.", POINT)


@options_of_commands
class Carrying:
    """Where the nonlinear model runs before it is linearized."""

    simulate_to: float | None = command_option(
        None, "Simulate the nonlinear model from the point to this time first.", POINT, "number", metavar="T"
    )
    simulate_until: str | None = command_option(
        None, 'The same until a condition holds, such as "x > 3", or until after the first "event".', POINT, "text"
    )


def source_options(opened: SourceOptions) -> dict[str, Any]:
    """Return ``options`` of :func:`fmilin.load`: those that were given."""
    source_settings = {name: getattr(opened, name) for name in SourceOptions.__dataclass_fields__}
    return {name: value for name, value in source_settings.items() if value}


def _bytes(gib: float, option: str) -> float:
    if not (math.isfinite(gib) and gib > 0):
        raise UsageError(f"{option} {gib}: give GiB, more than 0.")
    return gib * BYTES_PER_GIB


def _tolerance(value: float, option: str) -> float | None:
    if not 0 <= value < 1:
        raise UsageError(f"{option} {value}: give a number between 0 and 1, such as 1e-8.")
    return value or None


UNPACK_LIMIT = ValueReader(float, _bytes)
SOURCE_OPTIONS = take("opened", SourceOptions)
FMU_OPTIONS = take(
    "fmu", FmuOptions, readings={"most_bytes": UNPACK_LIMIT, "solver_tolerance": ValueReader(float, _tolerance)}
)
RUNNING = take("running", Running)
DEBUG = take("debugging", Debugging)


def model_options(declaration: type[DeclarationOptions] = DeclarationOptions) -> Decorator:
    """Return the options about a model itself and how it runs."""
    return together(
        take("loading", Loading, omit=("parameters",)),
        take("declaration", declaration),
        SOURCE_OPTIONS,
        FMU_OPTIONS,
        RUNNING,
    )


TRIM_OPTIONS = take(
    "problem", TrimRequest, omit=("time",), readings={"bounds": ValueReader(str, options.bounds, is_repeatable=True)}
)
GUESSES = ValueReader(str, options.guesses, is_repeatable=True)
POINT_OPTIONS = together(
    take("point", PointRequest, apart=("guess",), readings={"guess": GUESSES}), take("trimming", Trimming), TRIM_OPTIONS
)
"""The options of one point, which may be trimmed."""


def add_trim(
    point: PointRequest, guess: Sequence[Mapping[str, float]], problem: TrimRequest, *, trim: bool
) -> PointRequest:
    """Return the point with the equilibrium or steady motion that is to be found there, if any."""
    for_trims = (
        problem.free,
        problem.steady,
        problem.bounds,
        problem.near,
        problem.minimize,
        problem.stable,
        guess,
    )
    if not trim and any(for_trims):
        raise UsageError(
            "--free, --steady, --bound, --near, --minimize, --stable and --guess are for trimmed points: add --trim."
        )
    if len(guess) > 1:
        raise UsageError("Here one guess is enough: give --guess once. 'fmilin trim' searches for several points.")
    settings = add_fixed(point.settings, problem)
    start = guess[0] if guess else {}
    return PointRequest(
        settings=settings,
        time=point.time,
        project=point.project,
        saved=point.saved,
        guess=start,
        trim=problem if trim else None,
    )


def add_fixed(settings: Mapping[str, float], problem: TrimRequest) -> dict[str, float]:
    """Return what ``--set`` and ``--fix`` say together."""
    if both := sorted(settings.keys() & problem.fixed.keys()):
        raise UsageError(f"'{both[0]}' has a value both in --set and in --fix. Leave one of them out.")
    return dict(settings) | dict(problem.fixed)
