"""The table of limits: complete, in order, used, and the only place for each name."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from fmilin import tolerances

PACKAGE = Path(tolerances.__file__).parent


@cache
def package_trees() -> dict[str, ast.Module]:
    """Return the syntax tree of each module by its path: not at the import, which every worker of pytest does."""
    paths = PACKAGE.rglob("*.py")
    return {str(path.relative_to(PACKAGE)): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def assigned(tree: ast.Module) -> list[tuple[str, ast.expr]]:
    """Return what a module assigns at its top level."""
    actual: list[tuple[str, ast.expr]] = []
    for node in tree.body:
        if isinstance(node, ast.Assign):
            actual += [(target.id, node.value) for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            actual.append((node.target.id, node.value))
    return actual


def is_text(value: ast.expr) -> bool:
    """Return whether it is a text, a colour say."""
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


LIMITS = {name for name, _ in assigned(ast.parse((PACKAGE / "tolerances.py").read_text(encoding="utf-8")))}


def test_every_limit_is_positive_and_explained() -> None:
    body = package_trees()["tolerances.py"].body
    assert all(getattr(tolerances, name) > 0 for name in LIMITS)
    for node, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.AnnAssign):
            assert isinstance(after, ast.Expr), f"{ast.unparse(node)} says not what it decides"


def test_the_orders_that_must_hold() -> None:
    assert tolerances.PROJECTION_TOLERANCE < tolerances.MANIFOLD_DISTANCE_TOLERANCE < tolerances.START_GAP_TOLERANCE
    assert tolerances.EXACT_BALANCE_TOLERANCE < tolerances.EQUILIBRIUM_RATE_TOLERANCE
    assert tolerances.RANK < tolerances.RANK_MEASURED < tolerances.RANK_UNKNOWN
    assert tolerances.INVARIANT_TOLERANCE < tolerances.MEASURED_INVARIANT_TOLERANCE
    assert tolerances.DOUBTFUL_CONDITION_NUMBER < tolerances.MAX_COORDINATE_CONDITION_NUMBER


def test_every_limit_decides_somewhere() -> None:
    used = {
        alias.name
        for tree in package_trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "fmilin.tolerances"
        for alias in node.names
    }
    assert used == LIMITS


def test_no_other_file_gives_a_limit_of_this_name_another_value() -> None:
    twice = [
        f"{path}: {name} = {ast.unparse(value)}"
        for path, tree in package_trees().items()
        if path != "tolerances.py"
        for name, value in assigned(tree)
        if name.strip("_") in LIMITS and not is_text(value)
    ]
    assert not twice, twice
