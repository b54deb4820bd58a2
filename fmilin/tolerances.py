"""Limits for zero, for close enough and for rejection: every limit that decides about a number, once.

Each has a test that fails when it is loosened. Steps, iterations and sizes of one procedure stay with that procedure.
These orders must hold: ``PROJECTION_TOLERANCE < MANIFOLD_DISTANCE_TOLERANCE < START_GAP_TOLERANCE`` and
``EXACT_BALANCE_TOLERANCE < EQUILIBRIUM_RATE_TOLERANCE``.
"""

from typing import Final

EPS: Final = 2.0**-52
"""The distance from 1 to the next double: twice the largest relative error of one rounding. Estimates of rounding are
multiples of it, so they would be wrong by what it is wrong."""

SMALLEST_DIVISOR: Final = 1e-300
"""Divisor in place of zero, where a ratio to a size that may vanish is meant to be huge, not NaN. No size of a model is
as small, and a quotient of numbers up to 1e8 by it is still finite."""

# -- the point -------------------------------------------------------------------------------------------------------

MANIFOLD_DISTANCE_TOLERANCE: Final = 1e-8
"""Distance from the manifold, in sizes of the states, beyond which a point is rejected, and a simulation has lost it.
Looser: A of a point that does not exist, wrong by about the distance."""

PROJECTION_TOLERANCE: Final = 1e-9
"""Distance at which a projection has arrived. Looser: points called consistent that "
":data:`MANIFOLD_DISTANCE_TOLERANCE` rejects."""

POSITION_KNOWN: Final = 1e-6
"""Newton step, in sizes of the states, that may remain at a point that satisfies all constraints. Looser: a point that
is far from the true one, between constraints that are nearly parallel, is used without a word."""

START_GAP_TOLERANCE: Final = 1e-6
"""Gap of start values, in sizes of the states, that is closed by a projection without being asked for. Looser: a typing
error in a start value or a wrong length in a constraint is moved to another point silently."""

NEGATIVE_INERTIA: Final = 1e-6
"""Negative moment of inertia of a link of a URDF file that is accepted with a note, relative to the largest in
the file: rounding, or a small part that was not measured. Looser: mass matrices that are not positive."""

LOOP_CLOSURE_TOLERANCE: Final = 1e-9
"""Gap of an assembled loop, in sizes of the mechanism or rad. Looser: a mechanism with a gap."""

EQUILIBRIUM_RATE_TOLERANCE: Final = 1e-9
"""Rates, in sizes of the states per second, that count as rest: here f0 = 0, and the terms of a motion may be left out.
Looser: formulations drop terms, and eigenvalues of a moving point are shown without a diagnostic."""

STATIC_BALANCE_TOLERANCE: Final = 1e-9
"""Accelerations over stiffness that count as rest in statics. Looser: a penalized point that is not at rest."""

EXACT_BALANCE_TOLERANCE: Final = 1e-10
"""The residual that a trim without noise must reach. Looser: an equilibrium that moves."""

TRIM_DISTANCE_TOLERANCE: Final = 1e-3
"""How far a solution may be from the result of a trim, in sizes of the unknowns. Looser: not an equilibrium."""

STEADY_RATE_TOLERANCE: Final = 1e-7
"""Change of the rates along a motion, relative, that counts as none. Looser: a steady motion that is not steady."""

UNIFORM_RATE_TOLERANCE: Final = 1e-6
"""Change of a rate along a motion, in sizes of the states and the motion's own time, up to which a state moves
uniformly: above :data:`STEADY_RATE_TOLERANCE`, which is what a trim leaves. Looser: eigenvalues of a motion that is
not steady are shown without a diagnostic."""

CONSTANT_JACOBIAN_TOLERANCE: Final = 1e-4
"""Change of A along a motion, relative to its rows, that counts as none. Looser: the same."""

EQUILIBRIUM_FAMILY_TOLERANCE: Final = 1e-5
"""Growth of the residual along a free direction of a trim, over the step, up to which equilibria form a family."""

# -- rank and coordinates --------------------------------------------------------------------------------------------

RANK: Final = 1e-8
"""Singular values of an exact, scaled constraint gradient below this fraction of the largest are zero. Looser: motions
are invented; tighter: redundant constraints count twice."""

RANK_MEASURED: Final = 1e-5
"""The least that is asked of a gradient that was measured by differences; more where its error is larger."""

RANK_UNKNOWN: Final = 1e-2
"""The most that is asked of it."""

