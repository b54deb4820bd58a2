"""The textbook's mechanisms in MJCF. A body needs some inertia there: 1e-14 kg m2 is that of a point mass."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["MJCF_FILES", "MJCF_OUTPUTS", "mjcf_states"]

MJCF_FILES: Mapping[str, str] = {
    "mass_spring_damper": """<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="cart">
      <inertial mass="2" pos="0 0 0" diaginertia="1e-14 1e-14 1e-14"/>
      <joint name="x" type="slide" axis="1 0 0" stiffness="8" damping="0.4"/>
    </body>
  </worldbody>
  <actuator><motor name="F" joint="x"/></actuator>
  <sensor>
    <jointpos name="position" joint="x"/>
    <framelinacc name="acceleration" objtype="body" objname="cart"/>
  </sensor>
  <keyframe><key qpos="0.2" ctrl="1.6"/></keyframe>
</mujoco>""",
    "pendulum": """<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <body name="bob">
      <inertial mass="1.5" pos="0 0 -0.8" diaginertia="1e-14 1e-14 1e-14"/>
      <joint name="q" type="hinge" axis="0 -1 0" damping="0.3"/>
      <site name="end" pos="0 0 -0.8"/>
    </body>
  </worldbody>
  <actuator><motor name="torque" joint="q"/></actuator>
  <sensor>
    <jointpos name="angle" joint="q"/>
    <framepos name="place" objtype="site" objname="end"/>
  </sensor>
  <keyframe><key qpos="ANGLE"/></keyframe>
</mujoco>""",
    "cart_pole": """<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <body name="cart">
      <inertial mass="1.2" pos="0 0 0" diaginertia="1e-14 1e-14 1e-14"/>
      <joint name="x" type="slide" axis="1 0 0"/>
      <body name="pole">
        <inertial mass="0.3" pos="0 0 0.5" diaginertia="1e-14 1e-14 1e-14"/>
        <joint name="th" type="hinge" axis="0 1 0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="F" joint="x"/></actuator>
  <sensor><jointpos name="x" joint="x"/><jointpos name="angle" joint="th"/></sensor>
</mujoco>""",
    "ball_and_beam": """<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <body name="beam">
      <inertial mass="1" pos="0 0 0" diaginertia="1e-14 0.2 0.2"/>
      <joint name="a" type="hinge" axis="0 -1 0"/>
      <body name="ball">
        <inertial mass="0.5" pos="0 0 0" diaginertia="1e-14 1e-14 1e-14"/>
        <joint name="r" type="slide" axis="1 0 0" armature="0.2"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="torque" joint="a"/></actuator>
  <sensor><jointpos name="r" joint="r"/><jointpos name="a" joint="a"/></sensor>
  <keyframe><key qpos="0 0.1" ctrl="0.4905"/></keyframe>
</mujoco>""",
    "ball": """<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <body name="ball">
      <inertial mass="0.5" pos="0 0 0" diaginertia="1e-14 1e-14 1e-14"/>
      <joint name="h" type="slide" axis="0 0 1"/>
    </body>
  </worldbody>
  <tendon><fixed name="ground" stiffness="200" springlength="0 1000"><joint joint="h" coef="1"/></fixed></tendon>
  <actuator><motor name="F" joint="h"/></actuator>
  <sensor><jointpos name="height" joint="h"/></sensor>
  <keyframe><key qpos="HEIGHT" qvel="RATE"/></keyframe>
</mujoco>""",
    "quaternion_body": """<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="body">
      <inertial mass="1" pos="0 0 0" diaginertia="0.2 0.3 0.4"/>
      <joint name="b" type="ball"/>
      <site name="center"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="Mx" joint="b" gear="1 0 0"/>
    <motor name="My" joint="b" gear="0 1 0"/>
    <motor name="Mz" joint="b" gear="0 0 1"/>
  </actuator>
  <sensor><gyro name="rate" site="center"/></sensor>
  <keyframe><key qvel="0 0 5"/></keyframe>
</mujoco>""",
}

MJCF_OUTPUTS: Mapping[str, Mapping[str, str]] = {
    "mass_spring_damper": {"acceleration": "acceleration[1]"},
    "pendulum": {"height": "place[3]"},
    "quaternion_body": {"rate_x": "rate[1]", "rate_z": "rate[3]"},
}
"""Outputs of the textbook that are components of vectors here."""

JOINTS: Mapping[str, Mapping[str, str]] = {
    "mass_spring_damper": {"x": "v"},
    "pendulum": {"q": "w"},
    "cart_pole": {"x": "v", "th": "w"},
    "ball_and_beam": {"r": "rv", "a": "av"},
    "ball": {"h": "v"},
}
"""The textbook's coordinates, which give the joints their names, and their rates."""


def mjcf_states(mechanism: str) -> dict[str, str]:
    """Return the names in fmilin of the textbook's states: ``JOINT.q`` and ``JOINT.v``."""
    if mechanism == "quaternion_body":
        parts = {"e1": "qx", "e2": "qy", "e3": "qz", "wx": "wx", "wy": "wy", "wz": "wz"}
        return {state: f"b.{part}" for state, part in parts.items()}
    joints = JOINTS[mechanism]
    positions = {joint: f"{joint}.q" for joint in joints}
    return positions | {rate: f"{joint}.v" for joint, rate in joints.items()}
