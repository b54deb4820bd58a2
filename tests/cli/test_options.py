"""The command line's texts become values, or one clear sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from fmilin.cli import options
from fmilin.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("", []),
        ("phi", ["phi"]),
        ("phi, w", ["phi", "w"]),
        ("q[1,2],der(q[1,3]),`a, b`", ["q[1,2]", "der(q[1,3])", "a, b"]),
        ("x[1", ["x[1"]),
    ],
)
def test_names_are_split_at_the_outer_commas(text: str | None, expected: list[str] | None) -> None:
    assert options.names(text, "--outputs") == expected


@pytest.mark.parametrize("text", ["a,", ",a", "a,,b", ","])
def test_a_missing_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"--inputs .* a name is missing between two commas"):
        options.names(text, "--inputs")


def test_a_name_twice() -> None:
    with pytest.raises(UsageError, match="'w,phi,w': w occurs more than once"):
        options.names("w,phi,w", "--independent")


def test_assignments() -> None:
    given = ["phi=1.5", " pin.x = -2e-3", "q[1,2]=0", "a=b=4", "`odd name`=7", "on=true"]
    assert options.assignments(given) == {
        "phi": 1.5, "pin.x": -2e-3, "q[1,2]": 0.0, "a=b": 4.0, "odd name": 7.0, "on": True,
    }  # fmt: skip


@pytest.mark.parametrize("text", ["phi", "=1", "phi=", "phi=1;2", "phi=one", "phi=nan", "phi=inf", "phi=1e999", ""])
def test_a_malformed_assignment(text: str) -> None:
    with pytest.raises(UsageError, match=r"--set '.*'"):
        options.assignments([text])


def test_an_assignment_twice() -> None:
    with pytest.raises(UsageError, match="sets 'phi' twice"):
        options.assignments(["phi=1", "phi=2"])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_time_that_is_none(value: float) -> None:
    with pytest.raises(UsageError, match=r"--time .*must be finite"):
        options.finite(value, "--time")
    assert options.finite(None, "--time") is None
    assert options.finite(-1.0, "--time") == -1.0


def test_outputs_must_differ_and_be_writable(tmp_path: Path) -> None:
    a, b = tmp_path / "a.mat", tmp_path / "b.json"
    assert options.check_outputs([a, b]) == [a, b]
    with pytest.raises(UsageError, match="same file twice"):
        options.check_outputs([a, tmp_path / "." / "a.mat"])
    with pytest.raises(UsageError, match=r"suffix '\.slx'"):
        options.check_outputs([a, tmp_path / "b.slx"])
    with pytest.raises(UsageError, match="there is no folder"):
        options.check_outputs([a, tmp_path / "no" / "b.mat"])
    assert list(tmp_path.iterdir()) == []
