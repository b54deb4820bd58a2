"""Designs of regulators: files in the format of the suffix, a report among them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

from fmilin.design.regulator_design import RegulatorDesign
from fmilin.design.regulator_verification import RegulatorVerification
from fmilin.report.regulator_report import MAX_CURVES, show_verification_of_regulator
from fmilin.report.web import blocks
from fmilin.report.web.of_results import list_blocks
from fmilin.support.files import write_atomically


def save_design(
    design: RegulatorDesign,
    path: str | Path,
    *,
    precision: Literal["double", "single"] = "double",
    fmi: Literal["2.0", "3.0"] = "2.0",
    verification: RegulatorVerification | None = None,
) -> None:
    """Write the regulator in the format of the suffix; .html is a report."""
    if Path(path).suffix.lower() in (".html", ".htm"):
        write_atomically(path, make_design_page(design, verification).encode("utf-8"))
        return
    has_limits = Path(path).suffix.lower() in (".c", ".fmu")
    limits = design.limits if has_limits and design.limits else None
    design.regulator.save(path, limits=limits, precision=precision, fmi=fmi)


def make_design_page(design: RegulatorDesign, verification: RegulatorVerification | None = None) -> str:
    """Return a report as one HTML file: tables, the loops with their margins, and a verification where it is given."""
    sections = [
        blocks.Section("Regulator", [*list_blocks(design._print_table), blocks.picture("Loops", design.plot)]),
        blocks.Section("Margins", [blocks.picture(f"L at {name}", item.margins.plot)
                                   for name, item in list(design.loops.wires.items())[:MAX_CURVES]]),
    ]  # fmt: skip
    if verification is not None:
        parts = list_blocks(partial(show_verification_of_regulator, verification))
        parts.append(blocks.picture("The nonlinear closed loop, disturbed", verification.plot))
        sections.append(blocks.Section("Verification", parts))
    subtitle = f"every {design.regulator.sample_time:g} s, of {len(design.linear.states)} independent states"
    return blocks.render_html(f"{design.method} regulator of {design.linear.model.name}", subtitle, sections)
