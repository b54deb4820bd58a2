"""The linkage of a wheel loader: eight bodies, three loops, two degrees of freedom, two sets of coordinates."""

from __future__ import annotations

from fmilin.native.mechanism import Body, Joint, JointForce, Mechanism, MechanismDescription, Placement, Sensor
from fmilin.native.systems.drawing import GROUND, Pin, PlaneFrame, distance, holding_forces, pinned, pinned_loop

PINS: dict[str, Pin] = {
    "A": (0.0, 2.05),  # boom on the frame
    "B": (2.75, 1.05),  # bucket on the boom
    "C": (0.25, 0.95),  # lift cylinder on the frame
    "D": (1.15, 1.52),  # lift cylinder on the boom
    "E": (1.45, 1.95),  # bell crank on the boom
    "F": (0.15, 2.55),  # tilt cylinder on the frame
    "G": (1.35, 2.60),  # tilt cylinder on the bell crank
    "H": (1.62, 1.28),  # link on the bell crank
    "I": (2.62, 1.42),  # link on the bucket
    "T": (3.75, 0.85),  # the bucket's edge
}
"""Where the pins are at the start, in m: x forward, y up, the ground at y = 0."""


def loader(*, at_rest: bool = False) -> Mechanism:
    """Return the linkage of a wheel loader: 16 states, of which 4 are independent.

    A Z-bar linkage in the manner of Spencer (thesis), section 4.5, with dimensions of its own: a boom on the frame
    of the vehicle, a bucket at its end, a bell crank on the boom, a link from there to the bucket, and two
    hydraulic cylinders, tube and rod each, for lifting and tilting, whose forces push. Three loops close at the
    pins D, G and I. Gravity is -y; ``edge`` is that of the bucket. As in the thesis it starts at rest with the
    cylinders free of force: no equilibrium, and its eigenvalues depend on the coordinates that are kept, the angles
    of boom and bucket or the cylinders (``independent=["lift.q", "tilt.q"]``). ``at_rest`` starts with the forces
    that hold it: then they do not.

    >>> model = loader()
    >>> len(model.states), model.independent
    (16, ('boom.q', 'bucket.q', 'boom.v', 'bucket.v'))
    """
    forces = holding_forces(_loader((0.0, 0.0))) if at_rest else (0.0, 0.0)
    return _loader(forces)


def _loader(forces: tuple[float, ...]) -> Mechanism:
    p = PINS
    boom, bucket = ("boom", PlaneFrame.along(p["A"], p["B"])), ("bucket", PlaneFrame.along(p["B"], p["T"]))
    crank, link = ("crank", PlaneFrame.along(p["E"], p["G"])), ("link", PlaneFrame.along(p["H"], p["I"]))
    lift, tilt = PlaneFrame.along(p["C"], p["D"]), PlaneFrame.along(p["F"], p["G"])
    lift_rod, tilt_rod = PlaneFrame(p["D"], lift.angle), PlaneFrame(p["G"], tilt.angle)
    ground = ("ground", GROUND)
    joints = [
        pinned("boom", ground, boom),
        pinned("lift_pin", ground, ("lift_tube", lift)),
        _cylinder("lift", p["C"], p["D"]),
        pinned("tilt_pin", ground, ("tilt_tube", tilt)),
        _cylinder("tilt", p["F"], p["G"]),
        pinned("crank", boom, crank),
        pinned("link", crank, link),
        pinned("bucket", boom, bucket),
    ]
    loops = [
        pinned_loop("D", p["D"], boom, ("lift_rod", lift_rod)),
        pinned_loop("G", p["G"], crank, ("tilt_rod", tilt_rod)),
        pinned_loop("I", p["I"], bucket, link),
    ]
    edge = bucket[1].local(p["T"])
    return Mechanism(
        MechanismDescription(
            "loader",
            _bodies(boom[1], bucket[1], crank[1]),
            joints,
            loops,
            inputs=[
                JointForce("lift_force", "lift", start=forces[0]),
                JointForce("tilt_force", "tilt", start=forces[1]),
            ],
            sensors=[
                Sensor("edge.x", "position", "bucket", point=edge),
                Sensor("edge.y", "position", "bucket", point=edge, axis=(0, 1, 0)),
                Sensor("lift.q", "joint_position", "lift"),
                Sensor("tilt.q", "joint_position", "tilt"),
            ],
            gravity=(0, -9.81, 0),
            independent=("boom.q", "bucket.q", "boom.v", "bucket.v"),
        )
    )


def _bodies(boom: PlaneFrame, bucket: PlaneFrame, crank: PlaneFrame) -> list[Body]:
    """Return the bodies: kg, centres of mass in the drawing, moments of inertia in kg m2."""
    link = distance(PINS["H"], PINS["I"]) / 2
    return [
        _flat("boom", 1250.0, boom.local((1.42, 1.68)), 900.0),
        _flat("lift_tube", 110.0, (0.40, 0.0, 0.0), 8.0),
        _flat("lift_rod", 60.0, (-0.45, 0.0, 0.0), 5.0),
        _flat("tilt_tube", 90.0, (0.42, 0.0, 0.0), 7.0),
        _flat("tilt_rod", 50.0, (-0.50, 0.0, 0.0), 4.0),
        _flat("crank", 230.0, crank.local((1.47, 1.95)), 40.0),
        _flat("link", 80.0, (link, 0.0, 0.0), 7.0),
        _flat("bucket", 1350.0, bucket.local((3.20, 1.10)), 420.0),
    ]


def _flat(name: str, mass: float, center: tuple[float, float, float], moment: float) -> Body:
    """Return a flat body: of its inertia only that about z takes part."""
    return Body(name, mass, center, (moment / 2, moment / 2, moment))


def _cylinder(name: str, foot: Pin, eye: Pin) -> Joint:
    """Return the joint of the rod of a cylinder in its tube; its coordinate is the length from pin to pin."""
    return Joint(name, "prismatic", f"{name}_tube", f"{name}_rod", Placement(), axis=(1, 0, 0),
                 position=distance(foot, eye))  # fmt: skip
