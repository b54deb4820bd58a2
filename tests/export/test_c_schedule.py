"""Gain schedules as C99 files: the numbers of Python, also outside the range and in holes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import fmilin as fl
from fmilin.design import Schedule
from fmilin.errors import UnknownNameError, UsageError
from tests.c_code import COMPILERS, PLACES, CCode, compiled, run_elsewhere, stack_of, stated
from tests.design.scheduled import SAMPLE, answers, every_kind, family_over, lqr, steps

LIMITS = {"torque": (-8.0, 6.0)}


@pytest.fixture(scope="module")
def every() -> Mapping[str, Schedule]:
    return every_kind()


@pytest.mark.parametrize("kind", ["one", "two", "three", "velocity", "lqg"])
def test_c_equals_python(every: Mapping[str, Schedule], kind: str, tmp_path: Path) -> None:
    made = every[kind]
    rows = steps(made, 300)
    made.save(tmp_path / "free.c")
    code = CCode(tmp_path / "free.c")
    assert code.run(rows) == pytest.approx(answers(made, rows), rel=1e-12, abs=1e-12)
    assert code.memory[len(made.over)] == made.steps_outside > 10
    assert code.sample_time == SAMPLE
    made.save(tmp_path / "limited.c", limits=LIMITS)
    limited = answers(made, rows, LIMITS["torque"])
    assert {-8.0, 6.0} <= set(limited.ravel())
    assert CCode(tmp_path / "limited.c").run(rows) == pytest.approx(limited, rel=1e-12, abs=1e-12)
    made.save(tmp_path / "single.c", precision="single")
    assert CCode(tmp_path / "single.c").run(rows) == pytest.approx(answers(made, rows), rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("place", PLACES)
def test_32_bit_code_has_the_same_numbers(every: Mapping[str, Schedule], place: str, tmp_path: Path) -> None:
    rows = steps(every["lqg"], 50)
    every["lqg"].save(tmp_path / "lqg.c")
    assert run_elsewhere(tmp_path / "lqg.c", rows, place) == pytest.approx(answers(every["lqg"], rows), rel=1e-11)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("precision", ["double", "single"])
def test_compilers_have_nothing_to_say(
    every: Mapping[str, Schedule], precision: str, compiler: tuple[str, ...], tmp_path: Path
) -> None:
    for kind, made in every.items():
        made.save(tmp_path / f"{kind}.c", limits=LIMITS, precision=precision)  # type: ignore[arg-type]
    (tmp_path / "all.c").write_text("".join(f'#include "{kind}.c"\n' for kind in every))
    compiled(tmp_path / "all.c", "-O1", compiler=compiler)


@pytest.mark.parametrize("flag", ["-O0", "-Os"])
def test_the_comment_says_what_is_needed(every: Mapping[str, Schedule], flag: str, tmp_path: Path) -> None:
    for kind, made in every.items():
        made.save(tmp_path / f"{kind}.c", limits=LIMITS)
        need = stated(tmp_path / f"{kind}.c")
        assert stack_of(tmp_path / f"{kind}.c", flag) <= need["stack"]
        assert need["memory"] == CCode(tmp_path / f"{kind}.c").memory.nbytes


def test_without_a_sample_time_there_is_none(tmp_path: Path) -> None:
    fl.design.schedule(family_over("theta"), lqr).save(tmp_path / "gains.c")
    assert "SAMPLE_TIME" not in (tmp_path / "gains.c").read_text()
    compiled(tmp_path / "gains.c")


def test_bad_input_is_told(every: Mapping[str, Schedule], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"as a schedule: known are \.c and \.fmu\."):
        every["one"].save(tmp_path / "schedule.mat")
    with pytest.raises(UnknownNameError, match="torqe"):
        every["one"].save(tmp_path / "schedule.c", limits={"torqe": (-1.0, 1.0)})
    assert list(tmp_path.iterdir()) == []
