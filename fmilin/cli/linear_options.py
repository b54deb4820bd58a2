"""Options about a linear model: how it is made of what is stepped or coupled, what is done to it, how it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

import fmilin as fl
from fmilin.cli import options
from fmilin.cli.options import flag, grouped, names, names_field, number_field, one_of, option, read_by
from fmilin.diagnostics import Remark
from fmilin.errors import UsageError
from fmilin.formats import Writing

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel
    from fmilin.model.interface import Model, OperatingPoint
    from fmilin.options import Stepping
    from fmilin.reduction.minimal import Conditioning


@dataclass(frozen=True)
class Stepped:
    """What stands on the command line about a model that is stepped."""

    method: str = option(
        "--method",
        "--way",
        cls=options.Renamed,
        type=one_of("auto", "direct", "step", "response", "multisine"),
        default="auto",
        help="Of a co-simulation FMU: how the linear model is made; the first that works.",
    )
    step: float | None = option(metavar="SECONDS", type=float, help="Of a co-simulation: the communication step.")
    lifted: bool = flag("The discrete model over one step, the base period of a sampled model.")
    amplitude: float | None = number_field(
        "A", "Of a co-simulation: by how much inputs are moved at most, in their units."
    )
    budget: float = number_field("S", "Of a co-simulation FMU: processor time for experiments.", default=20.0)
    integrator: str | None = option(
        type=one_of(
            "euler",
            "semi-implicit-euler",
            "positions-first-euler",
            "implicit-euler",
            "trapezoid",
            "rk2",
            "rk3",
            "rk4",
            "exact",
        ),
        help="Of a co-simulation FMU with a fixed step: its integrator, where responses do not tell it.",
    )
    order: str | None = option(
        metavar="N|A,B,...",
        help="Of an identified model, chosen from singular values otherwise; of a Gauss-Seidel master: its members.",
    )

    def stepping(self) -> Stepping | None:
        """Return what was asked for; None when nothing was."""
        if self == Stepped():
            return None
        order = None if self.order is None else _number(self.order)
        if self.order is not None and self.method in ("direct", "step"):
            raise UsageError(
                f"--order is for models identified from responses, --method {self.method} has the order of the FMU."
            )
        from fmilin.options import Stepping

        return Stepping(
            self.method, self.step, self.lifted, order, self.amplitude, self.budget, integrator=self.integrator
        )


stepping_options = grouped("stepped", Stepped)


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(
            f"--order '{text}': a whole number, the order of an identified model. Members of a co-simulation go with "
            "--as-cosimulated --master gauss-seidel."
        ) from None


def _range(text: str | None, option: str) -> Any:
    refusal = f"{option} '{text}' is no range of frequencies in rad/s: write LOW:HIGH, for example 0:100."
    return options.floats(text, ":", refusal, 2) or None


@dataclass(frozen=True)
class Steps:
    """What stands on the command line about what is done to a linear model."""

    minimal: bool = flag("Leave out what no input reaches or no output shows.")
    keep_frequencies: tuple[float, float] | None = option(
        metavar="LOW:HIGH", help="Keep the modes of these rad/s.", callback=read_by(_range)
    )
    reduce: int | None = option(metavar="ORDER", type=int, help="Truncate a balanced realization to this order.")
    keep_states: list[str] | None = names_field("Keep these states of the model, as many as the order is to be.")
    discretize: Literal["zoh", "foh", "tustin"] | None = option(
        type=one_of("zoh", "foh", "tustin"), help="Sample; inputs are held, straight lines, or as Tustin has it."
    )
    sample_time: float | None = number_field("T", "In seconds.")
    modal: bool = flag("One state per eigenvalue.")
    balance: Literal["nominals", "norms"] | None = option(
        type=one_of("nominals", "norms"), help="Divide states by their nominal values or by norms of A."
    )

    def conditioning(self) -> Conditioning | None:
        """Return what the options ask for; None when they ask for nothing."""
        if self == Steps():
            return None
        from fmilin.reduction.minimal import Conditioning

        return Conditioning(
            minimal=self.minimal,
            frequencies=self.keep_frequencies,
            order=self.reduce,
            states=tuple(self.keep_states or ()),
            hold=self.discretize,
            sample_time=self.sample_time,
            modal=self.modal,
            balance=self.balance,
        )


steps_options = grouped("steps", Steps)


def conditioned(models: Sequence[LinearModel], steps: Conditioning | None) -> list[LinearModel]:
    """Return the models after the steps."""
    if steps is None:
        return list(models)
    if len(models) > 1 and (
        steps.minimal or steps.modal or steps.frequencies is not None or steps.order is not None or steps.states
    ):
        raise UsageError(
            "--minimal, --keep-frequencies, --reduce, --keep-states and --modal choose coordinates for one model: "
            "those of several models would not fit together. Reduce them one by one."
        )
    return [steps.applied(model) for model in models]


def _platforms(text: str | None, option: str) -> tuple[str, ...]:
    """Return the platforms that were named; none means this machine."""
    platforms = tuple(names(text, option) or ())
    if platforms:
        from fmilin.fmi.platforms import machines

        machines(platforms)  # refuses what is unknown or named twice
    return platforms


FMI = click.option("--fmi", type=one_of("2.0", "3.0"), default="2.0", help="Version of the standard, for .fmu.")
PLATFORMS = click.option(
    "--platforms",
    metavar="A,B,...",
    help="What an FMU runs on: linux64,win64,darwin64,aarch64-linux,...; this machine by default. Others need "
    "fmilin[cross].",
    callback=read_by(_platforms),
)
writing_options = grouped(
    "writing",
    Writing,
    click.option(
        "--deviation", is_flag=True, help="Signals in deviations from the point, where a format has the choice."
    ),
    click.option(
        "--modelica",
        type=one_of("blocks", "equations"),
        default="blocks",
        help="Connectors of Modelica.Blocks.Interfaces, or plain inputs and outputs.",
    ),
    click.option("--precision", type=one_of("double", "single"), default="double", help="Of the numbers in C code."),
    FMI,
    PLATFORMS,
    apart=("name", "sample_time", "embedded"),
)


@dataclass(frozen=True)
class Wanted:
    """A co-simulation that is to be linearized."""

    step: float
    master: str
    order: tuple[str, ...]
    plot: Path | None


@dataclass(frozen=True)
class Coupled:
    """What stands on the command line about a system of several members."""

    as_cosimulated: bool = flag("Of a system: the discrete model of its co-simulation, with its delays.")
    master: str | None = option(type=one_of("jacobi", "gauss-seidel"), help="Of the co-simulation; jacobi.")
    plot: Path | None = None

    def request(self, stepped: Stepped) -> Wanted | None:
        """Return what was asked for; None when nothing was."""
        if not self.as_cosimulated:
            if self.master is not None:
                raise UsageError("--master goes with --as-cosimulated. Add it, or leave it out.")
            return None
        if stepped.step is None:
            raise UsageError("--as-cosimulated needs the communication step: --step SECONDS.")
        if stepped.lifted or stepped.method != "auto":
            raise UsageError("--as-cosimulated does not go with --lifted or --method. Leave them out.")
        master = self.master or "jacobi"
        order = tuple(names(stepped.order, "--order") or ())
        if order and master == "jacobi":
            raise UsageError("--order is for --master gauss-seidel: a Jacobi master steps all members at once.")
        return Wanted(stepped.step, master, order, self.plot)


composition_options = grouped(
    "coupled",
    Coupled,
    options.picture_option("A picture: of the eigenvalues; with --as-cosimulated of the damping lost."),
)


@dataclass(frozen=True)
class Cut:
    """Which loop of a system is cut, and which transfer function there is wanted."""

    loop_at: list[str] | None = names_field(
        "Of a system: L at wires, named by the inputs they end at, and its margins."
    )
    sensitivity_at: list[str] | None = names_field("Of a system: S = 1/(1 - L) at wires.")
    open_at: list[str] | None = option(
        "--open",
        metavar="A,B,...",
        help="Of a system: wires that are cut; each becomes an input.",
        callback=read_by(names),
    )

    continuous: bool = flag("Of --loop-at, --sensitivity-at: a continuous approximation of sampled members.")

    def check(self, others: Mapping[str, object]) -> None:
        """Make sure that one transfer function is asked for, and nothing that contradicts it."""
        if self.loop_at is not None and self.sensitivity_at is not None:
            raise UsageError("--loop-at and --sensitivity-at ask for two different results. Leave one of them out.")
        between = self.loop_at is not None or self.sensitivity_at is not None
        if self.continuous and not between:
            raise UsageError("--continuous goes with --loop-at or --sensitivity-at. Leave it out.")
        names = "--loop-at or --sensitivity-at" if between else "--open"
        if wrong := [option for option, given in others.items() if given]:
            raise UsageError(f"{wrong[0]} does not go with {names}. Leave one of them out.")

    @property
    def wanted(self) -> bool:
        """Whether any wire is cut."""
        return any(names is not None for names in (self.loop_at, self.sensitivity_at, self.open_at)) or self.continuous

    def linear_model(self, model: Model, point: OperatingPoint) -> LinearModel:
        """Return what is asked for; of a loop its margins are told."""
        open_at = self.open_at or []
        if self.sensitivity_at is not None:
            return fl.sensitivity(model, self.sensitivity_at, point, opened=open_at, continuous=self.continuous)
        if self.loop_at is None:
            return fl.opened(model, open_at, point)
        loop = fl.loop_transfer(model, self.loop_at, point, opened=open_at, continuous=self.continuous)
        return replace(loop, warnings=(*loop.warnings, Remark("wire", str(fl.design.margins(loop)))))


cut_options = grouped("cut", Cut)
