"""Names for authors of adapters: models whose equations are a graph of CasADi, and a cache for what is slow to make."""

from fmilin.codegen.compiler import cache_folder, cache_library, read_cached_library
from fmilin.codegen.implicit import ImplicitSystem
from fmilin.model.ranges import TableRange
from fmilin.models.dae.dae_engine import DaeEngine

__all__ = ["DaeEngine", "ImplicitSystem", "TableRange", "cache_folder", "cache_library", "read_cached_library"]
