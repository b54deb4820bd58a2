"""Facts about a result as lines of a page: a word, and what there is to say about it; diagnostics; rows of a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from fmilin.report.numbers import rough, shorten_name
from fmilin.support.tables import LabelledFact, build_table

if TYPE_CHECKING:
    from fmilin.diagnostics import Remark
    from fmilin.numerics.certificate import Certificate
    from fmilin.support.table_repr import Sheet

Fact = tuple[str, Sequence[str]]  # A word, and the pieces of what is said about it; a line breaks only between pieces


def print_facts(page: Sheet, facts: Iterable[Fact]) -> None:
    """Print words and what is known about each."""
    for word, pieces in facts:
        print_fact(page, word, pieces)


def print_fact(page: Sheet, word: str, pieces: Sequence[str]) -> None:
    """Print a word and what is known about it: a list breaks between its pieces, a sentence between its words."""
    is_sentence = isinstance(pieces, str)
    page.print(LabelledFact(word, (pieces,) if isinstance(pieces, str) else tuple(pieces), is_sentence))


def show_certificate(certificate: Certificate, page: Sheet) -> None:
    """Print how well a solution is determined."""
    print_facts(page, certificate_facts(certificate))


def certificate_facts(certificate: Certificate) -> Iterator[Fact]:
    """Yield how well a solution is determined: the same facts of points, orbits and starts."""
    residual = f"{certificate.residual:.1e}" if certificate.residual else "0"
    yield "Residual", [residual, certificate.residual_measure]
    if certificate.largest_step is not None:
        name, part = certificate.largest_step
        yield "Newton step", [f"{part:.1e} of the size of {shorten_name(name)}" if part else "0"]
    if math.isfinite(certificate.regularity):
        yield "Regularity", [f"{certificate.regularity:.2g}", "of 1 (near 0: solutions meet, or form a family)"]
    if certificate.multiple:
        yield "Multiple", [f"several solutions meet in {shorten_name(name)}" for name in certificate.multiple]
    if doubtful := certificate.noticeable_distances:
        yield "Known to", [f"{shorten_name(name)} +- {rough(distance)}" for name, distance in doubtful.items()]


def print_remarks(page: Sheet, remarks: Iterable[Remark]) -> None:
    """Print warnings and notes, one after the other."""
    for remark in remarks:
        print_fact(page, remark.heading, str(remark))


def print_rows(page: Sheet, heads: Sequence[str], rows: Iterable[Sequence[str]], *, columns: str = "") -> None:
    """Print a :func:`build_table` rows below an empty line."""
    page.print()
    page.print(build_table(heads, rows, columns=columns))
