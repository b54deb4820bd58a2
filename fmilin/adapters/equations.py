"""Names for authors of adapters: models with equations as a graph of CasADi, and a cache of results."""

from fmilin.codegen.compiler import cache_folder, cache_library, read_cached_library
from fmilin.codegen.implicit import ImplicitSystem
from fmilin.model.ranges import TableRange
from fmilin.models.dae.dae_engine import DaeEngine

__all__ = ["DaeEngine", "ImplicitSystem", "TableRange", "cache_folder", "cache_library", "read_cached_library"]
