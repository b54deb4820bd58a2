"""Several knowns in one directional derivative, where the declared structure allows it and a sample confirms it."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import LinearModel
from fmilin.fmi.client.host_programs import Instruction, Operation, fill
from fmilin.fmi.read.buffers import Group, copy_references
from fmilin.fmi.read.fmu_model import FmuModel
from fmilin.fmi.read.instance3 import Instance3
from fmilin.fmi.write import build_fmu
from fmilin.models import OdeModel
from fmilin.signals import FloatArray
from tests.fmi.read.recorded import Recorded
from tests.fmi.write.linear_samples import written
from tests.fmus.make import pack
from tests.hand_made import sized

N = 30


@pytest.fixture(scope="module", params=["2.0", "3.0"])
def chain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain of lags, each pulled by its neighbours; every tenth is an output."""
    names: list[str] = [f"x{i}" for i in range(N)]
    pulled: dict[str, str] = {
        name: f"u - 3*{name}^3" + "".join(f" + {i + 1}*{names[j]}" for j in (i - 1, i + 1) if 0 <= j < N)
        for i, name in enumerate(names)
    }
    start = {name: 0.1 * (i % 7) for i, name in enumerate(names)}
    model = OdeModel("chain", pulled, inputs=["u"], outputs={f"y{i}": f"x{i}^2" for i in range(0, N, 10)}, start=start)
    path = tmp_path_factory.mktemp("chain") / "chain.fmu"
    return build_fmu(model, path, fmi_version=request.param)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions that were called."""
    return Recorded(monkeypatch).names


def asked(names: list[str]) -> int:
    return sum(name.endswith(("GetDirectionalDerivative", "GetAdjointDerivative")) for name in names)


def one_by_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> fl.LinearModel:
    with monkeypatch.context() as patch, fl.load(path) as model:
        patch.setattr("fmilin.fmi.read.sensitivities.MIN_GROUPED_KNOWNS", 10**9)
        return fl.linearize(model)


def test_neighbours_are_asked_for_in_turn(chain: Path, counted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = one_by_one(chain, monkeypatch)
    assert asked(counted) >= N + 1
    counted.clear()
    with fl.load(chain) as model:
        linear = fl.linearize(model)
    assert 0 < asked(counted) <= 8
    for name in "ABCD":
        np.testing.assert_array_equal(getattr(linear, name), getattr(expected, name))


def test_differences_along_groups_are_few_messages(chain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those beside the point, those of the groups and far away, and those that confirm the structure: one each.

    Whether the model repeats itself is seen in messages of one point each.
    """
    with fl.load(chain) as model:
        exact, first = fl.linearize(model), fl.linearize(model, derivatives="differences")
        recorded = Recorded(monkeypatch)
        again = fl.linearize(model, derivatives="differences")
    assert recorded.messages <= 28 < again.method.evaluations <= 75
    for name in "ABCD":
        np.testing.assert_array_equal(getattr(again, name), getattr(first, name))
        np.testing.assert_allclose(getattr(again, name), getattr(exact, name), atol=1e-9)


