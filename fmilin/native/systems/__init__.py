"""Reference mechanisms of the literature, each at a consistent point when it starts."""

from typing import TYPE_CHECKING

from fmilin.ground.import_paths import lazily

if TYPE_CHECKING:
    from fmilin.native.systems.bicycle_model import bicycle as bicycle
    from fmilin.native.systems.disk import rolling_disk as rolling_disk
    from fmilin.native.systems.flexible_pendulum import flexible_double_pendulum as flexible_double_pendulum
    from fmilin.native.systems.four_bar_linkage import four_bar as four_bar
    from fmilin.native.systems.four_bar_linkage import four_bar_form as four_bar_form
    from fmilin.native.systems.lagrangian import cartesian_pendulum as cartesian_pendulum
    from fmilin.native.systems.lagrangian import five_bar as five_bar
    from fmilin.native.systems.mechanisms import double_wishbone as double_wishbone
    from fmilin.native.systems.mechanisms import furuta_pendulum as furuta_pendulum
    from fmilin.native.systems.mechanisms import loader as loader
    from fmilin.native.systems.mechanisms import slider_crank as slider_crank
    from fmilin.native.systems.mechanisms import stewart_platform as stewart_platform

# No module has the name of its function: importing it would put the module in the function's place.
__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "bicycle_model": ("bicycle",),
        "disk": ("rolling_disk",),
        "flexible_pendulum": ("flexible_double_pendulum",),
        "four_bar_linkage": ("four_bar", "four_bar_form"),
        "lagrangian": ("cartesian_pendulum", "five_bar"),
        "mechanisms": ("double_wishbone", "furuta_pendulum", "loader", "slider_crank", "stewart_platform"),
    },
)
