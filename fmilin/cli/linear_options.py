"""Options about a linear model: how it is made of what is stepped or coupled, what is done to it, how it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import fmilin as fl
from fmilin.cli import options
from fmilin.cli.derive import (
    FILES,
    SMALLER,
    Command,
    Decorator,
    ValueReader,
    command_option,
    list_used_options,
    new_file,
    options_of_commands,
    switch,
    take,
    together,
)
from fmilin.diagnostics import Remark
from fmilin.errors import UsageError
from fmilin.formats import Writing, suffixes
from fmilin.options import Linearization, OptionDescription, Stepping, describe
from fmilin.options.function_options import WITHOUT_MEANING, WITHOUT_MEANING_IN_COMMANDS
from fmilin.options.groups import COSIMULATION, FORMULATIONS, LOOPS
from fmilin.support.dataclass import dataclass

if TYPE_CHECKING:
    from fmilin.formulations import Formulation
    from fmilin.linear_model.model import LinearModel
    from fmilin.model.interface import Model, OperatingPoint
    from fmilin.reduction.minimal import Conditioning


def combine_stepping(stepping: Stepping, order: str | None) -> Stepping | None:
    """Return how a stepped model is linearized, with the order of an identified model; None if nothing was given."""
    if order is not None and stepping.method in ("direct", "step"):
        raise UsageError(
            f"--order is for models identified from responses, --method {stepping.method} has the order of the FMU."
        )
    complete = stepping if order is None else replace(stepping, order=_read_order(order))
    return None if complete == Stepping() else complete


def _read_order(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(
            f"--order '{text}': a whole number, the order of an identified model. Members of a co-simulation go with "
            "--as-cosimulated --master gauss-seidel."
        ) from None


def _three_numbers(text: str, option: str) -> Any:
    refusal = f"{option} '{text}' is not ALPHA,XI,OMEGA: three numbers, as in {option} 1e6,1,10."
    return options.floats(text, ",", refusal, 3) or None


PENALTY = ValueReader(str, _three_numbers)


@options_of_commands
class FormulationChoices:
    """The options of a formulation of Lagrange's equations."""

    basis: str | None = command_option(
        None,
        "With mcs: method for the velocities that the constraints leave free.",
        FORMULATIONS,
        "choice",
        choices=("coordinates", "zero-eigenvalue", "svd", "qr", "gram-schmidt"),
    )
    spurious: str | None = command_option(
        None, "With rcs: location of the spurious eigenvalues.", FORMULATIONS, "choice", choices=("infinite", "zero")
    )
    penalty: tuple[float, float, float] | None = command_option(
        None,
        "With ucs: weight, damping ratio, rad/s.",
        FORMULATIONS,
        "numbers",
        metavar="ALPHA,XI,OMEGA",
        reading=PENALTY,
    )

    def check(self, formulation: str | None) -> None:
        """Raise UsageError if a choice of another formulation is given."""
        for name, owner in (("basis", "mcs"), ("spurious", "rcs"), ("penalty", "ucs")):
            if getattr(self, name) is not None and formulation not in (owner, "all"):
                raise UsageError(f"--{name} requires --formulation {owner} (or all). Leave it out or add that option.")

    def formulation(self, name: str) -> Formulation:
        """Return the formulation of this name."""
        from fmilin.formulations import MCS, RCS, UCS

        if name == "mcs":
            return MCS() if self.basis is None else MCS(self.basis)
        if name == "rcs":
            return RCS("zero" if self.spurious == "zero" else "infinite")
        return UCS() if self.penalty is None else UCS(*self.penalty)


def linearization_options(
    function: str = "linearize",
    *,
    omit_stepping: tuple[str, ...] = (),
    formulations: tuple[str, ...] = (),
) -> Decorator:
    """Return the options of a linearization that have a meaning in a function or command, which rejects the others.

    Of ``omit_stepping``, options of stepped models, the command has another one of the same name. ``formulations`` are
    those that it takes besides the ones that give a linear model.
    """
    without = WITHOUT_MEANING_IN_COMMANDS.get(function) or WITHOUT_MEANING[function]
    has_formulation = "formulation" not in without
    decorators = [
        take(
            "how",
            Linearization,
            omit=tuple(without),
            apart=("formulation",) if has_formulation else (),
            more_choices={"formulation": formulations} if has_formulation else {},
        )
    ]
    if has_formulation:
        decorators.append(take("choices", FormulationChoices))
    if "stepping" not in without:
        readings = {"order": ValueReader(str)}
        decorators.append(take("stepping", Stepping, omit=omit_stepping, apart=("order",), readings=readings))
    combined = together(*decorators)

    def decorate(command: Command) -> Command:
        taking = combined(command)
        taking.__dict__["reasons"] = explain_flags(without)
        return taking

    return decorate


