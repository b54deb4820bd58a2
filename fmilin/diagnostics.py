"""Messages to the user about a result: diagnostics of the kinds of one table, not printed strings.

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
    """One kind of diagnostic: a row of the table."""

    name: str
    meaning: str
    advice: str  # what to do
    scope: Literal["model", "point", "entry"] = "point"  # what it is true of: the model, the result at a point, entries
    severity: Literal["information", "warning"] = "warning"  # how a result was made, or what to beware of


ROWS = (
    # Of the model as a whole: interpolated models carry these on.
    Kind("model",
         "A peculiarity of the model: an irregular file, an input at a limit or without effect, a held quantity, "
         "another build.",
         "Correct the model or its options if this is not intended.", scope="model"),
    Kind("rewritten",
         "Another program has saved the file: its content does not fit fmilin's checksum.",
         "Use fmilin's own file if you want its numbers.", scope="model"),
    Kind("held",
         "Discrete variables keep their values at the point.",
         "Start from a point with the values you want.", scope="model", severity="information"),
    Kind("memory",
         "Evaluated again at the same point, the model returns other values.",
         "Repair the model, or heed the error estimates if the message says that they include this.", scope="model"),
    Kind("prescribed-motion",
         "Inputs prescribe positions or speeds. Dependent states follow them at once (T_u); their derivatives are "
         "further inputs.",
         "`with_prescribed_states()` makes all but the highest derivative states.", scope="model"),
    Kind("conserved-quantity",
         "A declared velocity constraint is not linear in the velocities and may be a conserved quantity, such as "
         "energy; or a model with a known number of degrees of freedom conserves a combination of its states, such "
         "as momentum.",
         "Declare constraints only: a conserved quantity removes a degree of freedom.", scope="model"),
    Kind("dependent-states",
         "No constraint is declared, but combinations of states cannot change: momentum is conserved, or states "
         "depend on each other and some eigenvalues are spurious.",
         "`fl.discover(model)` distinguishes the cases; or declare constraints (`constraints=`).", scope="model"),
    # Of the result at its point: where it is, and how it was assembled.
    Kind("interrupted",
         "The computation was interrupted. The result is correct; the message lists the missing parts.",
         "Run it again."),
    Kind("unchecked",
         "No check was run (`checks=\"none\"`): constraints, derivatives, the motion of the point and the accuracy "
         "are not verified.",
         "Linearize once with `checks=\"standard\"`."),
    Kind("off-equilibrium",
         "The point is not an equilibrium: with constraints `A` and its eigenvalues depend on the coordinates.",
         "Trim first, or use `f0` along with `A`."),
    Kind("steady",
         "The point is in a steady motion, along which `A` stays the same.",
         "Nothing.", severity="information"),
    Kind("equilibrium-not-tested",
         "The data do not show whether the point is an equilibrium.",
         "Trim first, or evaluate the nonlinear model at the point.", severity="information"),
    Kind("periodic",
         "The point moves, and `A` changes along its motion: its eigenvalues do not determine the stability of the "
         "motion.",
         "Use `fl.periodic_orbit(model)` if the motion is periodic."),
    Kind("multiple-period",
         "A periodic motion repeats itself within its period.",
         "Give the shorter period in the message, unless the excitation has the longer one.", severity="information"),
    Kind("branch",
         "The mechanism has several assemblies, or the branch of solutions ends here.",
         "Fix more states (`fl.operating_point(model, {'NAME': VALUE})`) to choose."),
    Kind("moved",
         "Contradictory start values were changed.",
         "Give consistent values; `independent` states keep theirs.", severity="information"),
    Kind("extrapolated",
         "An input of a table is outside of the table's data.",
         "Give bounds (`bounds=`) or a guess within the data, or extend the table."),
    Kind("unit",
         "A state in rad exceeds a turn: it may be in degrees.",
         "Give angles in the unit of the state."),
    Kind("singular",
         "Constraints that are independent elsewhere depend on each other here: the eigenvalues belong to an "
         "enlarged set of velocities, the multipliers are not determined.",
         "Move the point, or rely only on the values that the message calls intrinsic."),
    Kind("rank",
         "The number of independent constraints is doubtful: the singular values have no clear gap.",
         "Avoid singular configurations, and give states nominal values of their size."),
    Kind("position",
         "The point satisfies all constraints, but some are nearly parallel: Newton's method predicts another "
         "solution at the distance in the message.",
         "Omit redundant constraints; let others differ by more than rounding."),
    Kind("descriptor",
         "The linear model and the descriptor system of the equations as written, computed separately, disagree.",
         "Look for coefficients that nearly cancel, and for a singular point."),
    Kind("conditioning",
         "The independent coordinates determine the others badly, or others were chosen for that reason.",
         "Name other coordinates (`independent=`), such as those in the message."),
    Kind("coordinates-switched",
         "The coordinates became singular along a path: others are used from here on.",
         "Compare no matrices across the switch; tangent coordinates are regular everywhere."),
    Kind("no-response",
         "No input reaches any output, or pulses had no response and the free motion was identified.",
         "Choose other outputs or another point; outputs may change at events only (`fl.Stepping(lifted=True)`)."),
    Kind("stuck",
         "Only larger changes of inputs have an effect: static friction, or a dead zone.",
         "Choose a point at which it moves, or a smooth friction."),
    Kind("standing",
         "The load on each held foot, and the friction that it needs, while no foot lifts off or slides.",
         "Nothing.", severity="information"),
    Kind("contact",
         "A held foot would have to be pulled, slides or tips over.",
         "Choose another configuration or other torques, or release this foot."),
    # Of points that were solved for.
    Kind("unsteady",
         "States that should be constant moved in a simulation from the point.",
         "Free more unknowns, or name states that may change as steady."),
    Kind("rounding",
         "Noise or rounding in the model keeps the residual above 1e-10.",
         "Tighten the tolerance of solvers inside the model, or accept the residual."),
    Kind("multiple",
         "Several solutions meet at this one, or nearly (a double root): at a fold or bifurcation the linear model "
         "changes within its accuracy.",
         "Check the variables in the message."),
    Kind("family",
         "The solution is the one of a family nearest to the guess.",
         "Fix one of the variables in the message (`fixed=`) for another one.", severity="information"),
    Kind("conserved",
         "A total of the states never changes: an equilibrium has that of the start, and a linear model with "
         "`keep_totals=True` the motions that keep it.",
         "Fix one of its states (`fixed=`) or start elsewhere (`guess=`) for another total.", severity="information"),
    Kind("unstable",
         "The model has eigenvalues with positive real parts at the equilibrium.",
         "Start elsewhere (`guess=`) if you need a stable one.", severity="information"),
    Kind("drift",
         "Deviations grow in proportion to time: a multiple eigenvalue at the stability limit has too few "
         "eigenvectors.",
         "Fix the state that holds the body, unless it may float, spin or roll.", severity="information"),
    Kind("pulses",
         "An input or the model changes with time at undeclared instants: the integrator may have skipped short "
         "pulses.",
         "Declare the knots of the input function, use a table, or limit the step.", severity="information"),
    Kind("time",
         "The model depends on time: this is an equilibrium at that time only.",
         "Fix the quantities that change with time."),
    Kind("least-squares",
         "Held feet leave the inputs undetermined: those with the smallest contact forces were chosen, or nearest "
         "to the guess if a limit is active.",
         "Fix inputs to choose other values.", severity="information"),
    # Of estimators.
    Kind("unobserved",
         "An undamped or unstable mode is not observable from the measured outputs at the point.",
         "Measure the state in the message, or choose a motion along which it is observable."),
    Kind("skipped",
         "Measurements that are not numbers or out of the sensor's range were left out.",
         "Check the sensor and its limits."),
    Kind("diverging",
         "The innovations of a filter are much larger than expected: it has lost the state, or the noise is "
         "larger.",
         "Reset it (`kf.reset(point)`), or estimate the noise (`fl.design.tuned_noise`)."),
    # Of identified models: the method, and how well it fits.
    Kind("method",
         "The method and step of the identification, or how the states are set.",
         "Nothing; `fl.Stepping(method=...)` chooses another one.", severity="information"),
    Kind("other-method",
         "A method was tried and rejected, with the reason.",
         "Nothing; `fl.Stepping(method=...)` insists on it.", severity="information"),
    Kind("way",
         "In older files, the kind now called `method`.",
         "Nothing.", severity="information"),
    Kind("multiple-eigenvalues",
         "Eigenvalues coincide with too few eigenvectors: only their mean has derivatives by parameters.",
         "Use a sweep, unless they are positions and speeds of a free motion.", severity="information"),
    Kind("loop",
         "A loop was cut at a wire: this is L, the returned signal per signal sent. Signs are as wired, S = 1/(1 - "
         "L).",
         "Nothing; `fl.design.margins` measures its distance from +1.", severity="information"),
    Kind("delays",
         "Padé approximations, valid up to a frequency, replace delays; or the point of a model with delays is not "
         "an equilibrium, and its past not constant.",
         "Take a higher order or the exact model; linearize at an equilibrium (`trim`)."),
    Kind("margins",
         "Two computations of a margin contradict each other, or rounding hides where the loop becomes unstable.",
         "Trust the smaller margin; `fl.audit(loop)` compares each number with a second method."),
    Kind("wire",
         "A wire was cut, or a signal added on it: input and output of the result. Signs are as wired, S = 1/(1 - L), "
         "T = 1 - S.",
         "Nothing.", severity="information"),
    Kind("detour",
         "In older files, the kind now called `other-method`.",
         "Nothing.", severity="information"),
    Kind("fit",
         "The prediction error of held-out responses, or the error of the model's own solver: the accuracy to expect.",
         "Nothing.", severity="information"),
    Kind("order",
         "The singular values from which the order was chosen.",
         "Nothing; `fl.Stepping(order=...)` chooses another order.", severity="information"),
    Kind("sampling",
         "The instant of a step to which the outputs, `C` and `D` belong.",
         "Nothing.", severity="information"),
    Kind("repetition",
         "The measure that makes equal runs of the model give equal results.",
         "Nothing.", severity="information"),
    Kind("sampled",
         "Parts of the model are sampled. A continuous linear model holds them constant: loops through them are "
         "open.",
         "Use the discrete model: `fl.Stepping(lifted=True, step=PERIOD)`."),
    Kind("noise",
         "Equal runs differ by more than a hundredth of the responses.",
         "`fl.Stepping(method='multisine')` averages that."),
    Kind("poor-fit",
         "The prediction of held-out responses is off by more than noise: a kink, or a nonlinear motion.",
         "Try other steps, pulse amplitudes or points."),
    Kind("order-beyond-noise",
         "More states were requested than noise and rounding allow: the other eigenvalues are meaningless.",
         "Choose a smaller `fl.Stepping(order=...)`."),
    Kind("short-record",
         "The runs were far shorter than the identified motions: these, or slower ones, may be wrong or missing.",
         "Use a longer `fl.Stepping(step=...)`, or leave it out."),
    Kind("unrepeatable",
         "Outputs that differ between equal runs were left out: clocks, counters, random numbers.",
         "Name the outputs (`outputs=`) if they are of another kind."),
    Kind("integrator",
         "The internal solver has a fixed step; the message states its integrator and the evidence. A and B are "
         "those of the continuous plant, `lin.discrete` is the model over one step.",
         "`fl.Stepping(lifted=True)` returns the discrete model.", severity="information"),
    Kind("solver",
         "The model's own solver is coarse, or stands still between internal steps: readable derivatives were "
         "trusted, or the model is that of its steps.",
         "Try a smaller tolerance: `FmuOptions(solver_tolerance=...)`."),
    # Of results that were made from others, or from a file.
    Kind("interpolated",
         "The linear model was interpolated between points of a family.",
         "Compare the errors in the message with the accuracy that you need."),
    Kind("reduced",
         "States were removed, with the resulting error.",
         "Compare the frequencies that matter with the full model."),
    Kind("minimal",
         "Uncontrollable or unobservable states were removed.",
         "Keep the full model if a removed part is unstable: no controller can stabilize it."),
    Kind("zeros",
         "Zeros are doubtful: two computations of one differ, or their number depends on couplings that may be "
         "zero.",
         "Use exact derivatives, nominal values of the variables' sizes, and exact zeros."),
    Kind("zero-dynamics",
         "The motion that remains while inputs, the outputs of this model, hold the outputs at their values of the "
         "point.",
         "Nothing.", severity="information"),
    Kind("modal",
         "Eigenvalues are too close to be separated: one mode has several states.",
         "Treat these states as one mode."),
    Kind("aliasing",
         "A motion is faster than half the sampling frequency: the samples show a slower one.",
         "Sample faster."),
    Kind("step",
         "Steps of the integrator are too long for the fastest motion: `A` changes when they are halved.",
         "Use more of them (`steps=`)."),
    Kind("point",
         "The file has no operating point: all values are deviations, and the accuracy is unknown.",
         "Store the point elsewhere, or save in a format that includes it."),
    Kind("ended",
         "The simulation ended early, with the reason.",
         "Check the end of the trajectory."),
    Kind("horizon",
         "Verification followed the responses for less than the slowest mode needs.",
         "Give a longer `horizon=`."),
    # Of the general formulations (mcs, rcs, ucs).
    Kind("labels",
         "True and spurious eigenvalues are not clearly separated, or there is no linear model without the "
         "spurious ones.",
         "Compare with the formulation mcs, or change the penalty as the message says."),
    Kind("penalty",
         "The penalty is so large that rounding spoils the true eigenvalues.",
         "Use a smaller alpha, or another formulation."),
    Kind("penalty-approximation",
         "Penalties replace the constraints: the message estimates the error of the true eigenvalues.",
         "Use a larger alpha, or the formulation mcs or rcs."),
    # Of constraints that were searched for.
    Kind("nothing-moves",
         "Nothing moves around the point for any states and inputs, so constraints cannot be found.",
         "Give another point (`fl.operating_point(model, {'NAME': VALUE})`) or larger inputs (`excite=`)."),
    Kind("too-many-states",
         "Too many states are coupled for the larger libraries of terms: only smaller ones were tried.",
         "Declare the known constraints, and search for the others."),
    Kind("incomplete",
         "Some directions seem to be invariant, but no expression was found for them.",
         "`fmilin.discovery.tangent.linearize_on_tangent(model)` needs none."),
    Kind("events",
         "Some of the sampled states lie beyond an event of the model.",
         "Move the point, unless the constraints hold on both sides."),
    Kind("wrapped",
         "A measured angle jumped by a whole turn against its prediction: its innovation is taken modulo a turn.",
         "Name the outputs that wrap (`wrapped_outputs=`), or none (`[]`)."),
    Kind("tangent-only",
         "No constraint is known: the number of independent states is that at this point alone.",
         "Declare or discover constraints for other points."),
    # Of single entries of the matrices.
    Kind("accuracy",
         "The estimated error of an entry exceeds a thousandth of the largest entry of its row, the solver inside "
         "is no more accurate, or the time for experiments was too short.",
         "Give variables nominal values of their size, tighten the tolerance of solvers inside, provide exact "
         "derivatives, or allow more time (`fl.Stepping(budget=...)`).", scope="entry"),
    Kind("kink-branch",
         "A kink depends on several variables together: all derivatives are those of the branch in the message.",
         "Compare with the other side (`one_sided='left'`, `'right'`), or move the point.", scope="entry"),
    Kind("turn",
         "An output without a unit jumps by 360 at the point, and was treated as an angle in degrees.",
         "Give the output its unit (deg), or leave it out if it is a switch.", scope="entry"),
    Kind("narrow",
         "A derivative holds near the point only.",
         "Consider the range of the motion.", scope="entry"),
    Kind("directional-derivative",
         "The directional derivative that the model provides is wrong: a difference on the manifold was used.",
         "Report it to the author of the model; `derivatives='differences'` avoids it.", scope="entry"),
)  # fmt: skip

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in ROWS}
"""Every kind of diagnostic by its name, those of older files included."""
OF_ANOTHER_VERSION = Kind("", "A kind from another version of fmilin.", "Read its message.")
"""The row for a kind that appears only in a file."""

MAX_HELD = 12  # discrete variables that are listed


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing that the user should know, which travels with a result; one that was read may have any kind."""

    kind: str  # what a program can test for: a name of the table
    message: str  # one sentence or two
    is_read: InitVar[bool] = False

    def __post_init__(self, is_read: bool) -> None:
        if not is_read and self.kind not in KINDS:
            raise ValueError(
                f"'{self.kind}' is not a kind of diagnostic: add it to the table in fmilin/diagnostics.py."
            )

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
    """Return the diagnostics on what a model notes of itself (:attr:`fmilin.Model.notes`)."""
    return [Remark("model", note) for note in notes]


