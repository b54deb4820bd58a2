"""Limits that separate differences from rounding and noise, of single columns and of many points alike.

Each says what sets its order of magnitude; within a factor of two it is a choice.
"""

from __future__ import annotations

VISIBLE_ROUNDING_RATIO = 30.0
"""Multiple of its estimated rounding error above which a difference is the function's. The estimate is half a unit in
the last place of each value, and sums inside a model (tens of terms) have up to ten times as much."""
JUMP_ROUNDING_RATIO = 40.0
"""The same for changes that are compared at four steps: one of the four roundings is the largest."""
CLEAR_ROUNDING_RATIO = 100.0
"""The same where the growth from one step to the next decides, so that rounding must not change it by more than 1 %."""
UNSEEN_ROUNDING_RATIO = 20.0
"""Units of rounding up to which a remainder beyond a plateau is not searched for stairs: a search costs 28 evaluations
for each step, and smaller quanta already count as noise."""
TELLING_NOISE_RATIO = 1e3
"""Multiple of its noise that a value must have to say how long the first step is: three digits. At a zero of a function
the relative noise is infinite, and the step would be as long as it may be."""
FIRST_STEPS = (5e-4, 3e-2)
"""Ends of the first steps of fourth order, in sizes of the variables: of rounding alone (EPS^(1/5) = 7e-4), and of so
much noise that longer steps would see another part of the function."""
FIRST_STEPS_OF_SECOND_ORDER = (1e-5, 1e-2)
"""The same of second order: EPS^(1/3) = 6e-6."""
MAX_STEP_SIZE = 0.05
"""Longest step that a column chooses itself, in sizes of the variable: beyond, truncation has no order."""
STEP_CHANGE_RATIOS = (1 / 256, 8.0)
"""Ends of the change of a step at once. The estimated truncation is rough: it holds less far upwards than downwards."""
MIN_GAIN_RATIO = 20.0
"""Part by which another step must make the error smaller, to be worth five evaluations."""
SUFFICIENT_ERROR = 1e-12
"""Relative error of a column that is not improved further."""
NOISIER_RATIO = 10.0
"""Multiple of the measured noise by which differences must grow at a smaller step, to be a larger noise."""
EQUAL_CHANGE_RATIO = 0.1
"""Part up to which changes at different steps are the same, those of a jump. A smooth function halves them at least."""
VANISHING_ROUNDING_RATIO = 0.1
"""Units of rounding of its largest entry that each row has as noise at least: a result of zero here is not exact
elsewhere."""
SHARED_CURVATURE_RATIO = 0.1
"""Part of the relative curvature of the most curved column of a row that its other columns have at least: at an extreme
the curvature of one column vanishes by chance."""
MIN_JUMP_FRACTION = 1e-5
"""Jumps of a slope below this part of its row are below what differences resolve."""
MIN_SWEEP_STEPS = 6
"""Steps of a sweep that lead to a plateau: a run of four, and two beyond it that confirm it."""
DRIFT_STEPS = 6
"""Steps (of ratio 4) by which a drift may begin outside of the plateau: 4^6 = 4096 times the step."""
SAME_STAIR_RATIO = 0.2
"""Part of the height of the first stair that a second one has at least: ripples beyond it are smaller."""
RETRY_STEP_RATIO = 16.0
"""Part of a step that is tried where the model has no value: eight decades take seven attempts."""
FULL_ROW_RATIO = 8.0
"""Multiple of the mean number of entries from which on a row is full: coloring without it needs fewer groups."""
