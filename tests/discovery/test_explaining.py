"""Why channels are zero: planted reasons, each named and confirmed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fmilin as fl
from fmilin.errors import UnknownNameError, UsageError
from fmilin.models import OdeModel
from tests.command_line import main
from tests.discovery.planted_zeros import PLANTED, ode


def test_there_are_thirty() -> None:
    assert sum(planted.kind != "not zero" for planted in PLANTED.values()) >= 30


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_zero(name: str) -> None:
    planted = PLANTED[name]
    why = fl.explain(planted.make(), None, planted.input, planted.output)
    assert why.kind == planted.kind, why
    assert not planted.culprit or planted.culprit in why.culprits, why
    assert why.confirmed
    assert all(culprit in why.text for culprit in why.culprits[:4])


def test_all_zeros_of_a_model() -> None:
    """Column of w, row of b: each is explained once, and what answers is left out."""
    make = ode({"a": "-a + u", "b": "-b + a*w"}, "a", inputs=["u", "w"])
    reasons = fl.explain_zeros(make())
    assert [(r.input, r.kind, r.culprits) for r in reasons] == [("w", "no path", ("a",))]
    assert fl.explain_zeros(ode({"a": "-a + u"}, "a")()) == ()


def test_a_channel_that_answers() -> None:
    why = fl.explain(ode({"a": "-a + u"}, "a")(), None, "u", "y")
    assert (why.kind, why.culprits) == ("not zero", ())


def test_the_remark_points_to_it() -> None:
    linear = fl.linearize(PLANTED["two equations apart"].make())
    assert any("fl.explain_zeros(model)" in str(w) for w in linear.warnings if w.kind == "no-response")


def test_on_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "valve.py").write_text(
        "from tests.discovery.planted_zeros import PLANTED\nvalve = PLANTED['valve without pressure'].make()\n",
        encoding="utf-8",
    )
    model = f"{tmp_path}/valve.py:valve"
    assert main(["explain", model, "--input", "u", "--output", "y"]) == 0
    assert "a factor on the path vanishes there. At another value of 'p'" in capfd.readouterr().out
    assert main(["explain", model, "--json"]) == 0
    reason, _ = json.loads(capfd.readouterr().out)["explanations"]  # the other is of p, which waits for u
    assert (reason["input"], reason["kind"], reason["culprits"]) == ("u", "point", ["p"])
    assert main(["explain", model, "--set", "p=2"]) == 0
    assert "Every input affects an output" not in capfd.readouterr().out  # p itself moves nothing while u is zero
    assert main(["explain", model, "--input", "u"]) == 2
    assert "A channel has an input and an output" in capfd.readouterr().err
    assert main(["explain", model, "--input", "uu", "--output", "y"]) == 2
    assert "Did you mean 'u'" in capfd.readouterr().err


def test_names_that_are_none() -> None:
    model = PLANTED["gain of zero"].make()
    with pytest.raises(UnknownNameError, match="an input of 'planted'"):
        fl.explain(model, None, "v", "y")
    with pytest.raises(UnknownNameError, match="an output"):
        fl.explain(model, None, "u", "z")
    with pytest.raises(UsageError, match="no inputs or no outputs"):
        fl.explain_zeros(OdeModel("o", {"x": "-x"}))


def test_a_parameter_and_a_factor_that_are_zero_together() -> None:
    """u reaches z by k and by z itself: with one of them nonzero the channel stays shut, and a path there is."""
    rates, start = {"x": "-x + k*u", "z": "-z + x*z"}, {"x": 0.0}
    model = OdeModel("both", rates, inputs=["u"], outputs={"y": "z"}, parameters={"k": 0.0, "c": 0.0}, start=start)
    why = fl.explain(model, None, "u", "y")
    assert (why.kind, why.culprits, why.confirmed) == ("point", ("k", "z"), True)
    assert "The parameter 'k' is zero, and with another value: It is due to the point (z = 0)" in why.text
