"""Where the variables are declared that an error names, as a note on the error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fmilin.errors import FmilinError, UsageError
from fmilin.model.capabilities import DescribesDeclarations
from fmilin.model.interface import Model

__all__ = ["note_declarations"]


@contextmanager
def note_declarations(model: Model) -> Iterator[None]:
    """Add to errors in a block where the variables are declared that they name; not to wrong requests."""
    try:
        yield
    except UsageError:
        raise
    except FmilinError as error:
        note = model.describe_declarations(str(error)) if isinstance(model, DescribesDeclarations) else ""
        if note and note not in getattr(error, "__notes__", ()):  # an inner block may have added it
            error.add_note(note)
        raise