CLEAR_GAP: Final = 1e2
"""Ratio of singular values across the decision about the rank below which the decision is remarked on."""

ROUNDING_TOLERANCE: Final = 1e-14
"""The fraction of the terms of a sum below which the sum is rounding. Looser: weak couplings vanish."""

COEFFICIENT_ROUNDING_FACTOR: Final = 16.0
"""Times what rounding can have made of a coefficient of an equation (a running error analysis, in units of eps), up to
which the coefficient is taken as zero. Smaller: rounding decides index and order; larger: stiff couplings vanish."""

END_OF_TABLE: Final = 1e-9
"""Relative to the range of a table, by how much an input may be beyond its end and count as inside. Looser: points
outside of the data are called inside; tighter: an input at the end is called outside by rounding."""

CANCELLATION_TOLERANCE: Final = 1e-13
"""The same after some more operations. Looser: weak couplings among stiff ones are dropped."""

PSEUDOINVERSE_TOLERANCE: Final = 1e-10
"""Singular values that a pseudo-inverse leaves out where a step or a least-norm solution is wanted, not a count."""

MIN_RECIPROCAL_CONDITION_NUMBER: Final = 1e-14
"""Reciprocal condition number of a scaled matrix at which what it is to be solved for is not determined. Larger: honest
models of stiff and light parts are rejected; smaller: accelerations that are rounding only."""

MAX_COORDINATE_CONDITION_NUMBER: Final = 1e8
"""Condition number of a choice of coordinates beyond which it is rejected. Looser: A is wrong by eps times this."""

DESCRIPTOR_RESIDUAL_TOLERANCE: Final = 1e-6
"""Residual of the modes of a linear model in its descriptor system, relative to the terms, that is rounding.
Looser: a wrong A is confirmed."""

PENCIL_ZERO_TOLERANCE: Final = 1e-12
"""Singular value of a scaled block of a pencil up to which it is rounding. Looser: finite eigenvalues of stiff models
count as infinite, and a right order is called wrong."""

PENCIL_NONZERO_THRESHOLD: Final = 1e-8
"""The same above which it is not zero; between the two the order of the pencil is undecided. Smaller: rounding that
several steps have enlarged counts as a finite eigenvalue."""

UNCERTIFIED_ZERO: Final = 1e-9
"""Smallest change of an equilibrated system pencil, relative to it, that lets its rank drop at a zero, up to which the
zero counts as certified. Looser: zeros that a wrong rank decision made are returned with a small error."""

DOUBTFUL_CONDITION_NUMBER: Final = 1e4
"""Condition number of a choice of coordinates that gets a warning, and for which others are tried."""

# -- derivatives and invariants --------------------------------------------------------------------------------------

DERIVATIVE_AGREEMENT_TOLERANCE: Final = 1e-7
"""Disagreement of an exact derivative with a difference, relative to its row, that is put down to the model's accuracy.
Looser: a wrong derivative enters A."""

PRODUCT_ROUNDING_TOLERANCE: Final = 1e-9
"""The part of the terms of a row that an exact derivative may have lost in rounding, where some bits of the states
change it as much. Looser: noise of a model's derivatives is taken for rounding."""

MAX_ERROR_HIDDEN_BY_NOISE: Final = 1e-4
"""Error of a slope that the noise of differences may hide, relative to its row or to the terms of that, where exact
derivatives count as verified once for all points. Looser: a wrong derivative of an ill-conditioned model enters A."""

LARGE_MODEL_AGREEMENT_TOLERANCE: Final = 1e-4
"""Disagreement of exact derivatives of a large model with a difference along one direction, relative to the largest of
all. Looser: a kink of a soft part near a stiff one is smoothed over: the derivative of one side is used for both."""

NOISE_FREE_ERROR: Final = 1e-8
"""Error of a quick difference, relative to its row, up to which the model has no noise: later points are checked along
one direction only. Looser: wrong derivatives are hidden by noise."""

KINK_TOLERANCE: Final = 1e-3
"""Jump of a slope, relative to the largest of its row, that is a kink. Looser: the slope of one side for both."""

INACCURATE_ENTRY_ERROR: Final = 1e-3
"""Estimated error of an entry, relative to the largest of its row in sizes of the variables, that is remarked on.
Looser: digits that are none are shown without a word."""

MAX_ENTRY_ERROR: Final = 0.1
"""The same beyond which nothing is returned unless it is asked for. Looser: a number of the wrong size, or sign."""