def decorate_with_rejections(name: str) -> Decorator:
    """Return a decorator by which a command rejects options of a linearization with the reasons of the table."""

    def decorate(command: Command) -> Command:
        command.__dict__["reasons"] = explain_flags(WITHOUT_MEANING_IN_COMMANDS[name])
        return command

    return decorate


def decorate_with_delay_rejection(because: str) -> Decorator:
    """Return a decorator by which a command without a linearization rejects delays with a reason."""

    def decorate(command: Command) -> Command:
        command.__dict__["reasons"] = explain_flags({"delays": because})
        return command

    return decorate


def explain_rejections(function: str) -> dict[str, str]:
    """Return why options of a linearization have no meaning in a function, by option."""
    return explain_flags(WITHOUT_MEANING[function])


def explain_flags(reasons: Mapping[str, str]) -> dict[str, str]:
    """Return reasons that are given by keyword of a linearization by option."""
    return {flag: because for keyword, because in reasons.items() for flag in list_flags(keyword)}


def list_flags(keyword: str) -> list[str]:
    """Return the options by which a keyword of a linearization is given, with their former names."""
    return [flag for d in _descriptions(keyword) for flag in (d.option, *d.old_options) if flag is not None]


def _descriptions(keyword: str) -> tuple[OptionDescription, ...]:
    """Return the descriptions of the options by which a keyword of a linearization is given."""
    match keyword:
        case "stepping":
            return describe(Stepping)
        case "formulation":
            return (*(d for d in describe(Linearization) if d.keyword == keyword), *describe(FormulationChoices))
        case _:
            return tuple(d for d in describe(Linearization) if d.keyword == keyword)


def reject_options(reasons: Mapping[str, str], present_flag: str) -> None:
    """Raise UsageError if an option on the command line has no meaning together with another one."""
    for flag in list_used_options("how", "choices", "stepping"):
        if flag in reasons:
            raise UsageError(
                f"{flag} has no meaning with {present_flag}. {reasons[flag]} Leave it out of this command."
            )


def _range(text: str, option: str) -> Any:
    refusal = f"{option} '{text}' is not a range of frequencies in rad/s: write LOW:HIGH, for example 0:100."
    return options.floats(text, ":", refusal, 2) or None


@options_of_commands
class ConditioningOptions:
    """The options of the command line for processing a linear model."""

    minimal: bool = switch("Remove uncontrollable and unobservable states.", SMALLER)
    keep_frequencies: tuple[float, float] | None = command_option(
        None,
        "Keep the modes in this range of frequencies, in rad/s.",
        SMALLER,
        "special",
        metavar="LOW:HIGH",
        reading=ValueReader(str, _range),
    )
    reduce: int | None = command_option(
        None, "Truncate a balanced realization to this order.", SMALLER, "integer", metavar="ORDER"
    )
    keep_states: list[str] | None = command_option(
        None, "Keep these states of the model; their number is the order.", SMALLER, "names"
    )
    discretize: Literal["zoh", "foh", "tustin"] | None = command_option(
        None,
        "Sample: inputs are held (zoh), interpolated linearly (foh), or by Tustin's rule.",
        SMALLER,
        "choice",
        choices=("zoh", "foh", "tustin"),
    )
    sample_time: float | None = command_option(None, "In seconds.", SMALLER, "number", metavar="T")
    modal: bool = switch("One state per eigenvalue.", SMALLER)
    balance: Literal["nominals", "norms"] | None = command_option(
        None,
        "Divide states by their nominal values or by norms of A.",
        SMALLER,
        "choice",
        choices=("nominals", "norms"),
    )

    def to_conditioning(self) -> Conditioning | None:
        """Return what the options ask for; None when they ask for nothing."""
        if vars(self) == vars(ConditioningOptions()):
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


def condition_models(models: Sequence[LinearModel], steps: Conditioning | None) -> list[LinearModel]:
    """Return the models after the steps."""
    if steps is None:
        return list(models)
    if len(models) > 1 and (
        steps.minimal or steps.modal or steps.frequencies is not None or steps.order is not None or steps.states
    ):
        raise UsageError(
            "--minimal, --keep-frequencies, --reduce, --keep-states and --modal choose coordinates for one model, and "
            "those of several models would differ. Reduce them one by one."
        )
    return [steps.apply(model) for model in models]


def _platforms(text: str, option: str) -> tuple[str, ...]:
    """Return the platforms that were named; none means this machine."""
    platforms = tuple(options.names(text, option) or ())
    if platforms:
        from fmilin.fmi.platforms import machines

        machines(platforms)  # rejects names that are unknown or repeated
    return platforms


