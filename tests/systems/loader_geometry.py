"""The loader once more, by plane geometry: where its bodies are for given coordinates, in any arithmetic of mpmath."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath

from fmilin.models.mechanism import MechanismDescription
from tests.systems.reduced import Rigid, circles

__all__ = ["LoaderGeometry"]

Point = tuple[Any, Any]

PINS = {
    "A": (0.0, 2.05),
    "B": (2.75, 1.05),
    "C": (0.25, 0.95),
    "D": (1.15, 1.52),
    "E": (1.45, 1.95),
    "F": (0.15, 2.55),
    "G": (1.35, 2.60),
    "H": (1.62, 1.28),
    "I": (2.62, 1.42),
    "T": (3.75, 0.85),
}


class LoaderGeometry:
    """Distances of the pins at the start, and the posture that boom angle and crank angle make of them."""

    def __init__(self, description: MechanismDescription) -> None:
        self.masses = {b.name: (b.mass, b.center, b.J[2, 2]) for b in description.bodies}
        self.pins = {k: (mpmath.mpf(x), mpmath.mpf(y)) for k, (x, y) in PINS.items()}

    def by_angles(self, y: Sequence[Any]) -> list[Rigid]:
        """Bodies for the angle of the boom and that of the bucket on it."""
        boom, bucket = y[0], y[0] + y[1]
        B, E = self._on("AB", boom, "A", "B"), self._on("AB", boom, "A", "E")
        link_end = self._carried("BT", bucket, B, "I")
        H = self._meet(E, "EH", link_end, "HI")
        return self._bodies(boom, _angle(E, H) - self._turn("EG", "EH"), bucket)

    def by_strokes(self, y: Sequence[Any]) -> list[Rigid]:
        """Bodies for the lengths of the lift and tilt cylinders."""
        p = self.pins
        D = circles(p["A"], self._distance("AD"), p["C"], y[0], left=self._left("A", "C", "D"))
        boom = _angle(p["A"], D) - self._turn("AB", "AD")
        E = self._on("AB", boom, "A", "E")
        G = circles(E, self._distance("EG"), p["F"], y[1], left=self._left("E", "F", "G"))
        H = self._carried("EG", _angle(E, G), E, "H")
        B = self._on("AB", boom, "A", "B")
        end = circles(H, self._distance("HI"), B, self._distance("BI"), left=self._left("H", "B", "I"))
        return self._bodies(boom, _angle(E, G), _angle(B, end) - self._turn("BT", "BI"))

    def _bodies(self, boom: Any, crank: Any, bucket: Any) -> list[Rigid]:
        p = self.pins
        B, D, E = (self._on("AB", boom, "A", k) for k in "BDE")
        G, H = self._carried("EG", crank, E, "G"), self._carried("EG", crank, E, "H")
        end = self._carried("BT", bucket, B, "I")
        lift, tilt = _angle(p["C"], D), _angle(p["F"], G)
        frames: dict[str, tuple[Point, Any]] = {
            "boom": (p["A"], boom),
            "bucket": (B, bucket),
            "crank": (E, crank),
            "link": (H, _angle(H, end)),
            "lift_tube": (p["C"], lift),
            "lift_rod": (D, lift),
            "tilt_tube": (p["F"], tilt),
            "tilt_rod": (G, tilt),
        }
        return [self._rigid(name, *frame) for name, frame in frames.items()]

    def _rigid(self, name: str, origin: Point, angle: Any) -> Rigid:
        mass, (cx, cy, _), J = self.masses[name]
        c, s = mpmath.cos(angle), mpmath.sin(angle)
        return Rigid(mass or 0.0, J, origin[0] + c * cx - s * cy, origin[1] + s * cx + c * cy, angle)

    # -- pins: all distances and angles between them are those of the drawing

    def _distance(self, pair: str) -> Any:
        (x, y), (u, v) = self.pins[pair[0]], self.pins[pair[1]]
        return mpmath.sqrt((u - x) ** 2 + (v - y) ** 2)

    def _turn(self, base: str, other: str) -> Any:
        """The angle from one line of a body to another, at the pin that they share."""
        return _angle(self.pins[other[0]], self.pins[other[1]]) - _angle(self.pins[base[0]], self.pins[base[1]])

    def _on(self, base: str, angle: Any, origin: str, pin: str) -> Point:
        return self._carried(base, angle, self.pins[origin], pin)

    def _carried(self, base: str, angle: Any, origin: Point, pin: str) -> Point:
        """A pin of a body whose line ``base`` starts at ``origin`` and has the given angle."""
        way = base[0] + pin
        r, a = self._distance(way), angle + self._turn(base, way)
        return origin[0] + r * mpmath.cos(a), origin[1] + r * mpmath.sin(a)

    def _meet(self, first: Point, r1: str, second: Point, r2: str) -> Point:
        """Where two links meet, on the side on which they do in the drawing: r1 is named from the first pin."""
        return circles(first, self._distance(r1), second, self._distance(r2), left=self._left(r1[0], r2[1], r1[1]))

    def _left(self, first: str, second: str, pin: str) -> bool:
        (x, y), (u, v), (a, b) = (self.pins[k] for k in (first, second, pin))
        return bool((u - x) * (b - y) - (v - y) * (a - x) > 0)


def _angle(first: Point, second: Point) -> Any:
    return mpmath.atan2(second[1] - first[1], second[0] - first[0])
