"""Messages to the user about a result: remarks of the kinds of one table, not printed strings.

The page ``docs/reference/remarks.md`` is made from the table by ``python docs/remarks.py``. The file is
longer than others because it is one table, of every kind that a result may carry.
"""

from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass
from typing import Literal

from fmilin.errors import join_first
from fmilin.tolerances import EQUILIBRIUM_RATE_TOLERANCE


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of remark: a row of the table."""

    name: str
    meaning: str
    advice: str  # what to do
    scope: Literal["model", "point", "entry"] = "point"  # what it is true of: the model, the result at a point, entries
    severity: Literal["information", "warning"] = "warning"  # how a result was made, or what to beware of


ROWS = (
    # Of the model as a whole: interpolated models carry these on.
    Kind("model",
         "The model itself is peculiar: its file is odd in places, an input is at a limit or without effect, something "
         "in it is held, or the linear model was made from another build of it.",
         "Read the sentence, and correct the model or the way it is loaded where this is not what you meant.",
         scope="model"),
    Kind("rewritten",
         "Another program has saved the file from which the result was read, and the content does not fit the checksum "
         "that fmilin wrote.",
         "Take the file that fmilin wrote, where its numbers are meant. Otherwise nothing.", scope="model"),
    Kind("held",
         "Discrete variables keep the values that they have at the point, as between two events.",
         "Start from a point where they have other values if these are not the ones you want.",
         scope="model", severity="information"),
    Kind("memory",
         "Evaluated again at the same point, the model returns other values: it keeps something between calls.",
         "Repair the model, or take the error estimates seriously: they hold this where the sentence says so.",
         scope="model"),
    Kind("prescribed-motion",
         "Inputs prescribe positions or speeds: dependent states follow them at once (T_u), and the derivatives of "
         "these inputs are inputs of their own.",
         "Use `with_prescribed_states()` for a model in which all but the highest derivative are states.",
         scope="model"),
    Kind("conserved-quantity",
         "A declared velocity constraint is not linear in the velocities: it may be a conserved quantity, such as "
         "energy; or a model whose freedoms are known (an open tree, Lagrange's or Kane's equations without "
         "constraints) keeps a combination of its states, as momentum.",
         "Declare constraints only: a conserved quantity removes a true degree of freedom. Where nothing was declared: "
         "nothing.", scope="model"),
    Kind("dependent-states",
         "The model declares no constraints, but combinations of its states cannot change: momentum or the like is "
         "conserved, or states depend on each other, and some eigenvalues belong to no motion.",
         "`fl.discover(model)` distinguishes the cases and finds constraints; or declare them (`constraints=`).",
         scope="model"),
    # Of the result at its point: where it is, and how it was assembled.
    Kind("interrupted",
         "The work was interrupted half-way: the result is right as far as it goes, and tells what it lacks.",
         "Run it again, if you want the rest."),
    Kind("unchecked",
         "No check was run behind the computation, as `checks=\"none\"` asks: constraints, derivatives, the motion of "
         "the point and the accuracy of the entries were not verified.",
         "Linearize once with `checks=\"standard\"` before you rely on it."),
    Kind("off-equilibrium",
         "The point is no equilibrium. `f0` keeps the motion; with constraints `A` and its eigenvalues depend on the "
         "choice of coordinates.",
         "Trim first where an equilibrium or a steady motion is meant; otherwise use `f0` along with `A`."),
    Kind("steady",
         "The point is no equilibrium but a steady motion, along which `A` stays the same: its eigenvalues are those "
         "of the disturbed motion.",
         "Nothing; `f0` keeps the motion.", severity="information"),
    Kind("equilibrium-not-tested",
         "Whether the point is an equilibrium was not tested: nothing that was measured or read tells how it moves.",
         "Trim first, or read the rates of the nonlinear model at the point, where it matters.",
         severity="information"),
    Kind("periodic",
         "The point moves, and `A` changes along its motion: its eigenvalues are those of an instant, and say nothing "
         "of the stability of the motion.",
         "Use `fl.periodic_orbit(model)`, where the motion repeats; the sentence says by how much `A` changes."),
    Kind("multiple-period",
         "A periodic motion repeats itself several times within the period that was given or found.",
         "Give the shorter period that the sentence names, unless what forces the motion needs the longer one.",
         severity="information"),
    Kind("branch",
         "The mechanism can be assembled in several ways, or the branch of solutions that was followed ends here: this "
         "point may not be the one you think of.",
         "Look at the point; hold more states (`fl.operating_point(model, {'NAME': VALUE})`) to choose."),
    Kind("moved",
         "Start values that were given do not fit each other or the loops of the mechanism, and had to move.",
         "Give values that fit, or hold others: those of `independent` states keep theirs.", severity="information"),
    Kind("extrapolated",
         "An input of a table is outside of the table's data: the model extrapolates there.",
         "Give bounds (`bounds=`) or another guess where the data are meant to hold, or extend the table."),
    Kind("unit",
         "A state in rad was given a value of more than a turn: it may be meant in degrees.",
         "Give angles in the unit of the state."),
    Kind("singular",
         "Constraints that are independent elsewhere depend on each other here: the eigenvalues belong to an enlarged "
         "set of velocities, and the multipliers are not determined.",
         "Move the point, or rely only on what the sentence calls intrinsic (frequencies along a branch)."),
    Kind("rank",
         "How many constraints are independent is doubtful: the singular values have no clear gap.",
         "Check the order; move away from singular configurations, and give states nominal values of their size."),
    Kind("position",
         "The point satisfies all constraints, but some of them are nearly parallel: Newton's method sees a solution "
         "as far away as the sentence says, and could not go there.",
         "Leave redundant constraints out; write others so that they differ by more than rounding."),
    Kind("descriptor",
         "The linear model and the descriptor system of the equations as they are written, which are computed "
         "separately, do not agree.",
         "Trust neither before you know why: look for coefficients that nearly cancel, and for a singular point."),
    Kind("conditioning",
         "The independent coordinates determine the others badly here, or others had to be taken for that reason.",
         "Name other coordinates (`independent=`), such as those that the sentence proposes, or none."),
    Kind("coordinates-switched",
         "Along a path the coordinates stopped being regular: other ones are used from this point on.",
         "Do not compare matrices across the switch; tangent coordinates are regular everywhere."),
    Kind("no-response",
         "No input reaches any output here (all transfer functions are zero), or pulses were answered by nothing and "
         "the free motion was identified in their place.",
         "Choose other outputs or another point, start parts that are switched off, or see whether the outputs change "
         "at events only (`fl.Stepping(lifted=True)`)."),
    Kind("stuck",
         "Small pushes of inputs move nothing and larger ones do: friction at rest, or a dead zone.",
         "Take a point at which it moves, or replace the friction by a smooth one."),
    Kind("standing",
         "How feet that are held on the ground share the load, and the friction that they need.",
         "Compare the friction with that of the ground: the result holds while every foot pushes and none slides.",
         severity="information"),
    Kind("contact",
         "A foot that is held on the ground would have to be pulled, slides or tips over: the stance does not hold.",
         "Take another posture or other torques, or do not hold this foot."),
    # Of points that were solved for.
    Kind("unsteady",
         "States that should rest were seen to move when the motion was followed: it is steady at this instant only.",
         "Free more unknowns, or name as steady the states that may run."),
    Kind("rounding",
         "The balance is not met to 1e-10: noise or rounding in the model allows no better.",
         "Tighten the tolerance of solvers inside the model, or accept the residual."),
    Kind("multiple",
         "Several solutions meet at this one, or nearly (a double root): its slopes do not determine it.",
         "Look at what the sentence names: at a fold or a branching the linear model changes within its accuracy."),
    Kind("family",
         "The solution is one of a family: the values nearest to the guess were taken.",
         "Fix one of the variables that the sentence names (`fixed=`) to choose.", severity="information"),
    Kind("conserved",
         "A total of the states is the same along every motion, and the equilibrium has that of the start.",
         "Fix one of its states (`fixed=`) or start elsewhere (`guess=`) to choose another total.",
         severity="information"),
    Kind("unstable",
         "The equilibrium is unstable: eigenvalues of the model there have positive real parts.",
         "Start elsewhere (`guess=`) where a stable equilibrium is meant.", severity="information"),
    Kind("drift",
         "Deviations grow in proportion to time: a multiple eigenvalue at the stability limit has too few directions.",
         "Nothing, where a body may float, spin or roll away; else name what holds it.", severity="information"),
    Kind("pulses",
         "Something changes with time that does not say when, and short pulses of it may have been stepped over.",
         "Declare the knots of the input function, give inputs as a table, or limit the step.", severity="information"),
    Kind("time",
         "The model depends on time: this is an equilibrium at that time only.",
         "Say at which time you want it, or hold what changes with time."),
    Kind("least-squares",
         "Held feet leave a choice of inputs: those with the smallest contact forces were taken, or those nearest to "
         "the guess where a limit is in the way.",
         "Fix inputs to choose others.", severity="information"),
    # Of estimators.
    Kind("unobserved",
         "A mode that does not decay is seen by none of the measured outputs at the point.",
         "Measure what the mode moves, or let the motion excite it; the sentence names its states."),
    Kind("skipped",
         "Measurements were no numbers or out of the sensor's range, and were left out.",
         "Look at the sensor, and at the limits that were given for it."),
    Kind("diverging",
         "The innovations of a filter are much larger than it expects: it has lost the state, or the noise is larger.",
         "Reset it (`kf.reset(point)`), give it more noise, or let `fl.design.tuned_noise` estimate the noise."),
    # Of identified models: the method, and how well it fits.
    Kind("method",
         "By which method the model was identified, and over which step; or how its states are set.",
         "Nothing; `fl.Stepping(method=...)` chooses another one.", severity="information"),
    Kind("other-method",
         "A method was tried and left, and why.",
         "Nothing; `fl.Stepping(method=...)` insists on it.", severity="information"),
    Kind("way",
         "How the discrete model of a co-simulation was made; in older files what is now `method`.",
         "Nothing.", severity="information"),
    Kind("multiple-eigenvalues",
         "Eigenvalues coincide without as many eigenvectors: their mean alone has derivatives by parameters.",
         "Nothing, where these are positions and speeds of what moves freely; else look at a sweep.",
         severity="information"),
    Kind("loop",
         "A loop was cut at a wire: this is L, what comes back there for what is sent from there.",
         "Nothing; signs are as wired, S = 1/(1 - L). `fl.design.margins` tells how far it is from +1.",
         severity="information"),
    Kind("margins",
         "Two ways of computing a margin of a loop contradict each other, or rounding hides where the loop becomes "
         "unstable.",
         "Trust the smaller margin; `fl.audit(loop)` lists each number with its second way."),
    Kind("wire",
         "A wire was cut, or a signal added on it: from what to what the result leads.",
         "Nothing; signs are as wired, S = 1/(1 - L), T = 1 - S.", severity="information"),
    Kind("detour",
         "In older files what is now `other-method`.",
         "Nothing.", severity="information"),
    Kind("fit",
         "How well responses that were not used are predicted, or the small error of the model's own solver.",
         "Nothing; it tells what accuracy to expect.", severity="information"),
    Kind("order",
         "Which singular values the order was chosen from.",
         "Give `fl.Stepping(order=...)` where you know better.", severity="information"),
    Kind("sampling",
         "To which moment of a step the outputs belong.",
         "Nothing; `C` and `D` are meant as the sentence says.", severity="information"),
    Kind("repetition",
         "The measure that makes equal runs of the model give equal results.",
         "Nothing.", severity="information"),
    Kind("sampled",
         "Parts of the model are sampled. A continuous linear model holds them: loops through them are open in it.",
         "Take the discrete model over the base period: `fl.Stepping(lifted=True, step=PERIOD)`."),
    Kind("noise",
         "Equal runs differ by more than a hundredth of the responses.",
         "`fl.Stepping(method='multisine')` averages that."),
    Kind("poor-fit",
         "Responses that were not used are missed beyond noise: a kink, or motion that is not linear.",
         "Look at it before you rely on it: other steps, other sizes of pulses, another point."),
    Kind("order-beyond-noise",
         "More states were asked for than stand above noise and rounding: the other eigenvalues mean nothing.",
         "Choose a smaller `fl.Stepping(order=...)`."),
    Kind("short-record",
         "The runs were far shorter than motions that were found: these, or slower ones, may be wrong or missing.",
         "Take a longer `fl.Stepping(step=...)`, or leave it out."),
    Kind("unrepeatable",
         "Outputs that differ between equal runs from the same state were left out: clocks of the computer, counters, "
         "random numbers.",
         "Nothing, where that is what they are; name the outputs that you want with `outputs=`."),
    Kind("integrator",
         "The solver inside has a fixed step: which integrator it uses, how that was told, and that A and B are those "
         "of the plant behind it. `lin.discrete` is the discrete model over one of its steps.",
         "Nothing; `fl.Stepping(lifted=True)` returns the discrete model.", severity="information"),
    Kind("solver",
         "The model's own solver is coarse, or stands still between steps of its own: derivatives that can be read "
         "were trusted; else the model is that of its steps.",
         "Try a smaller tolerance: `FmuOptions(solver_tolerance=...)`."),
    # Of results that were made from others, or from a file.
    Kind("interpolated",
         "The linear model was interpolated between points of a family.",
         "Compare the errors that the sentence lists with what you need; add points to the grid."),
    Kind("reduced",
         "States were left out, and what that costs.",
         "Check the frequencies that matter to you against the full model."),
    Kind("minimal",
         "States that no input reaches or no output shows were dropped.",
         "Keep the full model where a dropped part grows: no controller can stabilize it."),
    Kind("zeros",
         "Zeros of a linear model are doubtful: two ways of computing one differ, or how many there are depends on "
         "couplings that may be zero.",
         "Take exact derivatives, give variables nominal values of their size, and set couplings that should be zero "
         "to zero."),
    Kind("zero-dynamics",
         "The linear model is the motion that remains while inputs hold outputs at their values of the point; its "
         "outputs are these inputs.",
         "Nothing.", severity="information"),
    Kind("modal",
         "Eigenvalues lie too close to be taken apart safely: one mode has several states.",
         "Treat these states as one mode."),
    Kind("aliasing",
         "A motion is faster than half the sampling frequency: samples show it as a slower one.",
         "Sample faster."),
    Kind("step",
         "Steps of the integrator are too long for the fastest motion: `A` changes when they are halved.",
         "Take more of them (`steps=`)."),
    Kind("point",
         "The file that the linear model was read from has no operating point: all values are deviations, and the "
         "accuracy is unknown.",
         "Keep the point elsewhere, or save in a format that has it."),
    Kind("ended",
         "The simulation ended early, and why.",
         "Look at the end of the trajectory."),
    Kind("horizon",
         "Verification followed the responses for less than the slowest mode needs: of it only the start was compared.",
         "Follow it for longer with `horizon=`."),
    # Of the general formulations (mcs, rcs, ucs).
    Kind("labels",
         "True and spurious eigenvalues are not clearly apart: which is which is doubtful, or there is no linear model "
         "without the spurious ones.",
         "Compare with the formulation mcs, or change the penalty as the sentence says."),
    Kind("penalty",
         "The penalty is so large that rounding spoils the true eigenvalues.",
         "Take a smaller alpha, or another formulation."),
    Kind("penalty-approximation",
         "Penalties stand in place of the constraints: the true eigenvalues are off by about what the sentence says.",
         "Take a larger alpha, or the formulation mcs or rcs."),
    # Of constraints that were looked for.
    Kind("nothing-moves",
         "Nothing moves around the point, whatever the states are and the inputs do: there is nothing to learn from.",
         "Give another point (`fl.operating_point(model, {'NAME': VALUE})`), or larger inputs (`excite=`)."),
    Kind("too-many-states",
         "Too many states hang together for the larger libraries of terms: only smaller ones were tried.",
         "Declare the constraints you know, and look for the others."),
    Kind("incomplete",
         "Directions seem to be kept for which no expression was found.",
         "For one linear model none is needed: `fmilin.discovery.tangent.linearize_on_tangent(model)`."),
    Kind("events",
         "Some of the sampled states lie beyond an event of the model.",
         "Nothing, if the constraints are meant to hold on both sides; otherwise move the point."),
    Kind("wrapped",
         "A measured angle jumped by a whole turn against its prediction, and its innovation is taken modulo a turn.",
         "Name the outputs that wrap when the filter is made (wrapped_outputs=), or none ([])."),
    Kind("tangent-only",
         "No constraint is known: how many states can move was found from the numbers at this point alone.",
         "Use the linear model at this point only; declare or discover constraints for others."),
    # Of single entries of the matrices.
    Kind("accuracy",
         "The estimated error of an entry is more than a thousandth of the largest entry of its row, responses tell "
         "that the solver inside is no better, or time was short for experiments.",
         "Give variables nominal values of their size, tighten the tolerance of solvers inside, provide exact "
         "derivatives, or allow more time (`fl.Stepping(budget=...)`).", scope="entry"),
    Kind("kink-branch",
         "A kink depends on several variables together: all slopes are those of the branch that the remark names.",
         "Compare with the other side (`one_sided='left'`, `'right'`), or move the point away from the kink.",
         scope="entry"),
    Kind("turn",
         "An output without a unit jumps by 360 at the point, and was taken for an angle in degrees that wraps.",
         "Give the output its unit (deg); leave it out, or move the point, where it is a switch.", scope="entry"),
    Kind("narrow",
         "A slope holds near the point only: farther away it is another one.",
         "Consider how far the motion goes before you rely on this entry.", scope="entry"),
    Kind("directional-derivative",
         "The directional derivative that the model provides is wrong: a difference on the manifold was used.",
         "Tell the maker of the model; `derivatives='differences'` avoids them.", scope="entry"),
)  # fmt: skip

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in ROWS}
"""Every kind of remark by its name, those of older files included."""
OF_ANOTHER_VERSION = Kind("", "A remark of another version of fmilin.", "Read its sentence.")
"""The row for a kind that appears only in a file."""

MOST_HELD = 12  # discrete variables that are listed


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that the user should know, which travels with a result; one that was read may have any kind."""

    kind: str  # what a program can test for: a name of the table
    message: str  # one sentence or two
    is_read: InitVar[bool] = False

    def __post_init__(self, is_read: bool) -> None:
        if not is_read and self.kind not in KINDS:
            raise ValueError(f"'{self.kind}' is no kind of remark: add it to the table in fmilin/diagnostics.py.")

    @property
    def is_information(self) -> bool:
        """Whether it says how a result was made, rather than what to beware of."""
        return self._row.severity == "information"

    @property
    def heading(self) -> str:
        """The word before its sentence: ``"Note"`` or ``"Warning"``."""
        return "Note" if self.is_information else "Warning"

    @property
    def speaks_of_the_model(self) -> bool:
        """Whether it is true of the model as a whole, rather than of the point or an entry there."""
        return self._row.scope == "model"

    @property
    def _row(self) -> Kind:
        return KINDS.get(self.kind, OF_ANOTHER_VERSION)

    def __str__(self) -> str:
        return self.message