INDISTINCT_ROW_ERROR: Final = 1e-6
"""Error of a row that is nothing but error, relative to the size of its terms, that is remarked on: so much noise hides
a slope. Looser: weak couplings near the noise are shown as zeros; tighter: rows that cancel are rejected for
rounding."""

INVARIANT_TOLERANCE: Final = 1e-6
"""H f and H f_u relative to the sizes of their terms, up to which a constraint is an invariant of the motion. Looser: a
wrong constraint is accepted."""

MEASURED_INVARIANT_TOLERANCE: Final = 1e-4
"""The same where H is measured by differences."""

DISCOVERY_TOLERANCE: Final = 1e-10
"""Singular value, of the largest, of sampled rates of functions, up to which a combination of them never changes.
Looser: weakly damped quantities are called constraints."""

DISCOVERED_GAP: Final = 1e3
"""Ratio of the singular values on its two sides. Smaller: nearly dependent functions are called invariants."""

SYMMETRY_TOLERANCE: Final = 1e-9
"""Asymmetry of a mass matrix, relative to its largest entry, that is rounding."""

# -- reduction -----------------------------------------------------------------------------------------------------

NO_RESPONSE_TOLERANCE: Final = 1e-9
"""The response to an input or in an output, relative to the terms of its sum, that counts as zero where the errors of
the entries are unknown; :data:`CANCELLATION_TOLERANCE` where they are known, and come on top. Looser: couplings vanish.
"""

UNCHANGED_STATE_TOLERANCE: Final = 1e-9
"""Part that a state has in what was dropped, up to which it keeps its name. Looser: a state that is another's sum."""

MAX_SEPARATION_CONDITION_NUMBER: Final = 1e6
"""Condition number of new coordinates above which modes stay in one block, or states give up their names. Looser:
entries wrong by eps times this."""

GROWTH_RATE_TOLERANCE: Final = 1e-7
"""Growth of a mode, relative to the fastest, above which it is unstable: rounding spreads a double zero by the root of
eps. Looser: an unstable mode is dropped without a word."""

EXTENT_OF_AN_ORBIT: Final = 10.0
"""How many times larger than the error of its start a motion must be, for a period that is found. Smaller: an
equilibrium, which closes after any time, is returned as an orbit."""

NEUTRAL_MODE_ERROR: Final = 1e-9
"""Error of the growth of a mode, relative to the fastest (of multipliers relative to 1), up to which a mode at the
stability limit is called neutral and not undecided. Looser: an oscillation that grows slowly is called stable."""

KNOWN_NEUTRAL_MULTIPLIER: Final = 1e-6
"""The same for multipliers, with the errors of an integration, or of motions that were measured past events.
Looser: a motion that grows by as much every period is called neutral."""

GROWS_BEFORE_ERRORS: Final = 1e3
"""By how much deviations in a multiple eigenvalue at the stability limit grow, at least, before the errors of the
entries could end the growth: from there on it counts as certain. Smaller: rounding decides that a model is unstable."""

# -- identification ----------------------------------------------------------------------------------------------

PREDICTION_ERROR_TOLERANCE: Final = 1e-8
"""Error on held-out responses, relative to them, that needs no better model: rounding in the rates, integrated, leaves
as much. Looser: weak modes are left out."""

OTHER_STEPS_ERROR_TOLERANCE: Final = 2e-2
"""The same in steps that the model was not made from, of one that counts as continuous. Looser: an alias passes."""

MAX_PREDICTION_ERROR: Final = 0.5
"""The same beyond which there is no model. Looser: a model that predicts nothing."""

QUIET_RESPONSE_SIZE: Final = 1e-9
"""Response, in sizes of the loudest or of the outputs, that counts as none. Looser: what an output says goes
unverified, and small kinks are not kinks."""

MOTION_RATE_TOLERANCE: Final = 1e-7
"""Rate, in sizes of the states per second, that is a motion and not the solver's noise. Looser: f0 is lost."""

VANISHED_EIGENVALUE_SIZE: Final = 1e-9
"""Eigenvalues over one step below this have left no trace. Smaller: rates that rounding made up."""

MAX_NYQUIST_FRACTION: Final = 0.9
"""Largest angle of an eigenvalue over one step, in parts of pi. Looser: a frequency that may be its alias."""

RELATION_TOLERANCE: Final = 3e-10
"""An exact relation of a plant (C B = 0, a rate that is an output) holds to this part of its terms, or to ten times
what the best integrator leaves. Looser: integrators that differ by less are distinguished by noise."""

MIN_RELATION_RATIO: Final = 1e-5
"""The best integrator leaves this part of what the worst leaves, where a relation tells integrators apart. Looser:
chance decides which it is."""

