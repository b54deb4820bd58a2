"""Plants that can only be stepped: what is found, what is refused, and what is said about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin import LinearModel, Stepping
from fmilin.errors import NumericalError, UsageError
from fmilin.identification.discrete_models import Sampled
from fmilin.identification.experiments import Experiments
from fmilin.identification.multisine import LENGTH, _orthogonal
from fmilin.identification.step_size import find_fitting_step
from fmilin.model.stepping import Cadence, Response
from tests.identification.toys import ByEuler, Linear, Toy, oscillators, transfer

FREQUENCIES = (1.0, 2.3, 4.1)


def remark(linear: LinearModel, kind: str) -> str:
    return " ".join(str(w) for w in linear.warnings if w.kind == kind)


def assert_same_transfer(linear: LinearModel, plant: Linear, tolerance: float) -> None:
    for w in (0.3, 1.2, 2.0, 5.0):
        theirs = transfer(plant.A, plant.B, plant.C, plant.D, 1j * w)
        ours = transfer(linear.A, linear.B, linear.C, linear.D, 1j * w)
        np.testing.assert_allclose(ours, theirs, atol=tolerance * np.max(np.abs(theirs)))


@pytest.mark.parametrize("stale", [False, True], ids=["read at once", "read at the end of steps"])
@pytest.mark.parametrize("D", [False, True], ids=["without feedthrough", "with feedthrough"])
def test_the_plant_is_found_whatever_the_sampling_convention(stale: bool, D: bool) -> None:
    plant = oscillators(FREQUENCIES, D=D)
    linear = fl.linearize(Toy(plant, stale=stale))
    assert linear.A.shape == (6, 6)
    assert_same_transfer(linear, plant, 1e-8)
    late = "calculates its outputs at the end of a step only" in remark(linear, "sampling")
    assert late == (stale and D)  # without feedthrough nothing is missing from late outputs


@pytest.mark.parametrize("stepping", [{"method": "response"}, {"method": "step"}, {"lifted": True}])
def test_responses_are_never_left_unchecked(stepping: dict[str, Any]) -> None:
    """One point and a sweep reject it with the same words, before any step is taken."""
    toy = Toy(oscillators(FREQUENCIES))
    with pytest.raises(UsageError, match="needs confirmation by other responses") as alone:
        fl.linearize(toy, stepping=Stepping(**stepping), checks="none")
    with pytest.raises(UsageError) as family:
        fl.sweep(toy, {"u1": [0.0, 0.1]}, stepping=Stepping(**stepping), checks="none")
    assert str(alone.value) == str(family.value)
    assert toy.steps == 0


def test_all_checks_are_what_an_identification_does() -> None:
    models = [fl.linearize(Toy(oscillators(FREQUENCIES)), checks=checks) for checks in ("standard", "all")]
    for name in "ABCD":
        np.testing.assert_array_equal(getattr(models[0], name), getattr(models[1], name))
    assert models[0].warnings == models[1].warnings


def test_the_step_is_found_from_far_too_long_and_far_too_short_ones() -> None:
    plant = oscillators(FREQUENCIES)
    for step in (30.0, 1e-4):
        linear = fl.linearize(Toy(plant, cadence=Cadence(step=step)))
        assert_same_transfer(linear, plant, 1e-6)


def test_an_unstable_plant_is_found_before_it_runs_away() -> None:
    A = np.diag([5.0, -1.0, -2.0])
    plant = Linear(A, np.ones((3, 2)) * [1.0, 0.5], np.ones((2, 3)) * [[1.0], [2.0]], np.zeros((2, 2)))
    linear = fl.linearize(Toy(plant))
    np.testing.assert_allclose(np.sort(linear.eigenvalues().real), [-2.0, -1.0, 5.0], atol=1e-5)


def test_integrators_are_no_reason_for_endless_steps() -> None:
    A = np.array([[0.0, 1.0], [0.0, 0.0]])
    linear = fl.linearize(Toy(Linear(A, np.array([[0.0], [1.0]]), np.array([[1.0, 0.0]]), np.zeros((1, 1)))))
    np.testing.assert_allclose(linear.eigenvalues(), [0, 0], atol=1e-6)
    assert "The step is 5 s" in remark(linear, "method")


def test_a_delay_has_a_lifted_model_only() -> None:
    class Late(Toy):
        def respond(self, point: fl.OperatingPoint, inputs: np.ndarray, step: float) -> Response:
            late = np.vstack((np.zeros((round(0.1 / step), inputs.shape[1])), inputs))[: len(inputs)]
            return super().respond(point, late, step)

    with pytest.raises(NumericalError, match="lifted=True"):
        fl.linearize(Late(oscillators((1.0, 2.0))))
    linear = fl.linearize(Late(oscillators((1.0, 2.0))), stepping=Stepping(lifted=True, step=0.1))
    assert np.sum(np.abs(np.linalg.eigvals(linear.A)) < 1e-3) == 2  # one for each input
    assert linear.A.shape == (6, 6)


def test_remarks_on_method_fit_and_order() -> None:
    linear = fl.linearize(Toy(oscillators(FREQUENCIES)))
    assert "method response" in remark(linear, "method")
    assert "The order 6 was chosen from the singular values" in remark(linear, "order")
    assert "half steps, which were not used for the model" in remark(linear, "fit")
    assert linear.method.derivatives == "responses"
    assert linear.states.names == tuple(f"z[{i}]" for i in range(1, 7))
    assert 0 <= linear.accuracy.A < 1e-6


def test_a_bent_plant_is_probed_with_small_pulses() -> None:
    plant = oscillators(FREQUENCIES)
    linear = fl.linearize(Toy(plant, bend=100.0))
    assert_same_transfer(linear, plant, 1e-5)


@pytest.mark.parametrize("noise", [0.0, 1e-5])
def test_a_kink_at_the_point_is_refused(noise: float) -> None:
    with pytest.raises(NumericalError, match=r"kink or an event at the point: pulses of 'u1' up and down") as caught:
        fl.linearize(Toy(oscillators(FREQUENCIES), kink=0.5, noise=noise))
    assert caught.value.variable == "u1"


def test_a_square_is_no_kink() -> None:
    class Square(Toy):
        def respond(self, point: fl.OperatingPoint, inputs: np.ndarray, step: float) -> Response:
            return super().respond(point, inputs + 0.3 * inputs**2, step)

    plant = oscillators(FREQUENCIES)
    assert_same_transfer(fl.linearize(Square(plant)), plant, 1e-6)


def test_noise_is_warned_of() -> None:
    linear = fl.linearize(Toy(oscillators((1.0, 3.0), damping=0.2), noise=5e-3), stepping=Stepping(step=0.3, order=4))
    assert "method='multisine' averages that" in remark(linear, "noise")


def test_a_sampled_plant_has_no_continuous_model() -> None:
    toy = Toy(oscillators(FREQUENCIES), period=0.5, cadence=Cadence(step=0.5))
    with pytest.raises(NumericalError, match=r"no common continuous model.*lifted=True, step="):
        fl.linearize(toy)


def test_the_lifted_model_of_a_sampled_plant_is_that_over_its_period() -> None:
    plant = oscillators(FREQUENCIES)
    linear = fl.linearize(Toy(plant, period=0.5), stepping=Stepping(lifted=True, step=0.5))
    assert linear.sample_time == 0.5
    A, B = plant.over(0.5)
    for z in (1.3, np.exp(0.4j), np.exp(2.0j)):
        theirs = transfer(A, B, plant.C, plant.D, z)
        np.testing.assert_allclose(transfer(linear.A, linear.B, linear.C, linear.D, z), theirs, atol=1e-8)
    assert "discrete model over one step" in remark(linear, "method")


def test_a_declared_period_is_taken_with_a_remark() -> None:
    cadence = Cadence(step=0.01, period=0.5, sampled=("It has 1 clock(s): 'tick'.",))
    plant = oscillators(FREQUENCIES)
    lifted = fl.linearize(Toy(plant, period=0.5, cadence=cadence), stepping=Stepping(lifted=True))
    assert lifted.sample_time == 0.5
    continuous = fl.linearize(Toy(plant, cadence=cadence))
    assert "SAMPLED" in remark(continuous, "sampled")
    assert "'tick'" in remark(continuous, "sampled")


def test_a_motion_above_half_the_sampling_frequency_is_refused_for_its_alias() -> None:
    plant = oscillators((9.0,), damping=0.01)
    with pytest.raises(NumericalError, match=r"no common continuous model|half the sampling frequency"):
        fl.linearize(Toy(plant), stepping=Stepping(step=0.6))


def test_an_alias_that_cannot_be_checked_is_remarked() -> None:
    linear = fl.linearize(Toy(oscillators((1.0,)), smallest=0.2), stepping=Stepping(step=0.2))
    assert "half steps, which would detect an alias" in remark(linear, "fit")
    assert_same_transfer(linear, oscillators((1.0,)), 1e-8)


def test_a_model_that_refuses_the_suggested_step_is_asked_for_others() -> None:
    plant = oscillators((1.0,))
    assert_same_transfer(fl.linearize(Toy(plant, smallest=0.15, cadence=Cadence(step=0.05))), plant, 1e-8)


def test_a_wanted_order_is_kept_or_refused() -> None:
    toy = Toy(oscillators(FREQUENCIES))
    assert fl.linearize(toy, stepping=Stepping(order=4, lifted=True, step=0.3)).A.shape == (4, 4)
    with pytest.raises(NumericalError, match=r"no model of order 50 can be identified"):
        fl.linearize(toy, stepping=Stepping(order=50, lifted=True, step=0.3))


def test_an_order_beyond_what_is_heard_is_warned_of() -> None:
    toy = Toy(oscillators(FREQUENCIES), noise=1e-9)
    linear = fl.linearize(toy, stepping=Stepping(order=6, lifted=True, step=0.3))
    assert not remark(linear, "order-beyond-noise")
    linear = fl.linearize(toy, stepping=Stepping(order=10, lifted=True, step=0.3))
    assert "Of the 10 requested directions, only 6 exceed" in remark(linear, "order-beyond-noise")
    assert not [w for w in linear.warnings if w.kind == "order-beyond-noise" and w.is_information]


def test_steps_that_show_but_a_glimpse_of_the_motion_are_warned_of() -> None:
    A = np.diag([-5.0, 0.0])  # the integral is lost in rounding
    toy = Toy(Linear(A, np.ones((2, 1)), np.ones((1, 2)), np.zeros((1, 1))))
    assert "slower motions may be missing" in remark(fl.linearize(toy, stepping=Stepping(step=1e-7)), "short-record")
    assert not remark(fl.linearize(toy, stepping=Stepping(step=0.1)), "short-record")


def test_a_table_of_gains_has_no_states() -> None:
    plant = Linear(np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((1, 0)), np.array([[2.0, -3.0]]))
    linear = fl.linearize(Toy(plant))
    assert linear.A.shape == (0, 0)
    np.testing.assert_allclose(linear.D, [[2.0, -3.0]], rtol=1e-12)


def test_without_outputs_there_is_nothing_to_measure() -> None:
    linear = fl.linearize(Toy(oscillators((1.0,)), outputs=0))
    assert linear.A.shape == (0, 0)
    assert "order 0" in remark(linear, "no-response")


def test_the_motion_of_the_point_is_kept() -> None:
    plant, offset = oscillators((1.0,)), np.array([0.0, 0.3])
    linear = fl.linearize(Toy(plant, offset=offset))
    # the same in all coordinates: C f0 and C A f0
    np.testing.assert_allclose(linear.C @ linear.f0, plant.C @ offset, atol=1e-6)
    np.testing.assert_allclose(linear.C @ linear.A @ linear.f0, plant.C @ plant.A @ offset, atol=1e-6)
    assert "not an equilibrium" in remark(linear, "off-equilibrium")


def test_multisines_hear_through_noise_that_pulses_do_not() -> None:
    """The median of five draws of the noise: single ones vary by a factor of two."""
    plant = oscillators((1.0, 3.0), damping=0.2)

    def error(method: str, seed: int) -> float:
        toy = Toy(plant, noise=2e-3)
        toy._random = np.random.default_rng(seed)
        linear = fl.linearize(toy, stepping=Stepping(method=method, step=0.3, order=4))
        return max(
            float(np.max(np.abs(transfer(linear.A, linear.B, linear.C, linear.D, 1j * w)
                                - transfer(plant.A, plant.B, plant.C, plant.D, 1j * w))))
            for w in (0.5, 1.0, 2.0, 3.0)
        )  # fmt: skip

    pulses, sines = (np.median([error(method, seed) for seed in range(5)]) for method in ("response", "multisine"))
    assert sines < 0.02
    assert sines < 0.5 * pulses


def test_the_errors_of_a_noisy_model_are_of_the_size_that_is_estimated() -> None:
    """Compared in eigenvalues, which are the same in all coordinates."""
    plant = oscillators((1.0, 3.0), damping=0.2)
    linear = fl.linearize(Toy(plant, noise=2e-3), stepping=Stepping(method="multisine", step=0.3, order=4))
    ours, theirs = np.sort_complex(linear.eigenvalues()), np.sort_complex(np.linalg.eigvals(plant.A))
    true, estimated = np.max(np.abs(ours - theirs)), np.max(linear.errors.A)
    assert 1e-5 < true < 10 * estimated
    assert estimated < 0.3


def test_multisines_are_exact_without_noise() -> None:
    plant = oscillators((1.0, 3.0), damping=0.2, D=True)
    for stale in (False, True):
        linear = fl.linearize(Toy(plant, stale=stale), stepping=Stepping(method="multisine", step=0.3))
        assert linear.A.shape == (4, 4)
        assert_same_transfer(linear, plant, 1e-7)
        assert linear.method.derivatives == "multisine"


def test_multisines_refuse_a_motion_that_does_not_become_periodic() -> None:
    with pytest.raises(NumericalError, match=r"'y1' does not become periodic.*method='response'"):
        fl.linearize(Toy(oscillators((1.0,), damping=0.0)), stepping=Stepping(method="multisine", step=0.3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, r"method= must be 'auto', 'direct', 'step', 'response' or 'multisine', and is 'magic'"),
        ({"step": 0.0}, r"communication step is 0 s"),
        ({"step": float("inf")}, r"communication step is inf s"),
        ({"order": 0}, r"order must be positive, not 0"),
    ],
)
def test_wrong_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Stepping(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["direct", "step"])
def test_methods_that_need_states_are_refused_without_them(method: str) -> None:
    with pytest.raises(
        UsageError, match=rf"method='{method}' is not possible\. It declares no states\. Try method='response'"
    ):
        fl.linearize(Toy(oscillators((1.0,))), stepping=Stepping(method=method))


def test_derivatives_make_no_discrete_model() -> None:
    with pytest.raises(UsageError, match=r"method='direct' reads derivatives.*Leave out lifted=True"):
        fl.linearize(Toy(oscillators((1.0,))), stepping=Stepping(method="direct", lifted=True))


def test_a_model_that_cannot_be_stepped_has_no_lifted_model() -> None:
    from fmilin.systems import cartesian_pendulum

    with pytest.raises(UsageError, match=r"no events and no sampled.*Leave out lifted=True"):
        fl.linearize(cartesian_pendulum(), stepping=Stepping(lifted=True, step=0.1))


def test_a_coarse_solver_is_distinguished_from_the_plant() -> None:
    """Euler's method in steps of 1 ms is identified to ten digits, and is not the plant."""
    plant = oscillators((1.0, 2.3))
    linear = fl.linearize(ByEuler(plant))
    wrong = np.max(np.abs(np.sort_complex(linear.eigenvalues()) - np.sort_complex(np.linalg.eigvals(plant.A))))
    assert wrong > 1e-4
    assert wrong <= 10 * linear.accuracy.A * np.max(np.abs(linear.A))
    remarks = remark(linear, "fit") + remark(linear, "accuracy")
    assert "the error of the model's own solver" in remarks
    exact = fl.linearize(Toy(plant))
    assert "own solver" not in remark(exact, "fit") + remark(exact, "accuracy")
    assert exact.accuracy.A < 1e-6


