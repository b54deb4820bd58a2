"""Reference mechanisms of the literature, each at a consistent point when it starts."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fmilin.native.systems.bicycle_model import bicycle
    from fmilin.native.systems.disk import rolling_disk
    from fmilin.native.systems.flexible_pendulum import flexible_double_pendulum
    from fmilin.native.systems.four_bar_linkage import four_bar, four_bar_form
    from fmilin.native.systems.lagrangian import cartesian_pendulum, five_bar
    from fmilin.native.systems.mechanisms import (
        double_wishbone,
        furuta_pendulum,
        loader,
        slider_crank,
        stewart_platform,
    )

# No module has the name of its function: importing it would put the module in the function's place.
_MODULES = {
    name: module
    for module, names in {
        "bicycle_model": ("bicycle",),
        "disk": ("rolling_disk",),
        "flexible_pendulum": ("flexible_double_pendulum",),
        "four_bar_linkage": ("four_bar", "four_bar_form"),
        "lagrangian": ("cartesian_pendulum", "five_bar"),
        "mechanisms": ("double_wishbone", "furuta_pendulum", "loader", "slider_crank", "stewart_platform"),
    }.items()
    for name in names
}

__all__ = [
    "bicycle",
    "cartesian_pendulum",
    "double_wishbone",
    "five_bar",
    "flexible_double_pendulum",
    "four_bar",
    "four_bar_form",
    "furuta_pendulum",
    "loader",
    "rolling_disk",
    "slider_crank",
    "stewart_platform",
]


def __getattr__(name: str) -> Any:
    """Import a system when it is first used: sympy takes a while."""
    if name not in _MODULES:
        raise AttributeError(f"module 'fmilin.native.systems' has no attribute '{name}'")
    return getattr(import_module(f"fmilin.native.systems.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
