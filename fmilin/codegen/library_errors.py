"""What CasADi and LAPACK raise, in the words of this package: no exception of a library reaches a user as it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from fmilin.errors import FmilinError, NumericalError

LIBRARY_ERRORS = (RuntimeError, NotImplementedError, SystemError, np.linalg.LinAlgError)
"""CasADi raises RuntimeError for whatever fails in C++, and NotImplementedError for arguments that fit no function."""

LONGEST_REASON = 160  # characters of what a library says


def describe_library_error(error: BaseException, subject: str) -> NumericalError:
    """Return the error that tells what a library could not do with ``subject`` (``"the equations of 'crane'"``)."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("Error in Function", "Error calling", "..."))]
    reason = (telling or lines or [type(error).__name__])[-1][:LONGEST_REASON].rstrip(".")
    return NumericalError(
        f"The library that evaluates {subject} failed: {reason}. Give start values at which all of them are defined, "
        "or write the equations in another form; where they are regular, please report this as an error of fmilin."
    )


@contextmanager
def explain_library_errors(subject: str) -> Iterator[None]:
    """Turn what a library raises in a block into a NumericalError about ``subject``, its cause kept."""
    try:
        yield
    except FmilinError:
        raise
    except ValueError as error:
        if "infs or NaNs" not in str(error):  # what scipy says of matrices that are not numbers
            raise
        raise describe_library_error(error, subject) from error
    except LIBRARY_ERRORS as error:
        raise describe_library_error(error, subject) from error
