"""Which joints of a graph of links form the tree of a mechanism, and which close loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """A joint between two links; those of a lower ``weight`` are preferred as joints of the tree."""

    parent: str
    child: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class SpanningTree:
    """Edges by their number in the graph."""

    roots: tuple[str, ...]  # links that no chain of joints connects with the ground, one of each component
    forward: frozenset[int]  # edges of the tree
    reversed: frozenset[int]  # edges of the tree that lead from the child to the parent
    loops: tuple[int, ...]  # the rest


def find_spanning_tree(ground: str, links: Sequence[str], edges: Sequence[GraphEdge]) -> SpanningTree:
    """Return the tree of the least weights (Prim), from the ground and then from the first link that is not a child.

    Of equal weights an edge from the parent to the child precedes one that is reversed, and the first the later ones.
    """
    placed = {ground}
    children = {edge.child for edge in edges}
    waiting = [*(link for link in links if link not in children), *(link for link in links if link in children)]
    roots: list[str] = []
    forward, backward = set[int](), set[int]()
    while True:
        ready = [
            (edge.weight, edge.child in placed, i)
            for i, edge in enumerate(edges)
            if (edge.parent in placed) != (edge.child in placed)
        ]
        if ready:
            _, is_reversed, i = min(ready)
            (backward if is_reversed else forward).add(i)
            placed |= {edges[i].parent, edges[i].child}
            continue
        root = next((link for link in waiting if link not in placed), None)
        if root is None:
            break
        roots.append(root)
        placed.add(root)
    loops = tuple(i for i in range(len(edges)) if i not in forward and i not in backward)
    return SpanningTree(tuple(roots), frozenset(forward), frozenset(backward), loops)
