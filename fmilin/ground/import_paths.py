"""Import paths that the documentation shows, for folders that stand elsewhere: one table, no second set of files."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

DOCUMENTED: Mapping[str, str] = {
    "fmilin.adapters": "fmilin.loading.adapters",
    "fmilin.constraints": "fmilin.model.constraints",
    "fmilin.errors": "fmilin.ground.errors",
    "fmilin.export": "fmilin.output.export",
    "fmilin.formulations": "fmilin.native.formulations",
    "fmilin.lyapunov": "fmilin.motion.lyapunov",
    "fmilin.models": "fmilin.native",
    "fmilin.reduction": "fmilin.linear_model.reduction",
    "fmilin.report": "fmilin.output.report",
    "fmilin.signals": "fmilin.ground.signals",
    "fmilin.simulation": "fmilin.motion.simulation",
    "fmilin.systems": "fmilin.native.systems",
    "fmilin.testing": "fmilin.loading.testing",
    "fmilin.wrapping": "fmilin.loading.wrapping",
}
"""The documented path of a package or module, and where it stands. What lies deeper follows it."""


def resolve(name: str) -> str | None:
    """Return where a documented path leads, None when it is none: ``fmilin.models.ode`` to ``fmilin.native.ode``."""
    head = ".".join(name.split(".")[:2])
    return DOCUMENTED[head] + name.removeprefix(head) if head in DOCUMENTED else None


def lazily(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package whose names are imported when first used."""
    modules_by_name = {name: module for module, names in modules.items() for name in names}

    def imported(name: str) -> Any:
        if name not in modules_by_name:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(f"{package}.{modules_by_name[name]}"), name)

    return imported, lambda: sorted(modules_by_name), sorted(modules_by_name)


def stay_valid() -> None:
    """Let the import system know the table; called once, when the package is imported."""
    if not any(isinstance(finder, _DocumentedPaths) for finder in sys.meta_path):
        sys.meta_path.insert(0, _DocumentedPaths())  # before files: what lies in a package would be found there twice


class _DocumentedPaths(MetaPathFinder, Loader):
    """Imports a documented path as the very module that stands elsewhere."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a path of the table that leads to a module, None for every other name."""
        where = resolve(fullname)
        return None if where is None or find_spec(where) is None else ModuleSpec(fullname, self, loader_state=where)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module itself; its own spec is kept for :meth:`exec_module`, since the import overwrites it."""
        module = import_module(spec.loader_state)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own spec back; it has run already."""
        assert module.__spec__ is not None  # noqa: S101 - the import system has just set it
        module.__spec__ = module.__spec__.loader_state
