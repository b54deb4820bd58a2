"""A sample of tests/fixed_step_battery.py: FMUs are answered with their plant, or say what is unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixed_step_battery import (
    FEEDTHROUGH,
    HIDDEN,
    MASSES,
    MOTOR,
    MOVING,
    REFUSES,
    STIFF,
    THREE,
    Case,
    Plant,
    judge,
)

ANSWERED = (
    (MOTOR, "velocities first", 0.01),
    (THREE, "velocities first", 0.01),
    (HIDDEN, "velocities first", 0.02),
    (FEEDTHROUGH, "velocities first", 0.02),
    (STIFF, "implicit Euler", 0.05),
    (MOVING, "Euler", 0.01),
    (MOVING, "velocities first", 0.01),
)


@pytest.mark.parametrize(("plant", "integrator", "step"), ANSWERED, ids=lambda value: getattr(value, "name", value))
def test_the_plant_is_that_of_the_integrator(plant: Plant, integrator: str, step: float, tmp_path: Path) -> None:
    verdict, why = judge(Case(plant, integrator, step, REFUSES), tmp_path)
    assert verdict == "right", why


def test_positions_first_are_told_as_an_error(tmp_path: Path) -> None:
    """Explicit Euler explains the steps of positions first as well, with other damping: the error states that."""
    verdict, why = judge(Case(MASSES, "positions first", 0.01, REFUSES), tmp_path)
    assert verdict == "told", why


@pytest.mark.parametrize("integrator", ["BDF2", "AB2"])
def test_a_multistep_method_that_starts_otherwise_is_an_error(integrator: str, tmp_path: Path) -> None:
    verdict, why = judge(Case(MOTOR, integrator, 0.01, REFUSES), tmp_path)
    assert verdict == "refused"
    assert "multistep method" in why
