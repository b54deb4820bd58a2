"""Steady turns of the leaning disk in closed form."""

from __future__ import annotations

import numpy as np


def steady_yaw_rates(speed: float, lean: float, *, radius: float = 1.0, gravity: float = 1.0) -> tuple[float, float]:
    """Return both yaw rates, the slower first: the roots of the balance of moments in a steady turn."""
    squared = 5 / 4 * np.cos(lean) * np.sin(lean)
    linear = -3 / 2 * np.cos(lean) * speed / radius
    constant = gravity / radius * np.sin(lean)
    slow, fast = sorted(np.roots([squared, linear, constant]), key=abs)
    return float(slow), float(fast)
