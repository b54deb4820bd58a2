"""Reference mechanisms of the literature, each at a consistent point when it starts."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fmilin.native.systems.bicycle_model import bicycle
    from fmilin.native.systems.disk import rolling_disk
    from fmilin.native.systems.five_bar_bodies import five_bar_mechanism
    from fmilin.native.systems.five_bar_linkage import five_bar
    from fmilin.native.systems.flexible_pendulum import flexible_double_pendulum
    from fmilin.native.systems.four_bar_bodies import four_bar_mechanism
    from fmilin.native.systems.four_bar_linkage import four_bar
    from fmilin.native.systems.four_bar_matrices import four_bar_form
    from fmilin.native.systems.furuta import furuta_pendulum
    from fmilin.native.systems.loader_linkage import loader
    from fmilin.native.systems.parallel_four_bar import parallel_robot
    from fmilin.native.systems.pendulum import cartesian_pendulum
    from fmilin.native.systems.slider import slider_crank
    from fmilin.native.systems.stewart import stewart_platform
    from fmilin.native.systems.suspension import double_wishbone

# No module has the name of its function: importing it would put the module in the function's place.
_HOMES = {
    "bicycle": "bicycle_model",
    "cartesian_pendulum": "pendulum",
    "double_wishbone": "suspension",
    "five_bar": "five_bar_linkage",
    "five_bar_mechanism": "five_bar_bodies",
    "flexible_double_pendulum": "flexible_pendulum",
    "four_bar": "four_bar_linkage",
    "four_bar_form": "four_bar_matrices",
    "four_bar_mechanism": "four_bar_bodies",
    "furuta_pendulum": "furuta",
    "loader": "loader_linkage",
    "parallel_robot": "parallel_four_bar",
    "rolling_disk": "disk",
    "slider_crank": "slider",
    "stewart_platform": "stewart",
}

__all__ = [
    "bicycle",
    "cartesian_pendulum",
    "double_wishbone",
    "five_bar",
    "five_bar_mechanism",
    "flexible_double_pendulum",
    "four_bar",
    "four_bar_form",
    "four_bar_mechanism",
    "furuta_pendulum",
    "loader",
    "parallel_robot",
    "rolling_disk",
    "slider_crank",
    "stewart_platform",
]


def __getattr__(name: str) -> Any:
    """Import a system when it is first used: sympy takes a while."""
    if name not in _HOMES:
        raise AttributeError(f"module 'fmilin.native.systems' has no attribute '{name}'")
    return getattr(import_module(f"fmilin.native.systems.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
