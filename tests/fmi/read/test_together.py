"""Several knowns in one directional derivative, where the declared structure allows it and a sample confirms it."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.fmi.read.component import Call, Component
from fmilin.fmi.write import build_fmu
from fmilin.models.ode import OdeModel
from tests.fmus.make import pack

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
    called: list[str] = []
    real = Component.first_bad

    def counting(self: Component, calls: Iterable[Call]) -> tuple[int, str] | None:
        made = tuple(calls)
        called.extend(name for _, name in made)
        return real(self, made)

    monkeypatch.setattr(Component, "first_bad", counting)
    return called


def asked(names: list[str]) -> int:
    return sum("GetDirectionalDerivative" in name for name in names)


def one_by_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> fl.LinearModel:
    with monkeypatch.context() as patch, fl.load(path) as model:
        patch.setattr("fmilin.fmi.read.sensitivities.FEWEST", 10**9)
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