def test_many_points_are_differentiated_in_one_message(chain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 40
    x = np.random.default_rng(3).uniform(-1.0, 1.0, (count, N))
    points = np.linspace(0.0, 1.0, count), x, np.linspace(1.0, 2.0, count)[:, None]
    with fl.load(chain) as model:
        assert isinstance(model, FmuModel)
        model.tangents(*points, range(N))
        recorded = Recorded(monkeypatch)
        together = model.tangents(*points, range(N))
        assert recorded.messages == 1
        monkeypatch.setattr(FmuModel, "_differentiate_together", lambda *_: None)
        alone = model.tangents(*points, range(N))
    assert together is not None
    assert alone is not None
    for name in ("rates", "values", "derivatives", "outputs"):
        np.testing.assert_array_equal(getattr(together, name), getattr(alone, name))


@pytest.mark.parametrize("name", ["pendulum", "moves_with_products", "shifts_after_products", "moves_far_off"])
def test_many_points_have_the_derivatives_of_each_alone(
    name: str, zoo: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with fl.load(zoo(name), constraints=[]) as model:
        assert isinstance(model, FmuModel)
        n = len(model.states)
        x = model.start.states + np.linspace(0.0, 4.0, 9)[:, None] * np.ones(n)
        u = np.tile(model.start.inputs, (9, 1))
        together = [model.tangents(np.zeros(9), x, u, range(n)) for _ in range(3)][-1]
        assert together is not None
        monkeypatch.setattr(FmuModel, "_differentiate_together", lambda *_: None)
        alone = model.tangents(np.zeros(9), x, u, range(n))
        assert alone is not None
        for part in ("rates", "values", "derivatives", "outputs"):
            np.testing.assert_array_equal(getattr(together, part), getattr(alone, part))


def test_a_structure_that_a_sample_refutes_is_not_used(
    chain: Path, counted: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One derivative claims to depend on itself alone."""
    with zipfile.ZipFile(chain) as archive:
        members: dict[str, bytes | str] = {m: archive.read(m) for m in archive.namelist()}
    xml = members["modelDescription.xml"]
    assert isinstance(xml, bytes)
    lists = re.findall(r'dependencies="(\d+ \d+ \d+ \d+)"', xml.decode())
    own = lists[3].split()[1]
    lying = xml.decode().replace(f'dependencies="{lists[3]}"', f'dependencies="{own}"', 1)
    lying = re.sub(rf'(dependencies="{own}") dependenciesKind="[^"]*"', r"\1", lying)
    path = pack(tmp_path / "chain.fmu", members | {"modelDescription.xml": lying})
    expected = one_by_one(chain, monkeypatch)
    with fl.load(path) as model:
        linear = fl.linearize(model)
    np.testing.assert_allclose(linear.A, expected.A, atol=1e-9)


# ---------------------------------------------------------------------- adjoint derivatives


def large(states: int, outputs: int, inputs: int = 1) -> LinearModel:
    """A chain of lags, of which every output sums up all; random numbers."""
    random = np.random.default_rng(500)
    i = np.arange(states)
    A = np.where(np.abs(i[:, None] - i) <= 1, random.uniform(0.1, 1.0, (states, states)), 0.0) - 4.0 * np.eye(states)
    B, C = random.uniform(0.5, 1.0, (states, inputs)), random.uniform(0.5, 1.0, (outputs, states))
    return replace(sized(states, 0, inputs, outputs), A=A, B=B, C=C, D=np.zeros((outputs, inputs)))


@pytest.mark.parametrize(("states", "outputs", "inputs", "most"), [(500, 20, 1, 59), (2, 1, 60, 8)])
def test_full_rows_are_asked_for_by_adjoint_derivatives(
    tmp_path: Path, counted: list[str], states: int, outputs: int, inputs: int, most: int
) -> None:
    expected = large(states, outputs, inputs)
    with fl.load(written(expected, tmp_path, "3.0", deviation=True)) as model:
        lin = fl.linearize(model, independent=expected.states.names)
    assert 0 < asked(counted) <= most
    assert lin.method.derivatives == "exact"
    for name in "ABCD":
        np.testing.assert_array_equal(getattr(lin, name), getattr(expected, name))


def test_adjoint_derivatives_that_are_refused_or_wrong_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: list[str]
) -> None:
    expected = large(30, 3)
    path = written(expected, tmp_path, "3.0", deviation=True)

    def spoilt(spoil: Callable[[Instance3, Group, Group, FloatArray], Instruction]) -> fl.LinearModel:
        with monkeypatch.context() as patch, fl.load(path) as model:
            patch.setattr(Instance3, "_adjoint", spoil)
            return fl.linearize(model, independent=expected.states.names)

    def refuses(self: Instance3, unknowns: Group, knowns: Group, target: FloatArray) -> Instruction:
        """Ask for an unknown that the model does not have."""
        nothing = copy_references(self.arena, [4_000_000_000])
        return self.component.bound(Operation.ADJOINT, nothing, knowns.references, unknowns.values, target)

    def answers_nothing(self: Instance3, unknowns: Group, knowns: Group, target: FloatArray) -> Instruction:
        return fill(self.arena, target, 0.0)

    for spoil, words in ((refuses, "Adjoint derivatives were declared but failed"), (answers_nothing, "")):
        actual = spoilt(spoil)
        assert words in " ".join(map(str, actual.warnings))
        assert actual.method.derivatives == "exact"
        np.testing.assert_array_equal(actual.C, expected.C)
