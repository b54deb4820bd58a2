"""OpenFAST's linearization files: what stands in them comes back with names, units, axes; others are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import ModelError, UsageError
from tests.command_line import main
from tests.export.lin_files import Row, lin_file

FLAP = "ED 1st flapwise bending-mode DOF of blade {} (internal DOF index = DOF_BF({},1))"
STATES: list[Row] = [
    ("3.048E+00", FLAP.format(1, 1), True, "m"),
    ("-1.5E-01", "ED First time derivative of " + FLAP[3:].format(1, 1), True, "m/s"),
]
RATES: list[Row] = [("-1.5E-01", "x", True, "m/s"), ("2.5-101", "x", True, "m/s/s")]
INPUTS: list[Row] = [("8.000E+00", "IfW Extended input: horizontal wind speed (steady/uniform wind)", False, "m/s")]
OUTPUTS: list[Row] = [
    ("1.000E+00, 0.000E+00, 0.000E+00", "ED Hub orientation, node 1", False, "-"),
    ("7.0E+02", "ED RootFxc1", True, "(kN)"),
    ("7.0E+02", "ED RootFxc1", True, "(kN)"),
]


def matrices(scale: float = 1.0) -> list[np.ndarray]:
    A = np.array([[0.0, 1.0], [-4.0 * scale, -0.1]])
    return [A, np.array([[0.0], [0.25]]), np.array([[0.0, 0.5], [1e5, 2.0], [1e5, 2.0]]), np.zeros((3, 1))]


def written(path: Path, scale: float = 1.0, **options: object) -> Path:
    path.write_text(lin_file(matrices(scale), (STATES, RATES, INPUTS, OUTPUTS), **options))  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize("orders", [True, False], ids=["2.3 and later", "before 2.3"])
def test_everything_in_the_file_comes_back(tmp_path: Path, orders: bool) -> None:
    linear = fl.LinearModel.load(written(tmp_path / "rotor.1.lin", azimuth=2.0948, orders=orders))
    for ours, theirs in zip((linear.A, linear.B, linear.C, linear.D), matrices(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(linear.f0, [-0.15, 2.5e-101])
    np.testing.assert_array_equal(linear.y0, [3.048, -0.15])
    assert linear.states.names == (
        "ED 1st flapwise bending-mode DOF of blade 1",
        "ED First time derivative of 1st flapwise bending-mode DOF of blade 1",
    )
    assert [s.unit for s in (*linear.states, *linear.inputs, *linear.outputs)] == ["m", "m/s", "m/s", "-", "kN", "kN"]
    assert linear.outputs.names == ("ED Hub orientation, node 1", "ED RootFxc1", "ED RootFxc1 [2]")
    assert "turns with the rotor" in linear.states[0].description
    assert linear.point.parameters == {"azimuth": 2.0948, "rotor_speed": 1.0, "wind_speed": 8.0}
    assert linear.point.outputs["ED Hub orientation, node 1"] == 1.0
    assert (linear.point.time, linear.model.tool) == (120.0, "OpenFAST")


def test_files_of_versions_without_wind_speed(tmp_path: Path) -> None:
    linear = fl.LinearModel.load(written(tmp_path / "old.lin", azimuth=0.0, wind=None, orders=False))
    assert linear.point.parameters == {"azimuth": 0.0, "rotor_speed": 1.0}


def test_azimuths_and_wind_speeds_become_axes(tmp_path: Path) -> None:
    """The rotor turns on in steps, so azimuths of two wind speeds are not quite the same: the exact ones are kept."""
    paths = []
    for i, (wind, shift) in enumerate([(8.0, 0.0), (12.0, 0.02)]):
        for k in range(3):
            path = tmp_path / f"ws{wind:02.0f}.{k + 1}.lin"
            azimuth = (2.0944 * k + 1.0 + shift) % (2 * np.pi)
            paths.append(written(path, 1 + i + k / 10, azimuth=azimuth, wind=wind, time=100.0 + k))
    target = tmp_path / "family.npz"
    assert main(["convert", *map(str, reversed(paths)), "-o", str(target)]) == 0
    family = fl.LinearFamily.load(target)

    assert list(family.axes) == ["wind_speed", "azimuth"]
    assert family.shape == (2, 3)
    np.testing.assert_allclose(family.axes["azimuth"], [1.01, 3.1044, 5.1988], atol=1e-12)
    np.testing.assert_allclose(family.array("A")[:, :, 1, 0], -4 * np.array([[1, 1.1, 1.2], [2, 2.1, 2.2]]))
    assert family[1, 2].point.parameters["azimuth"] == pytest.approx(5.2088, abs=1e-12)


def test_unequal_azimuths_make_a_list_of_points(tmp_path: Path) -> None:
    turns = [(8.0, 0.0), (8.0, 3.0), (12.0, 1.5)]
    paths = [written(tmp_path / f"{i}.lin", azimuth=a, wind=w) for i, (w, a) in enumerate(turns)]
    assert main(["convert", *map(str, paths), "-o", str(tmp_path / "list.json")]) == 0
    assert fl.LinearFamily.load(tmp_path / "list.json").shape == (3,)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("using OpenFAST", "using another tool", "not a linearization file of OpenFAST"),
        ("A: 2 x 2", "A: 2 x 3", "no matrix A of 2 x 2"),
        ("Number of inputs:                    1", "Number of inputs:                    2", "announces 2 inputs"),
        ("discrete states:           0", "discrete states:           3", "has discrete states"),
        ("-4.000000000000E+00  ", "", "not 2 rows of 2 numbers"),
        ("-4.000000000000E+00", "**************", "could not convert string"),
        ("-4.000000000000E+00", "NaN", "NaN or infinite"),
        ("          2    -1.5E-01", "          3    -1.5E-01", "row 2 below 'Order of continuous states:'"),
        ("   Azimuth: ", "   Angle: ", "no line 'Azimuth:'"),
    ],
)
def test_what_does_not_agree_with_itself_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = written(tmp_path / "bad.lin", azimuth=0.0)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ModelError, match=words):
        fl.LinearModel.load(path)


def test_nobody_else_writes_them(tmp_path: Path) -> None:
    linear = fl.LinearModel.load(written(tmp_path / "rotor.lin", azimuth=0.0))
    with pytest.raises(UsageError, match=r"Cannot write '.*\.lin' as a linear model"):
        linear.save(tmp_path / "new.lin")


def rotor(azimuth: float, ground: np.ndarray, speed: float) -> np.ndarray:
    """A of three blades and the tower in rotating coordinates, from the constant one seen from the ground."""
    psi = azimuth + 2 * np.pi * np.arange(3) / 3
    B = np.column_stack([np.ones(3), np.cos(psi), np.sin(psi)])
    slope, bend = np.column_stack([np.zeros(3), -np.sin(psi), np.cos(psi)]), np.diag([0.0, -1.0, -1.0])
    L, rate = np.eye(8), np.zeros((8, 8))
    L[1:4, 1:4] = L[5:8, 5:8] = B
    L[5:8, 1:4] = speed * slope
    rate[1:4, 1:4] = rate[5:8, 5:8] = speed * slope
    rate[5:8, 1:4] = speed**2 * B @ bend
    return np.asarray((L @ ground + rate) @ np.linalg.inv(L))


def test_blades_as_the_ground_sees_them(tmp_path: Path) -> None:
    """Files at turning azimuths of a rotor that is constant from the ground give that constant rotor back."""
    rng = np.random.default_rng(3)
    dofs = ["ED tower bending", *(f"ED 1st flapwise bending-mode DOF of blade {k}" for k in (1, 2, 3))]
    rates = [f"ED First time derivative of {name[3:]}" for name in dofs]
    rows: list[Row] = [("0.0", name, "blade" in name, "m") for name in (*dofs, *rates)]
    truth, paths = {}, []
    for wind, speed in ((8.0, 0.9), (12.0, 1.3)):
        stiff, damp = np.diag([2.0, 9.0, 9.0, 9.0]) + 0.3 * rng.normal(size=(4, 4)), 0.1 * rng.normal(size=(4, 4))
        truth[wind] = np.block([[np.zeros((4, 4)), np.eye(4)], [-stiff, -damp]])
        for k in range(6):
            azimuth = round(k * 2 * np.pi / 6, 4)
            A = rotor(azimuth, truth[wind], speed)
            empty = [np.zeros((8, 0)), np.zeros((0, 8)), np.zeros((0, 0))]
            paths.append(tmp_path / f"{wind:g}.{k}.lin")
            paths[-1].write_text(lin_file([A, *empty], (rows, rows, [], []), azimuth=azimuth, wind=wind, speed=speed))
    assert main(["convert", *map(str, paths), "-o", str(tmp_path / "turbine.npz")]) == 0
    family = fl.LinearFamily.load(tmp_path / "turbine.npz")
    seen = family.multiblade()
    assert seen.states.names[1:4] == tuple(
        f"ED 1st flapwise bending-mode DOF of blade.{c}" for c in ("mean", "cos", "sin")
    )
    for i, wind in enumerate((8.0, 12.0)):
        for k in range(6):
            np.testing.assert_allclose(seen[i, k].A, truth[wind], atol=1e-9)
    mean = seen.averaged()
    assert isinstance(mean, fl.LinearFamily)
    np.testing.assert_allclose(mean[1].A, truth[12.0], atol=1e-9)
    assert "A varies by" in " ".join(map(str, mean[0].warnings))
    turn = seen[1, :]
    for part in ("T", "x0", "error_A"):
        np.testing.assert_allclose(mean.array(part)[1], turn.array(part).mean(axis=0), atol=1e-12)
    assert "azimuth" not in mean[1].point.parameters
    assert np.ptp(turn.T, axis=0).max() > 1.9  # blade states turn: those of one azimuth are not the mean
    with pytest.raises(UsageError, match="needs an axis 'azimuth'"):
        mean.averaged()
    with pytest.raises(UsageError, match="three or more"):
        family.multiblade({"pair": dofs[1:3]})
    ok, reasons = family.ok.copy(), family.reasons.copy()
    ok[0, 1], reasons[0, 1] = False, "It did not balance."
    assert replace(family, ok=ok, reasons=reasons).multiblade().reasons[0, 1] == "It did not balance."


def test_angles_in_another_unit_are_refused(tmp_path: Path) -> None:
    """Multiblade coordinates of degrees taken for radians would be numbers without a meaning."""
    path = written(tmp_path / "rotor.lin", azimuth=120.0)
    path.write_text(path.read_text().replace("120.0000 rad", "120.0000 deg"))
    with pytest.raises(ModelError, match=r"its line 'Azimuth: +120\.0000 deg' is not in rad"):
        fl.LinearModel.load(path)
