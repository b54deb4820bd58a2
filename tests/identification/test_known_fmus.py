"""No silent wrong model of a co-simulation FMU: the table of ``python -m benchmarks truth``, and what is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import LinearModel
from tests import cosimulation_table as table
from tests.cosimulation_table import CASES, Case, Verdict, judged, linearized


def case(name: str) -> Case:
    return next(c for c in CASES if c.name == name)


def said(linear: LinearModel, kind: str) -> str:
    return " ".join(str(w) for w in linear.warnings if w.kind == kind)


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> list[Verdict]:
    folder = tmp_path_factory.mktemp("table")
    return [judged(c, folder) for c in CASES]


def test_no_model_is_wrong_without_a_word(verdicts: list[Verdict]) -> None:
    assert len(verdicts) == 40
    assert [v.case.name for v in verdicts if v.silent] == []


def test_at_most_one_is_refused_in_vain(verdicts: list[Verdict]) -> None:
    assert [v.case.name for v in verdicts if v.refused_in_vain] == []


def test_motions_that_are_those_of_no_linear_model_are_refused(verdicts: list[Verdict]) -> None:
    assert all(v.refusal for v in verdicts if v.case.family == "cycle")


@pytest.mark.parametrize(
    ("name", "own", "ratios"),
    [
        ("fixed: Dahlquist's test", 0.1, [0.9]),
        ("fixed: Dahlquist, step not declared", 0.1, [0.9]),
        ("fixed: Euler, 0.9 a step", 0.1, [0.9]),
        ("fixed: oscillator, an odd step", 0.013, np.linalg.eigvals([[1, 0.013], [-4 * 0.013, 1 - 0.4 * 0.013]])),
    ],
)
def test_a_solver_with_steps_of_its_own_gives_its_own_ratios(
    name: str, own: float, ratios: list[complex], tmp_path: Path
) -> None:
    linear = linearized(case(name), tmp_path)
    assert linear.discrete is not None
    over_a_step = linear.discrete.eigenvalues()
    assert np.sort_complex(over_a_step) == pytest.approx(np.sort_complex(np.asarray(ratios)), rel=1e-8)
    assert f"is constant between its own steps of {own:g} s" in said(linear, "integrator") + said(linear, "accuracy")
    assert "half steps" not in said(linear, "fit") or name.endswith("odd step")


def test_a_declared_step_of_ten_microseconds_is_used(tmp_path: Path) -> None:
    linear = linearized(case("fixed: torsion bar"), tmp_path)
    assert len(linear.A) == 4
    assert "its own steps of 1e-05 s" in said(linear, "integrator") + said(linear, "accuracy")


@pytest.mark.parametrize("name", ["direct: linear", "direct: holds", "direct: van der Pol", "direct: semi-implicit"])
def test_derivatives_stand_where_only_the_solver_inside_disagrees(name: str, tmp_path: Path) -> None:
    linear = linearized(case(name), tmp_path)
    assert linear.method.derivatives != "steps"
    np.testing.assert_allclose(linear.A, table.plant_at_start(case(name))[0], rtol=1e-10, atol=1e-10)
    assert "The derivatives were trusted, not the responses" in said(linear, "solver")


@pytest.mark.parametrize("name", ["limiter: drive, a ten-millionth", "limiter: rate, beside a louder output"])
def test_inputs_that_saturate_a_limiter_are_moved_less(name: str, tmp_path: Path) -> None:
    linear = linearized(case(name), tmp_path)
    assert "changes have no proportional response, as with a limiter" in said(linear, "narrow")
    eigenvalues = np.linalg.eigvals(table.plant_at_start(case(name))[0])
    assert np.sort_complex(linear.eigenvalues()) == pytest.approx(np.sort_complex(eigenvalues), abs=1e-9)


def test_an_amplitude_can_be_given_where_none_is_found(tmp_path: Path) -> None:
    """A limiter a billionth as wide as the input is large hides the drive; behind it lies a lag of 1 s."""
    hidden = Case("limiter: drive, a billionth", table.DRIVE, (3.0, 1e-9, 1.0))
    with pytest.raises(fl.NumericalError, match=r"limits its inputs \(use a smaller amplitude=\)"):
        linearized(hidden, tmp_path)
    for amplitude, fits in ((5e-11, True), (1e-8, False)):
        asked = replace(hidden, stepping=fl.Stepping(amplitude=amplitude))
        if fits:
            assert linearized(asked, tmp_path).eigenvalues() == pytest.approx([-1.0], abs=1e-6)
        else:
            with pytest.raises(fl.NumericalError):
                linearized(asked, tmp_path)


@pytest.mark.parametrize("amplitude", [0.0, -1.0, np.inf, np.nan])
def test_what_is_no_amplitude_is_refused(amplitude: float) -> None:
    with pytest.raises(fl.UsageError, match=r"must be positive and finite|is not a number \(NaN\)"):
        fl.Stepping(amplitude=amplitude)


def test_growth_beyond_all_numbers_is_no_crash(tmp_path: Path) -> None:
    """A stiff lag under Euler's method: each step multiplies by 1 - 1e4."""
    endless = Case("growth", table.LAG, (1e5, 1.0), (table.EULER, 0.1, table.HOLDS), ("x0",), 0, (1.0,), ())
    with pytest.raises(fl.NumericalError, match="moves by itself, but not as a linear model does"):
        linearized(endless, tmp_path)


def test_free_growth_is_no_limit_cycle(tmp_path: Path) -> None:
    growing = Case("growth", table.LAG, (-3.0,), outputs=("x0",), starts=(1.0,), inputs=())
    np.testing.assert_allclose(linearized(growing, tmp_path).A, [[3.0]], rtol=1e-6)