@pytest.mark.parametrize("count", [1, 2, 3, 15])
def test_experiments_with_all_inputs_at_once_tell_the_inputs_apart(count: int) -> None:
    """At no frequency is the matrix of amplitudes close to singular, and every wave stays within its size."""
    waves = _orthogonal(LENGTH, count)
    assert waves.shape == (count, count, LENGTH)
    assert np.max(np.abs(waves)) <= 1.0
    amplitudes = np.moveaxis(np.fft.rfft(waves, axis=2), 2, 0)
    conditions = np.linalg.cond(amplitudes)
    np.testing.assert_allclose(conditions[1:-1], 1.0, atol=1e-9)
    assert np.max(conditions) < 3 * count


@pytest.mark.parametrize(("frequencies", "most"), [((1.0, 2.3, 4.1), 4310), ((1.0, 30.0), 5330)])
def test_no_run_is_made_twice(frequencies: tuple[float, ...], most: int) -> None:
    """Pulses, held-out runs and looks at a model that always moves; 9,081 and 10,713 steps when each was made anew."""
    # six of them look whether half a step is taken as a whole one
    toy = Toy(oscillators(frequencies))
    fl.linearize(toy)
    assert toy.steps <= most


@pytest.mark.parametrize("fails", [False, True], ids=["misses", "fails"])
def test_a_search_for_a_step_ends_where_shorter_ones_tell_less(*, fails: bool) -> None:
    """A pole of 60 rad/s asks for steps in which records are too short for the slow ones."""
    plant = Linear(-np.diag([1.0, 60.0]), np.ones((2, 1)), np.ones((1, 2)), np.zeros((1, 1)))
    toy, asked = Toy(plant), []

    def attempt(step: float) -> tuple[Sampled, float]:
        asked.append(step)
        if fails and len(asked) > 1:
            raise NumericalError("nothing")
        A, B = plant.over(step)
        model = Sampled(A, B, plant.C, plant.D, step, "at once", np.empty((0, 2)), np.zeros(2))
        return model, 0.3 if len(asked) > 1 else 1e-9

    assert find_fitting_step(attempt, Experiments(toy, toy.start)) == 0.05
    assert asked == [0.05, 0.00833]