AGREES_IN_STEPS: Final = 0.05
"""Part of the logarithm's error in half steps that another integrator may leave, to be taken instead. Looser: noise
decides."""

UNREPEATABLE_DIFFERENCE_RATIO: Final = 0.3
"""Difference between equal runs, in parts of what inputs change, from which an output is a clock or a random number.
Smaller: noisy outputs disappear."""

LOGARITHM_TOLERANCE: Final = 1e-6
"""exp(log(M)) must be M to this, relative to M. Looser: A is not a logarithm."""

MOTION_RESPONSE_TOLERANCE: Final = 1e-6
"""By how much a response may change along the motion of a point that moves by itself, for a model from long records.
Looser: the average of A along the motion is returned for A at the point."""

# -- co-simulation -----------------------------------------------------------------------------------------------

SOLVER_TOLERANCE: Final = 1e-10
"""Relative tolerance that the solver inside a co-simulation FMU is asked for. Larger: a variable-step solver shows its
own errors as responses."""

COARSE_SOLVER_FACTOR: Final = 5.0
"""Times what splitting every step changes in responses, within which they do not refute derivatives that the FMU gives.
Larger: hidden states and sampled parts pass for a coarse solver."""

COLUMNS_AGREE: Final = 1e-7
"""How well a product along all knowns is the sum of columns asked for in groups, in sizes of the terms. Larger: a wrong
declared structure passes."""

GROUP_AGREEMENT_TOLERANCE: Final = 1e-6
"""How well a difference along all columns is the sum of those along groups of them, in sizes of a row's terms, next to
what their errors explain. Larger: the slope along a column on which a row depends undeclared is given to another."""

# -- formulations ------------------------------------------------------------------------------------------------

NO_INERTIA: Final = 4e-15
"""Inertia below this fraction of the largest, all scaled by their own sizes, that is rounding; of a sparse problem,
which is not scaled, :data:`CANCELLATION_TOLERANCE`. Looser: eigenvalues of a mass that is not in the model."""

REAL_SQUARE_TOLERANCE: Final = 1e-12
"""Asymmetry of M and K, relative to their largest entries, up to which s^2 is taken as real. Looser: slow flutter is
called an oscillation."""

# -- connected systems -----------------------------------------------------------------------------------------------

LOOP_GAP_TOLERANCE: Final = 1e-9
"""Gap between an input and what feeds it, relative to its size, up to which a system is settled. Looser: a stalled
Newton iteration passes for a solution."""

SINGULAR_LOOP_TOLERANCE: Final = 1e-11
"""Smallest singular value of the balanced I - K D, relative to 1 + |K D|, below which an algebraic loop has no single
solution. Smaller: rounding decides."""

GROWS_IN_STEPS: Final = 1e-8
"""By how much a multiplier |z| of a co-simulation may exceed 1 and count as not growing. Looser: a slow growth over
short steps is called stable. Tighter: rounding of a double z = 1 is called growth."""

# -- verification ----------------------------------------------------------------------------------------------------

VERIFIED_DERIVATIVE_TOLERANCE: Final = 1e-5
"""Relative error of a slope that ``fl.verify`` accepts of a model without noise."""

MAX_VERIFIED_DERIVATIVE_ERROR: Final = 1e-2
"""The most that it accepts of a model that is inaccurate or noisy. Looser: any matrix is right with enough noise."""

KEPT_TOTAL_TOLERANCE: Final = 1e-6
"""Change of a conserved total along a coordinate, relative to its terms, up to which coordinates of a linear model keep
it. Looser: a linear model that lacks other directions is compared on the set of states with the same total."""

VERIFIED_DRIFT_TOLERANCE: Final = 1e-4
"""Relative error of f0 and A f0 that it accepts along the undisturbed motion."""

MIN_RESPONSE_FRACTION: Final = 1e-3
"""Fraction of its natural size with which a signal responds at least, to be compared with its own response. Looser:
what responds weakly may be wrong."""

SAME_POINT_TOLERANCE: Final = 1e-6
"""Difference of values at the point up to which a linear model was made at this point."""

# -- filters and regulators ------------------------------------------------------------------------------------------

HIDDEN_MODE_ERROR_FACTOR: Final = 3.0
"""Residual of a mode that outputs do not observe or inputs do not move, in errors of the entries, up to which it is
hidden. Looser: honest filters of weakly observable modes are rejected; tighter: a filter follows rounding."""

