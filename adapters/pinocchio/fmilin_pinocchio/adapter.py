"""URDF files by Pinocchio's own reader, with the loops that ``ROBOT.fmilin.toml`` next to them closes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmilin.adapters import Adapter
from fmilin.errors import ModelError, UnknownNameError

if TYPE_CHECKING:
    from fmilin.adapters import EngineModel
    from fmilin_pinocchio.closing import Weld

__all__ = ["PinocchioAdapter"]


class PinocchioAdapter(Adapter):
    """Reads URDF. fmilin reads it itself, too: write ``pinocchio:robot.urdf``."""

    suffixes = (".urdf",)
    description = "URDF models with loops, by Pinocchio's analytic derivatives"
    package = "pin"
    oldest = (3, 0)

    def load(self, path: Path) -> EngineModel:
        """Return the model in a URDF file, its loops closed from the first guess.

        Raises
        ------
        ModelError
            When Pinocchio rejects the file, with its words; when the table of loops is wrong, or a loop does not close.
        """
        self.engine()
        import pinocchio as pin

        from fmilin.adapters import EngineModel, find_additions
        from fmilin_pinocchio.engine import PinocchioEngine
        from fmilin_pinocchio.mimicking import mimics_in

        try:
            robot = pin.buildModelFromUrdf(str(path))
        except Exception as error:
            words = " ".join(str(error).split())
            raise ModelError(
                f"Pinocchio cannot read '{path}': {words}. 'fmilin info {path}' reads it without Pinocchio and may say "
                "more; correct it, and try again."
            ) from error
        mimics, remarks = mimics_in(path, robot)
        rubbing = [robot.names[j] for j in range(1, robot.njoints) if robot.nvs[j] and _friction(robot, j)]
        table = find_additions(path)
        guess = pin.neutral(robot)
        welds: tuple[Weld, ...] = ()
        independent: tuple[str, ...] = ()
        if table is not None:
            robot, guess, welds, independent = _closed(robot, table)
        engine = PinocchioEngine(
            robot, welds, guess, name=robot.name or path.stem, independent=independent, mimics=mimics
        )
        friction = (f"Dry friction is left out: {', '.join(rubbing)}.",) if rubbing else ()
        engine.notes = (*remarks, *friction)
        return EngineModel(engine)


def _closed(robot: Any, table: Path) -> tuple[Any, Any, tuple[Weld, ...], tuple[str, ...]]:
    """Return the robot with its loops, the guess, the welds that close them, and the states to keep."""
    import pinocchio as pin

    from fmilin.adapters import read_parts
    from fmilin_pinocchio.closing import with_loops

    parts = read_parts(table)
    unused = [
        kind for kind in ("body", "joint", "spring", "wheel", "skate", "input", "sensor") if kind in parts.content
    ]
    if unused:
        listed = ", ".join(f"[[{kind}]]" for kind in unused)
        raise ModelError(f"In '{table}' Pinocchio can take [[loop]] and [[joint_setting]] tables only, not {listed}.")
    robot, welds = with_loops(robot, parts.fields["loops"])
    robot.gravity.linear[:] = parts.content.get("gravity", (0.0, 0.0, -9.81))
    guess = pin.neutral(robot)
    for setting in parts.content.get("joint_setting", ()):
        name, position = setting["joint"], setting.get("position")
        if not robot.existJointName(name):
            raise UnknownNameError.among(name, [str(n) for n in robot.names], f"a joint of '{robot.name}'")
        j = robot.getJointId(name)
        if position is not None:
            guess[robot.idx_qs[j] : robot.idx_qs[j] + robot.nqs[j]] = position
        if setting.get("stiffness"):
            raise ModelError(f"In '{table}' the joint '{name}' has a spring, which Pinocchio does not support.")
        if setting.get("damping"):
            robot.damping[robot.idx_vs[j] : robot.idx_vs[j] + robot.nvs[j]] = setting["damping"]
    return robot, guess, welds, tuple(parts.content.get("independent", ()))


def _friction(robot: Any, j: int) -> bool:
    friction = robot.friction[robot.idx_vs[j] : robot.idx_vs[j] + robot.nvs[j]]
    return bool(friction.any())
