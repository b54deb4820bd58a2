"""A wheelset on rails: wheels and rail heads with arcs as profiles, joined by frames without mass."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import ModelError
from fmilin.models.mechanism import Body, Joint, Loop, Mechanism, MechanismDescription, Placement, Skate

RADIUS, HALF_GAUGE, PROFILE, HEAD, SPEED = 0.46, 0.75, 0.33, 0.3, 10.0
Vector = tuple[float, float, float]


def vector(values: object) -> Vector:
    x, y, z = np.asarray(values, dtype=float)
    return float(x), float(y), float(z)


def wheelset(angle: float) -> Mechanism:
    """Two wheels with hollow profiles; ``angle`` is that of the contact planes in the middle of the track."""
    upright: list[Joint] = [
        Joint("x", "prismatic", "ground", "along", axis=(1, 0, 0)),
        Joint("y", "prismatic", "along", "across", axis=(0, 1, 0)),
        Joint("z", "prismatic", "across", "up", Placement((0, 0, RADIUS)), axis=(0, 0, 1)),
        Joint("yaw", "revolute", "up", "yawed", axis=(0, 0, 1)),
        Joint("roll", "revolute", "yawed", "box", axis=(1, 0, 0)),
        Joint("spin", "revolute", "box", "wheels", axis=(0, 1, 0)),
    ]
    bodies = [*(Body(joint.child, None) for joint in upright[:-1]), Body("wheels", 1000.0, inertia=(600, 80, 600))]
    joints, loops, skates = upright, [], []
    for side, sign in (("left", 1), ("right", -1)):
        normal = np.array([0, -sign * np.sin(angle), np.cos(angle)])
        touches = np.array([0, sign * HALF_GAUGE, 0])
        hub, profile, rail, head = (f"{side}.{part}" for part in ("hub", "profile", "rail", "head"))
        bodies += [Body(frame, None) for frame in (hub, profile, rail, head)]
        center = Placement(vector(touches - PROFILE * normal - [0, 0, RADIUS]))
        joints += [
            Joint(f"{side}.azimuth", "revolute", "box", hub, axis=(0, 1, 0)),
            Joint(f"{side}.shift", "revolute", hub, profile, center, axis=(1, 0, 0)),
            Joint(f"{side}.way", "prismatic", "ground", rail, axis=(1, 0, 0)),
            Joint(f"{side}.turn", "revolute", rail, head, Placement(vector(touches - HEAD * normal)), axis=(1, 0, 0)),
        ]
        ends = Placement(vector(PROFILE * normal)), Placement(vector(HEAD * normal))
        loops.append(Loop(side, "revolute", profile, head, *ends, axis=vector(normal)))
        skates.append(Skate(f"{side}.x", "wheels", vector(HEAD * normal), (1, 0, 0), head))
    across = vector(np.cross(normal, [1, 0, 0]))
    skates.append(Skate("right.y", "wheels", vector(HEAD * normal), across, head))
    return Mechanism(MechanismDescription("wheelset", bodies, joints, loops=loops, skates=skates))


@pytest.mark.parametrize("angle", [1e-3, 1e-2])
def test_a_wheelset_hunts_as_klingel_says(angle: float) -> None:
    """w^2 = V^2 conicity / (r s), with the conicity of arcs on arcs, to first order in the contact angle (Wickens)."""
    model = wheelset(angle)
    point = fl.operating_point(model, {"spin.v": SPEED / RADIUS}, project=True)
    linear = fl.linearize(model, point)
    assert point["x.v"] == pytest.approx(SPEED, rel=1e-12)
    lever = (HALF_GAUGE + HEAD * angle) / (HALF_GAUGE - RADIUS * angle)
    conicity = PROFILE / (PROFILE - HEAD) * lever * angle
    hunting = SPEED * np.sqrt(conicity / (RADIUS * HALF_GAUGE))
    assert np.abs(linear.eigenvalues().imag).max() == pytest.approx(hunting, rel=0.4 * angle)
    assert np.abs(linear.eigenvalues().real).max() < 1e-6 * hunting
    measured = fl.linearize(model, point, derivatives="differences", independent=linear.states.names)
    np.testing.assert_allclose(linear.A, measured.A, atol=1e-7 * np.abs(linear.A).max())


def test_a_frame_that_is_no_body() -> None:
    skate, joint = Skate("s", "wheel", frame="rail"), Joint("j", "prismatic", "ground", "wheel")
    with pytest.raises(ModelError, match="'rail'"):
        MechanismDescription("m", [Body("wheel", 1.0)], [joint], skates=[skate])