def model_remarks(notes: Iterable[str]) -> list[Remark]:
    """Return the remarks on what a model notes of itself (:attr:`fmilin.Model.notes`)."""
    return [Remark("model", note) for note in notes]


def discrete_states_remarks(states: Mapping[str, str]) -> list[Remark]:
    """Return the remark about values, by name, that stay as they are between two events; none when nothing does."""
    if not states:
        return []
    values = join_first((f"{name} = {value}" for name, value in states.items()), MOST_HELD)
    return [Remark("held", f"Held as they are at the point, as between two events: {values}.")]


def off_equilibrium(
    what: str, meaning: str = "f0 keeps the motion; A and its eigenvalues depend on the choice of coordinates."
) -> Remark:
    """Return the remark on a point off equilibrium: ``what``, half a sentence, says what moves, or what was done."""
    return Remark("off-equilibrium", f"The point is no equilibrium: {what}. {meaning}".rstrip())


def equilibrium_not_tested(why: str) -> Remark:
    """Return the remark that nothing tells whether the point is an equilibrium; ``why``, half a sentence."""
    return Remark("equilibrium-not-tested", f"Whether the point is an equilibrium was not tested: {why}.")


def rate_of_change(name: str, rate: float, size: float = 0.0) -> str:
    """Say how fast a state or coordinate of some size changes: half a sentence for :func:`off_equilibrium`."""
    slowly = ", slowly, but no equilibrium is near" if abs(rate) <= EQUILIBRIUM_RATE_TOLERANCE * size else ""
    return f"'{name}' changes at {rate:.6g} per second{slowly}"


def inaccurate_entry(name: str, value: float, error: float, more: str = "") -> Remark:
    """Return the remark on an entry whose error is large beside its row; ``more``: how many others are alike."""
    return Remark(
        "accuracy", f"{name} = {value:.6g} is known to +-{error:.2g} only, beside the other entries of its row.{more}"
    )


def no_linear_model(reason: Exception, instead: str = "") -> Remark:
    """Return the remark on spurious eigenvalues that no linear model is without."""
    return Remark("labels", f"There is no linear model without the spurious eigenvalues: {reason}{instead}")


def swamping_penalty(alpha: float, loss: str) -> Remark:
    """Return the remark on a penalty that costs digits; ``loss``: how much of the eigenvalues, and what to do."""
    text = f"The penalty alpha = {alpha:g} swamps double precision: rounding may change the true eigenvalues {loss}"
    return Remark("penalty", text)
