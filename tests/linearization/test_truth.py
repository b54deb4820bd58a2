"""No silent wrong number: the table of ``python -m benchmarks truth``, and what is said where a number is doubtful."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import FunctionModel
from fmilin.signals import FloatArray, Signal, Signals
from tests.hard_models import cases, model, ring_of_rooms
from tests.random_hard_models import random_cases
from tests.verdicts import Verdict, judged

FAMILIES = (
    "smooth",
    "stiff",
    "scaled",
    "narrow",
    "rounded",
    "tables",
    "noise",
    "memory",
    "kinks",
    "far",
    "warm",
    "loose",
)


def kinds(linear: fl.LinearModel) -> list[str]:
    return [w.kind for w in linear.warnings]


@pytest.fixture(scope="module")
def verdicts() -> dict[str, list[Verdict]]:
    found: dict[str, list[Verdict]] = {name: [] for name in FAMILIES}
    for case in cases():
        found[case.family].append(judged(case))
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_no_number_is_wrong_without_a_word(verdicts: dict[str, list[Verdict]], family: str) -> None:
    assert [v.case.name for v in verdicts[family] if v.silent] == []


def test_hardly_any_model_is_refused_that_could_be_differenced(verdicts: dict[str, list[Verdict]]) -> None:
    everything = [v for group in verdicts.values() for v in group]
    good = sum(v.case.attainable <= 1e-6 for v in everything)
    assert len(everything) > 500
    assert sum(v.refused_in_vain for v in everything) <= 0.02 * good


def test_hardly_any_smooth_model_far_from_zero_is_refused(verdicts: dict[str, list[Verdict]]) -> None:
    """Bonds, diodes, reactors and units whose first steps overflow, or leave the domain."""
    far = verdicts["far"]
    assert len(far) >= 200
    assert sum(bool(v.refusal) for v in far) <= 0.01 * len(far)
    assert np.median([v.error for v in far]) <= 1e-9


def test_smooth_models_are_as_accurate_and_as_cheap_as_before(verdicts: dict[str, list[Verdict]]) -> None:
    """But for one visit far away, which a solver inside with a loose tolerance asks for, and four for joint kinks."""
    smooth = verdicts["smooth"]
    assert np.median([v.error for v in smooth]) <= 1e-12
    assert sum(v.visits - 5 for v in smooth) <= 1.5 * 3010
    assert Counter(kind for v in smooth for kind in v.remarks).keys() <= {"off-equilibrium"}


def test_a_random_search_finds_no_number_that_is_wrong_without_a_word() -> None:
    """``python -m benchmarks truth`` takes 3,000."""
    found = [judged(case) for case in random_cases(150)]
    assert [(v.case.name, v.error, v.said) for v in found if v.silent] == []
    assert sum(v.hidden for v in found) <= 3
    good = sum(v.case.attainable <= 1e-6 for v in found)
    assert sum(v.refused_in_vain for v in found) <= 0.02 * good


def test_a_smooth_model_in_mixed_units_takes_few_visits_a_column() -> None:
    """Without nominal values steps of temperatures are parts of 293 K, though rates are straight over half a K only."""
    rooms = 20
    case = ring_of_rooms(rooms)
    linear = fl.linearize(case.make())
    assert linear.method.evaluations <= 13 * 3 * rooms  # 90 a column before
    assert (np.abs(linear.A - case.truths[0]) <= 10 * linear.errors.A + 1e-15 * np.abs(case.truths[0])).all()
    assert not {"accuracy", "narrow"} & set(kinds(linear))


# -- what is said ----------------------------------------------------------------------------------------------------


def test_where_a_narrow_slope_ends_is_said() -> None:
    linear = fl.linearize(model("friction", [0.0], lambda t, x, u: [-x[0] - np.tanh(x[0] / 1e-7)]))
    assert linear.A[0, 0] == pytest.approx(-1e7, rel=1e-6)
    [said] = [str(w) for w in linear.warnings if w.kind == "narrow"]
    assert "d der(x0) / d x0 = -1e+07 is valid near the point only: with steps of" in said


@pytest.mark.parametrize("at", [0.4, 0.40031])
def test_an_encoder_is_known_to_a_quantum_over_the_step(at: float) -> None:
    """Also at the very edge of a stair."""

    def shown(t: float, x: FloatArray, u: FloatArray) -> float:
        return float(np.floor(x[0] * 1000) / 1000)

    fine = fl.linearize(model("fine", [at], lambda t, x, u: [-x[0]], 0, [shown]))
    assert abs(fine.C[0, 0] - 1.0) <= 10 * fine.errors.C[0, 0]
    [said] = [str(w) for w in fine.warnings if w.kind == "accuracy"]
    assert "d y0 / d x0" in said


def coarse() -> fl.Model:
    return model("coarse", [0.41], lambda t, x, u: [-x[0]], 0, [lambda t, x, u: np.floor(x[0] * 8) / 8])


def test_an_entry_that_cannot_be_told_is_refused_with_the_slopes_at_each_scale() -> None:
    with pytest.raises(
        fl.NumericalError, match=r"d y0 / d x0 cannot be determined: it is .* \+- .*steps of 1 is"
    ) as caught:
        fl.linearize(coarse())
    assert caught.value.variable == "x0"
    assert "keep_inaccurate=True" in str(caught.value)
    assert "0.001 is 0" in str(caught.value)


def test_it_is_returned_all_the_same_when_that_is_wanted() -> None:
    linear = fl.linearize(coarse(), keep_inaccurate=True)
    assert "accuracy" in kinds(linear)
    assert linear.errors.C[0, 0] > 0.1
    point = fl.operating_point(coarse())
    assert "accuracy" in kinds(fl.linearize_along(coarse(), [point], keep_inaccurate=True)[0])


def test_the_worst_of_several_entries_is_the_one_that_is_named() -> None:
    """Encoders of 8 and of 4 steps, of equal slopes: the coarser one is in second place."""

    def steps(i: int, count: int) -> Callable[[float, FloatArray, FloatArray], float]:
        return lambda t, x, u: float(np.floor(x[i] * count) / count)

    outputs = [steps(0, 8), steps(1, 4), steps(2, 8)]
    with pytest.raises(fl.NumericalError, match="d y1 / d x1 cannot be determined"):
        fl.linearize(model("encoders", [0.41, 0.41, 0.41], lambda t, x, u: -x, 0, outputs))


def test_an_entry_counts_against_its_row_in_nominal_sizes() -> None:
    """The same encoder, beside a slope that is a thousand times as large for a variable of usual size."""

    def rates(t: float, x: FloatArray, u: FloatArray) -> list[float]:
        return [-x[0], -x[1]]

    def both(t: float, x: FloatArray, u: FloatArray) -> float:
        return float(np.floor(x[0] * 8) / 8 + x[1] * 1e-3)

    def build(nominal: float) -> fl.Model:
        states = Signals([Signal("x", start=0.41), Signal("z", start=0.0, nominal=nominal)])
        return FunctionModel("both", states, rates, outputs={"y": both})

    with pytest.raises(fl.NumericalError, match="d y / d x cannot be determined"):
        fl.linearize(build(1.0))
    assert "accuracy" not in kinds(fl.linearize(build(1e7)))


def test_a_row_of_noise_is_zero_where_its_terms_are_large() -> None:
    random = np.random.default_rng(9)
    noisy = model("cancels", [0.3, 0.2], lambda t, x, u: [-x[0], 1e-9 * random.standard_normal()])
    assert not {"accuracy"} & set(kinds(fl.linearize(noisy)))


# -- memory ----------------------------------------------------------------------------------------------------------


def test_an_answer_that_depends_on_the_last_one_is_remarked_on() -> None:
    """A solver that starts where it ended and stops at 1e-6."""
    last = [0.0]

    def rates(t: float, x: FloatArray, u: FloatArray) -> list[float]:
        z, before = last[0], np.inf
        while abs(z - before) >= 1e-6:
            z, before = 0.5 * np.cos(z) + x[0], z
        last[0] = z
        return [-z]

    linear = fl.linearize(model("warm", [0.3], rates))
    z = 0.0
    for _ in range(100):
        z = 0.5 * np.cos(z) + 0.3
    assert abs(linear.A[0, 0] + 1 / (1 + 0.5 * np.sin(z))) <= 10 * linear.errors.A[0, 0]
    [said] = [str(w) for w in linear.warnings if w.kind == "memory"]
    assert "der(x0) differs by up to" in said
    assert "the error estimates include that" in said


def test_what_a_solver_inside_leaves_undone_is_in_the_estimates(verdicts: dict[str, list[Verdict]]) -> None:
    """It is content with its last solution, and seems not to move over the smallest steps."""
    assert [v.case.name for v in verdicts["warm"] if not v.honest] == []
    assert all("memory" in v.remarks for v in verdicts["warm"] if not v.refusal and v.error > 1e-6)


@pytest.mark.parametrize("calls", [0, 1])
def test_an_answer_that_alternates_is_remarked_on(calls: int) -> None:
    turn = count(calls)
    linear = fl.linearize(model("alternates", [0.3], lambda t, x, u: [-x[0] * (1 + 1e-6 * (next(turn) % 2))]))
    assert "memory" in kinds(linear)
    assert abs(linear.A[0, 0] + 1) <= 10 * linear.errors.A[0, 0]


def test_a_model_without_memory_is_not_remarked_on() -> None:
    assert "memory" not in kinds(fl.linearize(model("plain", [0.3], lambda t, x, u: [-np.sin(x[0])])))
