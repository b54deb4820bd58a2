"""One model in several threads: they take turns, and are told the same as one alone."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.systems import four_bar

THREADS, ROUNDS = 8, 24


@pytest.fixture
def many_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[int], bool]) -> int:
    """Do work in many threads at once, and return how often it said no or failed."""
    gate, wrong = threading.Barrier(THREADS), []

    def run(number: int) -> None:
        gate.wait()
        for i in range(ROUNDS):
            try:
                right = work(number + i)
            except Exception as error:  # noqa: BLE001 - whatever it is, it counts
                wrong.append(str(error))
            else:
                wrong.extend([] if right else ["another answer"])

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(wrong)


@pytest.mark.usefixtures("many_switches")
def test_linear_models_of_a_shared_fmu(tmp_path: Path) -> None:
    build_fmu(four_bar(), tmp_path / "four_bar.fmu")
    with fl.load(tmp_path / "four_bar.fmu") as model:
        points = [fl.operating_point(model, {"phi": angle}) for angle in (0.1, 0.4, 0.8)]
        views = [model, model.with_interface(outputs=[])]
        for view in views:  # the first call chooses coordinates, by a way that is rounded otherwise
            fl.linearize(view, points[0])
        alone = [fl.linearize(model, point) for point in points]

        def agrees(k: int) -> bool:
            linear = fl.linearize(views[k % 2], points[k % 3])
            return np.array_equal(linear.A, alone[k % 3].A) and np.array_equal(linear.B, alone[k % 3].B)

        assert in_threads(agrees) == 0


@pytest.mark.usefixtures("many_switches")
def test_visits_of_a_shared_fmu(zoo: Callable[[str], Path]) -> None:
    with fl.load(zoo("pendulum")) as model:
        states = [model.start.states + 0.01 * k for k in range(7)]
        alone = [model.evaluate(0.0, x, model.start.inputs).derivatives for x in states]

        def agrees(k: int) -> bool:
            rates = model.evaluate(0.0, states[k % 7], model.start.inputs).derivatives
            return np.array_equal(rates, alone[k % 7])

        assert in_threads(lambda k: all(agrees(k + i) for i in range(100))) == 0


@pytest.mark.parametrize("function", [fl.linearize, fl.trim, fl.periodic_orbit, fl.operating_point])
def test_what_is_no_model_is_refused_by_its_type(function: Callable[..., object]) -> None:
    linear = fl.linearize(four_bar())
    with pytest.raises(fl.UsageError, match=rf"{function.__name__}\(\) needs a model, .* 'LinearModel'.*fl\.connect"):
        function(linear)
    with pytest.raises(fl.UsageError, match=r"'source' is of the type 'LinearModel', .*fl\.connect"):
        fl.sweep(linear, {"phi": [1.0]})  # type: ignore[call-overload]
