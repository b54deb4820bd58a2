"""Reads SDFormat files (1.4 to 1.12) and the models that they include; sdformat.org/spec defines the elements."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from fmilin.errors import nearest_names
from fmilin.models.mechanism.sdf_drake import POINT_PAIRS, read_drake_mimic, read_planar_joint, read_point_pair
from fmilin.models.mechanism.sdf_elements import (
    SdfAxis,
    SdfFile,
    SdfFrame,
    SdfJoint,
    SdfLink,
    SdfModel,
    SdfNotes,
    SdfPointPair,
)
from fmilin.models.mechanism.sdf_include import find_included_file
from fmilin.models.mechanism.sdf_inertia import read_automatic_inertial
from fmilin.models.mechanism.sdf_merge import list_merged_parts
from fmilin.models.mechanism.sdf_values import (
    ORIGIN_POSE,
    find_line,
    find_only,
    get_tag,
    read_child_number,
    read_mimic,
    read_name,
    read_number,
    read_pitch,
    read_pose,
    read_truth,
    read_vector,
)
from fmilin.models.mechanism.source_lines import read_xml_root
from fmilin.models.mechanism.urdf_elements import Inertial

JOINT_TYPES = (
    "fixed", "revolute", "continuous", "prismatic", "screw", "universal", "revolute2", "ball", "gearbox"
)  # fmt: skip
VERSIONS = (4, 12)  # the first and the last minor version that is read
WORLD_GRAVITY = (0.0, 0.0, -9.8)  # the default of <world><gravity>
MAX_INCLUDE_DEPTH = 30

# Elements with a part in the dynamics are read, others of the format are skipped; the rest is a note.
_READ = {
    "world": {"gravity", "include", "frame", "joint", "model", "plugin"},
    "model": {
        "pose", "static", "link", "frame", "joint", "model", "include", "plugin", "drake:joint",
        "drake:ball_constraint", "drake:linear_spring_damper",
    },
    "link": {"pose", "inertial", "gravity", "kinematic", "enable_wind", "velocity_decay"},
    "inertial": {"pose", "mass", "inertia", "fluid_added_mass"},
    "frame": {"pose"},
    "joint": {
        "parent", "child", "pose", "axis", "axis2", "gearbox_ratio", "gearbox_reference_body", "thread_pitch",
        "screw_thread_pitch", "drake:rotor_inertia", "drake:gear_ratio", "drake:mimic",
    },
    "axis": {"xyz", "use_parent_model_frame", "dynamics", "limit", "mimic", "initial_position"},
}  # fmt: skip
_SKIPPED = {
    "world": {
        "audio", "wind", "magnetic_field", "atmosphere", "gui", "physics", "scene", "light", "road",
        "spherical_coordinates",
    },
    "model": {"self_collide", "allow_auto_disable", "enable_wind", "drake:collision_filter_group"},
    "link": {
        "collision", "visual", "sensor", "projector", "audio_sink", "audio_source", "battery", "light",
        "particle_emitter", "self_collide", "must_be_base_link", "drake:visual",
    },
    "inertial": {"density", "auto_inertia_params"},
    "frame": set[str](),
    "joint": {"physics", "sensor"},
    "axis": set[str](),
}  # fmt: skip
_LEFT_OUT = {"state", "actor", "model_state", "joint_state", "gripper", "drake:controller_gains"}
_REJECTED = {
    "population": "a <population> is not read: write out its models",
    "drake:linear_bushing_rpy": "this bushing of Drake is not read: write a [[bushing]] or a [[loop]] into a TOML "
    "file beside",
    "drake:distance_constraint": "this constraint of Drake is not read: write a [[loop]] of the type 'rod' into a "
    "TOML file beside",
    "drake:tendon_constraint": "this constraint of Drake is not read: write a [[coupling]] into a TOML file beside",
    "drake:deformable_properties": "deformable bodies are not read",
}


class SdfReader:
    """Reads a file and what it includes, and notes what it leaves out."""

    def __init__(self) -> None:
        self.notes = SdfNotes()
        self._open: list[Path] = []  # the files that are being read, each included by the one before

    def read(self, path: Path) -> SdfFile:
        """Return the world or the model in a file."""
        root = self._root(path)
        worlds, models = root.findall("world"), root.findall("model")
        if len(worlds) + len(models) != 1:
            what = "there is no <model> or <world> in it" if not worlds + models else (
                f"it has {len(worlds)} worlds and {len(models)} models, and one is read: put several models into one "
                "world"
            )  # fmt: skip
            raise find_line(root, path).wrong(what)
        self._open.append(path)
        if models:
            return SdfFile(self._model(models[0], path), is_world=False, gravity=None)
        (world,) = worlds
        gravity = find_only(world, "gravity", path)
        vector = WORLD_GRAVITY if gravity is None else read_vector(gravity, path)
        return SdfFile(self._model(world, path), is_world=True, gravity=vector)

    def _root(self, path: Path) -> Any:
        root = read_xml_root(path, "SDFormat", [], is_lenient=True)
        line = find_line(root, path)
        if root.tag != "sdf":
            raise line.wrong(f"the root element of an SDFormat file is <sdf>, not <{root.tag}>")
        version = root.get("version", "")
        major, _, minor = version.partition(".")
        if major != "1" or not minor.isdigit() or not VERSIONS[0] <= int(minor) <= VERSIONS[1]:
            raise line.wrong(
                f"its version '{version}' of SDFormat is not read, but 1.{VERSIONS[0]} to 1.{VERSIONS[1]} are; "
                "'gz sdf -p FILE' converts older ones"
            )
        if int(minor) == 4:  # in which axes are those of the model
            for axis in root.iter("axis", "axis2"):
                for xyz in axis.findall("xyz"):
                    xyz.set("expressed_in", "__model__")
        return root

    def _model(self, element: Any, path: Path, **changes: Any) -> SdfModel:
        """Return a model or a world; ``changes`` are those of an <include>."""
        kind = element.tag
        self._check(element, path)
        parts: dict[str, list[Any]] = {"link": [], "frame": [], "joint": [], "model": []}
        pairs: list[SdfPointPair] = []
        readers = {"link": self._link, "frame": self._frame, "joint": self._joint, "model": self._model}
        for child in element:
            if child.tag in readers and not (kind == "world" and child.tag == "link"):
                parts[child.tag].append(readers[child.tag](child, path))
            elif child.tag == "include" and (included := self._include(child, path)) is not None:
                if child.get("merge", "false").strip().lower() in ("true", "1"):
                    for part, elements in list_merged_parts(included, in_world=kind == "world").items():
                        parts[part] += elements
                else:
                    parts["model"].append(included)
            elif child.tag == "plugin":
                self._plugin(child, path)
            elif kind == "model" and get_tag(child) == "drake:joint":
                parts["joint"].append(read_planar_joint(child, path))
            elif kind == "model" and get_tag(child) in POINT_PAIRS:
                pairs.append(read_point_pair(child, path, len(pairs)))
        static = find_only(element, "static", path)
        model = SdfModel(
            name=read_name(element, path),
            line=find_line(element, path),
            pose=ORIGIN_POSE if kind == "world" else read_pose(element, path),
            placement_frame=element.get("placement_frame", ""),
            canonical_link=element.get("canonical_link", ""),
            static=static is not None and read_truth(static, path),
            links=tuple(parts["link"]),
            frames=tuple(parts["frame"]),
            joints=tuple(parts["joint"]),
            models=tuple(parts["model"]),
            pairs=tuple(pairs),
        )
        return replace(model, **changes)

    def _include(self, element: Any, path: Path) -> SdfModel | None:
        """Return the model of another file with the name and the pose that are asked for."""
        line = find_line(element, path)
        self._check(element, path)
        uri = find_only(element, "uri", path)
        if uri is None:
            raise line.wrong("<include> needs a <uri>")
        file = find_included_file((uri.text or "").strip(), line)
        if len(self._open) > MAX_INCLUDE_DEPTH or file.resolve() in (other.resolve() for other in self._open):
            raise line.wrong(f"'{file}' includes itself")
        root = self._root(file)
        models = root.findall("model")
        if len(models) != 1:
            if not models and (root.find("light") is not None or root.find("actor") is not None):
                return None
            raise line.wrong(f"'{file}' has {len(models)} models, and an included file has one")
        changes: dict[str, Any] = {}
        for tag in ("name", "placement_frame"):
            child = find_only(element, tag, path)
            if child is not None and (child.text or "").strip():
                changes[tag] = child.text.strip()
        if find_only(element, "pose", path) is not None:
            changes["pose"] = read_pose(element, path)
        elif "placement_frame" in changes:
            raise line.wrong("<placement_frame> of an <include> needs a <pose>, too")
        static = find_only(element, "static", path)
        if static is not None:
            changes["static"] = read_truth(static, path)
        for plugin in element.findall("plugin"):
            self._plugin(plugin, path)
        self._open.append(file)
        model = self._model(models[0], file, **changes)
        self._open.pop()
        return model

    def _plugin(self, element: Any, path: Path) -> None:
        name = element.get("filename") or element.get("name") or "without a name"
        self.notes.plugins.append(f"{name} (line {element.sourceline} of '{path.name}')")

    def _check(self, element: Any, path: Path) -> None:
        """Note the elements that are not read, and reject those that would change the motion."""
        kind = "axis" if element.tag == "axis2" else element.tag
        if kind == "include":
            read, skipped = {"uri", "name", "pose", "static", "placement_frame", "plugin"}, {"namespace"}
        else:
            read, skipped = _READ[kind], _SKIPPED[kind]
        for child in element:
            if not isinstance(child.tag, str):
                raise find_line(child, path).wrong("entity references are not supported: write their text instead")
            tag = get_tag(child)
            if tag in read or tag in skipped:
                continue
            where = f"<{tag}> of <{element.tag}>"
            if tag in _REJECTED:
                raise find_line(child, path).wrong(_REJECTED[tag])
            notes = self.notes.left_out if tag in _LEFT_OUT else self.notes.unknown
            near = () if tag in _LEFT_OUT or ":" in tag else nearest_names(tag, read, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            notes.setdefault(where, f"{where} (line {child.sourceline} of '{path.name}'{hint})")

    def _frame(self, element: Any, path: Path) -> SdfFrame:
        self._check(element, path)
        return SdfFrame(
            read_name(element, path), find_line(element, path), read_pose(element, path), element.get("attached_to", "")
        )

    def _link(self, element: Any, path: Path) -> SdfLink:
        self._check(element, path)
        line, name = find_line(element, path), read_name(element, path)
        kinematic, wind = find_only(element, "kinematic", path), find_only(element, "enable_wind", path)
        if kinematic is not None and read_truth(kinematic, path):
            raise line.wrong(f"the link '{name}' is kinematic, so that it moves without forces: this is not read")
        if wind is not None and read_truth(wind, path):
            self.notes.left_out.setdefault(f"wind {name}", f"the wind on '{name}' (line {line.number})")
        decay = find_only(element, "velocity_decay", path)
        if decay is not None and any(read_number(part, path) for part in decay):
            self.notes.left_out.setdefault(f"decay {name}", f"<velocity_decay> of '{name}' (line {line.number})")
        gravity = find_only(element, "gravity", path)
        inertial = find_only(element, "inertial", path)
        return SdfLink(
            name,
            line,
            read_pose(element, path),
            None if inertial is None else self._inertial(element, inertial, path),
            gravity is None or read_truth(gravity, path),
        )

    def _inertial(self, link: Any, element: Any, path: Path) -> Inertial:
        self._check(element, path)
        line = find_line(element, path)
        if element.get("auto", "false").strip().lower() in ("true", "1"):
            return read_automatic_inertial(link, element, path)
        added = find_only(element, "fluid_added_mass", path)
        if added is not None and any(read_number(part, path) for part in added):
            raise line.wrong("<fluid_added_mass> is not read: leave it out, or add it to the mass and the inertia")
        pose = read_pose(element, path)
        if pose.relative_to:
            raise line.wrong("the <pose> of <inertial> is in the frame of its link and has no 'relative_to'")
        mass, inertia = find_only(element, "mass", path), find_only(element, "inertia", path)
        moments = [read_child_number(inertia, key, path, 1.0) for key in ("ixx", "iyy", "izz")]
        products = [read_child_number(inertia, key, path, 0.0) for key in ("ixy", "ixz", "iyz")]
        entries: Any = (*moments, *products)
        return Inertial(1.0 if mass is None else read_number(mass, path), pose.placement, entries)

    def _joint(self, element: Any, path: Path) -> SdfJoint:
        self._check(element, path)
        line, name, kind = find_line(element, path), read_name(element, path), element.get("type", "").strip().lower()
        if kind not in JOINT_TYPES:
            raise line.wrong(f"the joint '{name}' is of the unknown type '{kind}'; known are {', '.join(JOINT_TYPES)}")
        ends = []
        for tag in ("parent", "child"):
            end = find_only(element, tag, path)
            text = "" if end is None else (end.text or "").strip()
            if not text:
                raise line.wrong(f"the joint '{name}' has no <{tag}>")
            ends.append(text)
        reference = find_only(element, "gearbox_reference_body", path)
        axes = [find_only(element, tag, path) for tag in ("axis", "axis2")]
        if axes[0] is None and axes[1] is not None:
            raise line.wrong(f"the joint '{name}' has an <axis2> but no <axis>")
        read = [self._axis(axis, path) for axis in axes if axis is not None]
        mimic = find_only(element, "drake:mimic", path)
        if mimic is not None and read:
            read[0] = replace(read[0], mimic=read_drake_mimic(mimic, path))
        gear = read_child_number(element, "drake:gear_ratio", path, 1.0)
        return SdfJoint(
            name=name,
            type=kind,
            line=line,
            parent=ends[0],
            child=ends[1],
            pose=read_pose(element, path),
            axes=tuple(read),
            pitch=read_pitch(element, path),
            gear_ratio=read_child_number(element, "gearbox_ratio", path, 1.0),
            gear_reference="" if reference is None else (reference.text or "").strip(),
            # as Drake has it: a joint without effort has no motor, and so no rotor
            armature=read_child_number(element, "drake:rotor_inertia", path, 0.0) * gear**2 if any(
                axis.effort for axis in read[:1]) else 0.0,
        )  # fmt: skip

    def _axis(self, element: Any, path: Path) -> SdfAxis:
        self._check(element, path)
        xyz = find_only(element, "xyz", path)
        in_model = find_only(element, "use_parent_model_frame", path)
        dynamics, limit = find_only(element, "dynamics", path), find_only(element, "limit", path)
        expressed_in = "" if xyz is None else xyz.get("expressed_in", "")
        if in_model is not None and read_truth(in_model, path):
            expressed_in = "__model__"
        if read_child_number(element, "initial_position", path, 0.0):
            where = "<initial_position> of <axis>"
            self.notes.left_out.setdefault(where, f"{where} (line {element.sourceline} of '{path.name}')")
        vector = (0.0, 0.0, 1.0) if xyz is None else read_vector(xyz, path)
        if not any(vector):
            raise find_line(xyz, path).wrong("the axis is zero")
        mimic = find_only(element, "mimic", path)
        return SdfAxis(
            vector,
            expressed_in,
            damping=read_child_number(dynamics, "damping", path, 0.0),
            friction=read_child_number(dynamics, "friction", path, 0.0),
            stiffness=read_child_number(dynamics, "spring_stiffness", path, 0.0),
            rest=read_child_number(dynamics, "spring_reference", path, 0.0),
            lower=read_child_number(limit, "lower", path, -inf, finite=False),
            upper=read_child_number(limit, "upper", path, inf, finite=False),
            effort=read_child_number(limit, "effort", path, inf, finite=False),
            mimic=None if mimic is None else read_mimic(mimic, path),
        )
