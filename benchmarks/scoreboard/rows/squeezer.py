"""Andrews' squeezing mechanism: seven bodies, three loops, one degree of freedom."""

from __future__ import annotations

from benchmarks.scoreboard.answers import derivative
from benchmarks.scoreboard.doors import fmu_of_toml, mjcf, toml
from benchmarks.scoreboard.row import Row

SOURCE = "Mazzia, Magherini, Test Set for Initial Value Problem Solvers, Andrews' squeezing mechanism"
PAGE = "https://archimede.uniba.it/~testset/"

BODIES = [  # name, mass, centre of mass, moment of inertia
    ("K1", 0.04325, (0.00092, 0.0), 2.194e-6),
    ("K2", 0.00365, (-0.0115, 0.0), 4.410e-7),
    ("K3", 0.02373, (0.01874, -0.01043), 5.255e-6),
    ("K4", 0.00706, (0.0, -0.00579), 5.667e-7),
    ("K5", 0.07050, (0.02308, 0.00916), 1.169e-5),
    ("K6", 0.00706, (0.00579, 0.0), 5.667e-7),
    ("K7", 0.05498, (0.01228, -0.00449), 1.912e-5),
]
JOINTS = [  # name, parent, child, where on the parent, angle
    ("beta", "ground", "K1", (0.0, 0.0), -0.0617138900142764496358948458001),
    ("theta", "K1", "K2", (0.007, 0.0), 0.0),
    ("gamma", "ground", "K3", (-0.03635, 0.03273), 0.455279819163070380255912382449),
    ("delta", "ground", "K5", (-0.06934, -0.00227), 0.487364979543842550225598953530),
    ("phi", "K5", "K4", (0.04, 0.0), 0.222668390165885884674473185609),
    ("epsilon", "ground", "K7", (-0.06934, -0.00227), 1.23054744454982119249735015568),
    ("omega", "K7", "K6", (0.0, -0.04), -0.222668390165885884674473185609),
]
TIPS = {"K3": (0.0, -0.035), "K4": (0.0, -0.02), "K6": (0.02, 0.0)}
"""Where three bodies meet the end of K2."""

BODY = '[[body]]\nname = "{}"\nmass = {}\ncenter = [{}, {}, 0]\ninertia = [0, 0, {}]\nany_inertia = true\n'
JOINT = """[[joint]]
name = "{}"
type = "revolute"
parent = "{}"
child = "{}"
placement = {{position = [{}, {}, 0]}}
position = {}
"""
LOOP = """[[loop]]
name = "P{0}"
type = "point_on_line"
first = "K2"
first_placement = {{position = [-0.028, 0, 0]}}
second = "{0}"
second_placement = {{position = [{1}, {2}, 0]}}
"""
SPRING = """[[spring]]
name = "spring"
first = "K3"
first_point = [0.02, -0.018, 0]
second = "ground"
second_point = [0.014, 0.072, 0]
stiffness = 4530
length = 0.07785
[[input]]
kind = "joint_force"
name = "motor"
joint = "beta"
start = 0.033
"""

TOML = "\n".join(
    [
        'name = "squeezer"\ngravity = [0, 0, 0]\nindependent = ["beta.q"]',
        *(BODY.format(name, mass, *centre, inertia) for name, mass, centre, inertia in BODIES),
        *(JOINT.format(name, parent, child, *place, angle) for name, parent, child, place, angle in JOINTS),
        *(LOOP.format(body, *tip) for body, tip in TIPS.items()),
        SPRING,
    ]
)

CHILDREN = {"ground": ("K1", "K3", "K5", "K7"), "K1": ("K2",), "K5": ("K4",), "K7": ("K6",)}


def mjcf_body(name: str) -> str:
    """Return a body with those that it carries, as MJCF."""
    _, mass, (x, y), inertia = next(body for body in BODIES if body[0] == name)
    joint, _, _, (at_x, at_y), _ = next(joint for joint in JOINTS if joint[2] == name)
    places = {"tip": {**TIPS, "K2": (-0.028, 0.0)}.get(name), "end": (0.02, -0.018) if name == "K3" else None}
    sites = [f'<site name="{name}_{n}" pos="{p[0]} {p[1]} 0"/>' for n, p in places.items() if p]
    return (
        f'<body name="{name}" pos="{at_x} {at_y} 0"><joint name="{joint}" axis="0 0 1"/>'
        f'<inertial pos="{x} {y} 0" mass="{mass}" diaginertia="{inertia} {inertia} {inertia}"/>'
        + "".join(sites)
        + "".join(map(mjcf_body, CHILDREN.get(name, ())))
        + "</body>"
    )


ORDER = ("beta", "theta", "gamma", "delta", "phi", "epsilon", "omega")
"""Of the joints, from the ground outwards."""

ANGLES = {name: angle for name, *_, angle in JOINTS}
MJCF = f"""<mujoco>
<option gravity="0 0 0"/>
<worldbody><site name="anchor" pos="0.014 0.072 0"/>{"".join(map(mjcf_body, CHILDREN["ground"]))}</worldbody>
<equality>{"".join(f'<connect site1="{body}_tip" site2="K2_tip"/>' for body in TIPS)}</equality>
<tendon><spatial stiffness="4530" springlength="0.07785"><site site="K3_end"/><site site="anchor"/></spatial></tendon>
<actuator><motor name="motor" joint="beta"/></actuator>
<keyframe><key name="start" ctrl="0.033" qpos="{" ".join(str(ANGLES[name]) for name in ORDER)}"/></keyframe>
</mujoco>
"""

ROW = Row(
    system="Andrews' squeezing mechanism",
    source=SOURCE,
    page=PAGE,
    quantity="acceleration of beta at the start [rad/s2]",
    published="14222.4439199541138705911625887",
    answer=derivative("beta.v"),
    doors={"TOML": toml(TOML), "FMU": fmu_of_toml(TOML), "MJCF": mjcf(MJCF)},
    peers={"Pinocchio": "pinocchio_squeezer", "MuJoCo": "mujoco_acceleration squeezer beta"},
    remark="MuJoCo's equality constraints are springs and dampers by design, here with their default stiffness.",
)