def discrete_states_remarks(states: Mapping[str, str]) -> list[Remark]:
    """Return the diagnostic about values, by name, that stay as they are between two events; none when nothing does."""
    if not states:
        return []
    values = join_first((f"{name} = {value}" for name, value in states.items()), MAX_HELD)
    return [Remark("held", f"Discrete variables keep their values at the point, as between two events: {values}.")]


def off_equilibrium(
    what: str, meaning: str = "f0 keeps the motion; A and its eigenvalues depend on the choice of coordinates."
) -> Remark:
    """Return the note on a point off equilibrium: ``what``, half a sentence, says what moves, or what was done."""
    return Remark("off-equilibrium", f"The point is not an equilibrium: {what}. {meaning}".rstrip())


def equilibrium_not_tested(why: str) -> Remark:
    """Return the diagnostic that nothing tells whether the point is an equilibrium; ``why``, half a sentence."""
    return Remark("equilibrium-not-tested", f"Whether the point is an equilibrium was not tested: {why}.")


def rate_of_change(name: str, rate: float, size: float = 0.0) -> str:
    """Say how fast a state or coordinate of some size changes: half a sentence for :func:`off_equilibrium`."""
    slowly = ", slowly, but no equilibrium is near" if abs(rate) <= EQUILIBRIUM_RATE_TOLERANCE * size else ""
    return f"'{name}' changes at {rate:.6g} per second{slowly}"


def inaccurate_entry(name: str, value: float, error: float, more: str = "") -> Remark:
    """Return the diagnostic on an entry with an error that is large relative to its row; ``more``: how many others."""
    return Remark(
        "accuracy",
        f"{name} = {value:.6g} is accurate to +-{error:.2g} only, which is large relative to the other entries of its "
        f"row.{more}",
    )


def no_linear_model(reason: Exception, instead: str = "") -> Remark:
    """Return the diagnostic on spurious eigenvalues that no linear model is without."""
    return Remark("labels", f"There is no linear model without the spurious eigenvalues: {reason}{instead}")


def swamping_penalty(alpha: float, loss: str) -> Remark:
    """Return the diagnostic on a penalty that costs digits; ``loss``: how much of the eigenvalues, and what to do."""
    text = f"The penalty alpha = {alpha:g} exceeds double precision: rounding may change the true eigenvalues {loss}"
    return Remark("penalty", text)
