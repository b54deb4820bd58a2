"""Couplings with several leaders: Willis' equation of planetary gears, differentials."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import ModelError
from fmilin.models.mechanism import Body, Coupling, Joint, JointForce, Mechanism, MechanismDescription

SUN, RING = 24, 66  # teeth
INERTIAS = {"sun": 0.02, "ring": 0.3, "carrier": 0.1}


def planetary() -> MechanismDescription:
    """(w_sun - w_carrier) z_sun = -(w_ring - w_carrier) z_ring (Willis 1841)."""
    bodies = [Body(name, 1.0, inertia=(1, 1, J)) for name, J in INERTIAS.items()]
    joints = [Joint(f"{name}_shaft", "revolute", "ground", name) for name in INERTIAS]
    willis = Coupling("planets", "carrier_shaft", "sun_shaft", SUN / (SUN + RING), leaders=["ring_shaft"],
                      ratios=[RING / (SUN + RING)])  # fmt: skip
    inputs = [JointForce(name, f"{name}_shaft") for name in INERTIAS]
    return MechanismDescription("gear", bodies, joints, couplings=[willis], inputs=inputs)


def test_a_planetary_gear_obeys_willis() -> None:
    """With q = (sun, ring) and carrier = n q: (diag(J_s, J_r) + J_c n n') q'' = (torques) + n torque_c."""
    linear = fl.linearize(
        Mechanism(planetary()), independent=["sun_shaft.q", "ring_shaft.q"], outputs=["carrier_shaft.v"]
    )
    n = np.array([SUN, RING]) / (SUN + RING)
    M = np.diag([INERTIAS["sun"], INERTIAS["ring"]]) + INERTIAS["carrier"] * np.outer(n, n)
    np.testing.assert_allclose(linear.B[2:], np.linalg.solve(M, np.column_stack((np.eye(2), n))), rtol=1e-12)
    np.testing.assert_allclose(linear.C, [[0, 0, *n]], rtol=1e-12, atol=1e-14)


def test_a_held_ring_gives_the_ratio_of_the_gear() -> None:
    """w_sun / w_carrier = 1 + z_ring / z_sun; the coupling's reaction balances the torques at rest."""
    d = planetary()
    held = MechanismDescription("gear", d.bodies, d.joints, couplings=[*d.couplings, Coupling("brake", "ring_shaft")],
                                inputs=d.inputs)  # fmt: skip
    model = Mechanism(held)
    linear = fl.linearize(model, independent=["sun_shaft.q"], outputs=["carrier_shaft.v"])
    ratio = SUN / (SUN + RING)
    assert linear.C[0, 1] == pytest.approx(ratio, rel=1e-12)
    at = fl.trim(model, fixed={"carrier": 90.0}, free=["sun"], steady=["sun_shaft.q", "carrier_shaft.q"])
    assert at.inputs[model.inputs.index_of("sun")] == pytest.approx(-90.0 * ratio, rel=1e-9)


def test_a_differential_of_a_file(tmp_path: Path) -> None:
    """The cage turns at the mean of both wheels, and its torque splits evenly."""
    path = tmp_path / "axle.toml"
    parts = "".join(
        f'[[body]]\nname = "{name}"\nmass = 1\ninertia = [1, 1, {J}]\n[[joint]]\nname = "{name}_shaft"\n'
        f'type = "revolute"\nparent = "ground"\nchild = "{name}"\n'
        for name, J in {"left": 0.5, "right": 0.5, "cage": 0.1}.items()
    )
    path.write_text(
        parts
        + """
[[coupling]]
name = "pinions"
joint = "cage_shaft"
leader = "left_shaft"
ratio = 0.5
leaders = ["right_shaft"]
ratios = [0.5]
[[input]]
kind = "joint_force"
name = "engine"
joint = "cage_shaft"
"""
    )
    linear = fl.linearize(fl.load(path), independent=["left_shaft.q", "right_shaft.q"])
    assert linear.B[2:, 0] == pytest.approx([0.5 / (0.5 + 0.1 / 2)] * 2, rel=1e-12)


@pytest.mark.parametrize(
    ("leader", "ratios", "said"),
    [
        ("ring_shaft", [], "'ratios' of the coupling 'planets'"),
        ("sun_shaft", [1.0], "follows a joint twice: add its ratios up"),
        ("carrier_shaft", [1.0], "couples the joint 'carrier_shaft' with itself"),
    ],
)
def test_leaders_that_do_not_fit(leader: str, ratios: list[float], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        Coupling("planets", "carrier_shaft", "sun_shaft", 0.3, leaders=[leader], ratios=ratios)


def test_an_unknown_leader_and_none_before_it() -> None:
    d = planetary()
    wrong = Coupling("p", "carrier_shaft", "sun_shaft", 0.3, leaders=["rings"], ratios=[1])
    with pytest.raises(ModelError, match="'rings' is not a joint"):
        MechanismDescription("gear", d.bodies, d.joints, couplings=[wrong])
    with pytest.raises(ModelError, match="further 'leaders' but no first 'leader'"):
        Coupling("p", "carrier_shaft", leaders=["ring_shaft"], ratios=[1.0])
