"""The result of a discovery, as a table and as a file of constraints."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from fmilin.constraints.declared import Constraint, Level
from fmilin.diagnostics import Remark
from fmilin.model.model_files import toml_string
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr


@dataclass(frozen=True)
class Finding:
    """An undeclared constraint."""

    expression: str
    level: Level
    states: tuple[str, ...]
    value: float  # the largest value along a motion with inputs that jump, relative to the size of the terms
    # along_motion, along_inputs: H f and H f_u at consistent points that the search had not seen, relative to the size
    # of their terms
    along_motion: float
    along_inputs: float


@dataclass(frozen=True)
class KeptOut:
    """A conserved quantity that is not a constraint."""

    expression: str
    reason: str


@dataclass(frozen=True, repr=False)
class Discovery(TableRepr):
    """The constraints of a model."""

    _attributes = ".findings, .kept_out, .constraints"

    findings: tuple[Finding, ...]  #: constraints to be declared
    kept_out: tuple[KeptOut, ...]  #: conserved quantities that are not constraints
    order: int  #: states that are independent then
    full_order: int  #: all states
    constant: tuple[str, ...] = ()  #: states that never change, parameters in truth
    visits: int = 0  #: points at which the model was asked
    seconds: float = 0.0  #: that it took, in s
    warnings: tuple[Remark, ...] = ()  #: diagnostics on the search
    name: str = ""  #: of the model

    @implemented_in("fmilin.report.result_tables:show_discovery")
    def _print_table(self, page: Sheet) -> None: ...

    @property
    def constraints(self) -> list[str]:
        """The expressions that are zero."""
        return [f.expression for f in self.findings]

    @property
    def conserved(self) -> list[str]:
        """Expressions of conserved quantities that are not constraints."""
        return [k.expression for k in self.kept_out]

    @property
    def declared(self) -> list[Constraint]:
        """The constraints for :meth:`fmilin.Model.with_constraints`, each with its level."""
        return [Constraint.from_text(f.expression, level=f.level) for f in self.findings]

    def document(self) -> dict[str, Any]:
        """Return everything as a document for JSON."""
        own_fields = {
            f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("findings", "kept_out", "warnings")
        }
        return {
            "format": "fmilin-discovery/1",
            **own_fields,
            "constraints": [asdict(f) for f in self.findings],
            "conserved": [asdict(k) for k in self.kept_out],
            "warnings": [str(w) for w in self.warnings],
        }

    def toml(self) -> str:
        """Return the file that ``load(constraints_file=...)`` reads."""
        lines = [f"# Found by fl.discover in '{self.name}'. Order {self.order}, {self.full_order} without these."]
        for f in self.findings:
            lines += ["", "[[constraint]]", f"expression = {toml_string(f.expression)}", f'level = "{f.level}"']
        for k in self.kept_out:
            lines += ["", f"# kept out: {k.expression}: {k.reason}"]
        return "\n".join(lines) + "\n"