@options_of_commands
class FmuWriting:
    """How an FMU is written."""

    fmi: Literal["2.0", "3.0"] = command_option(
        "2.0", "Version of the standard, for .fmu.", FILES, "choice", choices=("2.0", "3.0")
    )
    platforms: tuple[str, ...] = command_option(
        (),
        "Platforms of the FMU: linux64,win64,darwin64,aarch64-linux,...; this machine by default. Others need "
        "fmilin[cross].",
        FILES,
        "names",
        reading=ValueReader(str, _platforms),
    )


@options_of_commands
class FileWriting(FmuWriting):
    """How a linear model is written."""

    deviation: bool = switch("Signals as deviations from the point, in formats that offer the choice.", FILES)
    modelica: Literal["blocks", "equations"] = command_option(
        "blocks",
        "Connectors of Modelica.Blocks.Interfaces, or plain inputs and outputs.",
        FILES,
        "choice",
        choices=("blocks", "equations"),
    )
    precision: Literal["double", "single"] = command_option(
        "double", "Precision of the numbers in C code.", FILES, "choice", choices=("double", "single")
    )

    def to_writing(self) -> Writing:
        """Return the options of the formats."""
        return Writing(
            deviation=self.deviation,
            modelica=self.modelica,
            precision=self.precision,
            fmi=self.fmi,
            platforms=self.platforms,
        )


@dataclass(frozen=True)
class CosimulationRequest:
    """A co-simulation that is to be linearized."""

    step: float
    master: str
    order: tuple[str, ...]
    plot: Path | None


@options_of_commands
class Coupled:
    """The options of the command line for a system of several members."""

    as_cosimulated: bool = switch(
        "Of a system: the discrete model of its co-simulation, including its delays.",
        COSIMULATION,
        conflicts="--lifted --method --amplitude --budget --integrator",
    )
    master: str | None = command_option(
        None,
        "Master of the co-simulation: jacobi (the default), or gauss-seidel, which steps members in the order that "
        "--order names.",
        COSIMULATION,
        "choice",
        choices=("jacobi", "gauss-seidel"),
        needs="--as-cosimulated",
    )
    plot: Path | None = new_file(
        "A picture: of the eigenvalues; with --as-cosimulated of the damping lost.", suffixes("picture")
    )

    def request(self, stepping: Stepping, member_order: str | None) -> CosimulationRequest | None:
        """Return what was asked for; None when nothing was."""
        if not self.as_cosimulated:
            return None
        if stepping.step is None:
            raise UsageError("--as-cosimulated needs the communication step: --step SECONDS.")
        master = self.master or "jacobi"
        order = tuple(options.names(member_order, "--order") or ())
        if order and master == "jacobi":
            raise UsageError("--order is for --master gauss-seidel: a Jacobi master steps all members at once.")
        return CosimulationRequest(stepping.step, master, order, self.plot)


@options_of_commands
class LoopCut:
    """Which loop of a system is cut, and which transfer function there is wanted."""

    loop_at: list[str] | None = command_option(
        None,
        "Of a system: the loop transfer L at wires, named by the inputs they end at, and its margins.",
        LOOPS,
        "names",
        conflicts="--sensitivity-at",
        because="They are two different results.",
    )
    sensitivity_at: list[str] | None = command_option(None, "Of a system: S = 1/(1 - L) at wires.", LOOPS, "names")
    open_at: list[str] | None = command_option(
        None, "Of a system: wires that are cut; each becomes an input.", LOOPS, "names", flag="--open"
    )
    continuous: bool = switch(
        "Of --loop-at, --sensitivity-at: a continuous approximation of sampled members.",
        LOOPS,
        needs="--loop-at --sensitivity-at",
    )

    def check(self) -> None:
        """Raise UsageError if an option of a linearization on the command line has no meaning for what is asked."""
        if self.sensitivity_at is not None:
            reject_options(explain_rejections("sensitivity"), "--sensitivity-at")
        elif self.loop_at is not None:
            reject_options(explain_rejections("loop_transfer"), "--loop-at")
        else:
            reject_options(explain_rejections("opened"), "--open")

    @property
    def wanted(self) -> bool:
        """Whether any wire is cut."""
        return any(names is not None for names in (self.loop_at, self.sensitivity_at, self.open_at)) or self.continuous

    def linear_model(self, model: Model, point: OperatingPoint, how: Linearization) -> LinearModel:
        """Return what is asked for; a loop has its margins among its diagnostics."""
        open_at = self.open_at or []
        if self.sensitivity_at is not None:
            return fl.sensitivity(
                model, self.sensitivity_at, point, opened=open_at, continuous=self.continuous, linearization=how
            )
        if self.loop_at is None:
            return fl.opened(model, open_at, point, linearization=how)
        loop = fl.loop_transfer(
            model, self.loop_at, point, opened=open_at, continuous=self.continuous, linearization=how
        )
        return replace(loop, warnings=(*loop.warnings, Remark("wire", str(fl.design.margins(loop)))))