MAX_COVARIANCE_ERROR: Final = 1e-2
"""Relative error of a steady covariance, by the errors of the matrices, beyond which there is none. Looser: covariances
that grow like 1/eps are returned; tighter: filters of models that were measured by differences are rejected."""

FILTER_COVARIANCE_TOLERANCE: Final = 1e-6
"""Difference of a stated covariance from that of the filter run on its own linear model, in its own deviations. Looser:
a filter with a wrong covariance passes."""

# -- audits ----------------------------------------------------------------------------------------------------------

AUDIT_DIFFERENCE_TOLERANCE: Final = 1e-6
"""Difference of an entry from plain central differences, of the largest of its row, that an audit allows above what
the differences themselves change by. Looser: a wrong entry agrees."""

AUDIT_TRANSFER_TOLERANCE: Final = 1e-7
"""Difference of transfer matrices by two realizations, of the sizes of their terms. Looser: a wrong entry of A, B, C or
D agrees; tighter: rounding of large descriptor systems is a disagreement."""

AUDIT_EQUILIBRIUM_TOLERANCE: Final = 1e-6
"""Rates, in sizes of the coordinates per second, up to which a point may be called an equilibrium. Looser: a point that
moves is called one."""

AUDIT_MARGIN_TOLERANCE: Final = 1e-5
"""Relative difference of margins from those by bisection: an eigenvalue that crosses the limit slowly leaves no more
digits. Looser: a wrong margin agrees."""

AUDIT_DISK_MARGIN_TOLERANCE: Final = 1e-4
"""Relative difference of a disk margin from that on a grid of frequencies, which may miss that much of a peak. Looser:
a wrong one agrees."""

AUDIT_COVARIANCE_TOLERANCE: Final = 1e-6
"""Difference of a filter's covariance from that of its error, in standard deviations. Looser: a wrong one agrees."""

AUDIT_SAMPLE_TOLERANCE: Final = 1e-3
"""Difference of an estimator's sample from Kalman's equations, in standard deviations, along a motion of 1e-5 of the
sizes of the states. Looser: a filter with wrong noise agrees; tighter: the motion itself is a disagreement."""

AUDIT_RICCATI_TOLERANCE: Final = 1e-4
"""Difference of a solution of the periodic Riccati equation from its integration over a period, in its own sizes.
Looser: a wrong gain agrees; tighter: samples that are interpolated between phases are a disagreement."""

AUDITED_GAIN: Final = 1e-9
"""Relative difference of a periodic gain from the product with the solution. Looser: a wrong gain agrees."""

AUDIT_CLOSURE_TOLERANCE: Final = 1e-6
"""Gap of an orbit after a period by another integrator, in sizes of the states. Looser: an orbit that does not exist
agrees."""

AUDITED_STEP: Final = 1e-5
"""Newton's next step from a trimmed point or an orbit, in sizes of the states. Looser: a point far from the true one
agrees; tighter: errors of the derivatives are a disagreement."""

AUDIT_MULTIPLIER_TOLERANCE: Final = 1e-6
"""Difference of multipliers about 1 from those by another integrator. Looser: a wrong verdict on stability agrees."""

CLEAR_OF_LIMIT: Final = 1e-4
"""Distance of the largest modulus of a multiplier from 1 beyond which a verdict is compared with it. Smaller: neutral
motions, which errors decide, are disagreements."""

AUDITED_RATES: Final = 1e-6
"""Rates of a trimmed point, in sizes of the states per second. Looser: a point that moves agrees."""

AUDIT_LOOP_TOLERANCE: Final = 1e-4
"""Difference of eigenvalues of a sampled closed loop from the separation principle: several at zero scatter by a root
of rounding. Looser: a wrong regulator agrees."""

MIN_OWN_RESPONSE_FRACTION: Final = 1e-2
"""Part of the largest response in a channel of ``verify`` from which "within 5 %" is judged by a signal's own response.
Errors of first order, which no motion of second order hides, are judged so from :data:`MIN_RESPONSE_FRACTION` on.
Looser: smaller signals are judged by the largest one, and may be off by more of their own."""

AUDITED_DERIVATIVES: Final = 1e-4
"""Relative difference of derivatives by parameters from central differences, above what these change by with half the
step. Looser: a wrong derivative agrees; tighter: errors of the linear models are a disagreement."""

AUDIT_TRAJECTORY_TOLERANCE: Final = 1e-5
"""Difference of a step of a trajectory from Simpson's rule over its rates, in sizes of the states, above what the rule
itself may miss. Looser: samples that do not belong to the motion agree."""
