"""Units of varied parameters: from a mechanism into its family, its files and its pictures."""

from pathlib import Path

import pytest

import fmilin as fl
from fmilin.models.mechanism import Body, Joint, Mechanism, MechanismDescription


@pytest.fixture(scope="module")
def family() -> fl.LinearFamily:
    rod = Body("rod", 1.0, center=(0, 0, -0.75), inertia=(0.02, 0.02, 0))
    pin = Joint("pin", "revolute", "ground", "rod", axis=(0, 1, 0), damping=(0.1,))
    return fl.sweep(
        Mechanism(MechanismDescription("pendulum", [rod], [pin])), {"rod.mass": [1.0, 2.0], "pin.damping": [0.1, 0.2]}
    )


def test_axes_and_lines_carry_the_units_of_parameters(family: fl.LinearFamily, tmp_path: Path) -> None:
    family.save(tmp_path / "family.json")
    for each in (family, fl.LinearFamily.load(tmp_path / "family.json")):
        assert each.parameter_units == {"rod.mass": "kg", "pin.damping": "N.m.s/rad"}
        figure = each.plot.root_locus()
        assert "pin.damping [N·m·s/rad]" in [axes.get_ylabel() for axes in figure.axes]
        names = [text.get_text() for text in figure.legends[0].get_texts()]
        assert names[:2] == ["rod.mass = 1 kg", "rod.mass = 2 kg"]


def test_every_parameter_of_a_mechanism_has_a_unit() -> None:
    model = fl.systems.loader()
    units = {name: signal.unit for name, signal in model.describe_parameters().items()}
    assert units.keys() == dict(model.parameters).keys()
    assert units["gravity.x"] == "m/s2"
    assert not [name for name, unit in units.items() if not unit]


def test_options_of_a_trim_are_named_where_they_are_given_to_a_sweep() -> None:
    with pytest.raises(TypeError, match=r"option of the trim: trim=fl\.TrimRequest\(free=\.\.\.\)"):
        fl.sweep(fl.systems.four_bar(), {"phi": [1.0]}, trim=True, free=["torque"])  # type: ignore[call-overload]
