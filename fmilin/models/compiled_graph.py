"""When the graph of a model's equations is compiled: as soon as that pays, for one point and for many."""

from __future__ import annotations

from collections.abc import Iterator
from threading import RLock

from fmilin.codegen.compiler import CompilationBudget
from fmilin.model.interface import Model
from fmilin.models.batch_graph import BatchGraph, batch_graph

SECONDS_OF_LINEARIZATION = 2e-3
"""The approximate time that compiled code saves per linearized point: in derivatives, and in evaluations near it."""


class GraphCompilation:
    """Counts the points that slower code computes, and compiles the graph of a model when that pays.

    Parameters
    ----------
    model : Model
    seconds : float
        What the slower code takes for a point among many, about.
    """

    def __init__(self, model: Model, seconds: float) -> None:
        self._model, self._seconds = model, seconds
        self._budget = CompilationBudget.of_equations(seconds, max(len(model.states), 1))
        self._prices = self._further_prices()
        self._graph: BatchGraph | None = None  # as soon as it is compiled
        self._is_settled = False  # whether compiling was tried
        self._lock = RLock()  # threads share the points of a batch

    def pays(self, points: int) -> bool:
        """Count points; return whether compiled code is to be used for them, and prepare what pays."""
        with self._lock:
            is_spent = self._budget.count_toward_compilation(points)
            while is_spent and (price := next(self._prices, None)) is not None:
                self._budget.add(price)
                is_spent = self._budget.count_toward_compilation(0)
            return is_spent

    def count_linearization(self) -> None:
        """Count a point that was linearized alone; compile if that pays for further ones."""
        if not self._is_settled and self.pays(round(SECONDS_OF_LINEARIZATION / self._seconds)):
            self.compile()

    def compile(self) -> BatchGraph | None:
        """Return the compiled graph, compiled now if necessary; None without a graph or a compiler."""
        with self._lock:
            if not self._is_settled:
                self._is_settled = True
                graph = batch_graph(self._model, ())
                self._graph = graph if graph is not None and graph.stacks.compile() else None
            return self._graph

    @property
    def graph(self) -> BatchGraph | None:
        """The graph of the model if compiled code computes it by now."""
        return self._graph

    def _further_prices(self) -> Iterator[float]:
        """Write the equations down, then yield the prices of their code."""
        graph = batch_graph(self._model, ())
        yield from () if graph is None else graph.stacks.prices()
