"""Linear models as FMUs, and back: all that an FMU has no place for lies inside as ``extra/org.fmilin/linear.npz``."""

import io
import zipfile
from pathlib import Path

from fmilin.errors import ModelError
from fmilin.export.archives import DAMAGED, read_member
from fmilin.export.linear_record import require_writable
from fmilin.fmi.write.linear_model_fmu import LinearFmu, linear_fmu
from fmilin.formats import Writing, require_codec
from fmilin.linear_model.model import LinearModel
from fmilin.support.files import open_file

INSIDE = "extra/org.fmilin/linear.npz"
MAX_EMBEDDED_BYTES = 1 << 24  # bytes of matrices up to which the model itself lies in the FMU, too: about 700 states


def dumps(linear: LinearModel, writing: Writing) -> bytes:
    """Return the file's content."""
    require_writable(linear)
    options = LinearFmu(writing.name, writing.fmi, writing.deviation, writing.embedded, writing.platforms)
    return linear_fmu(linear, options, embed_linear_model(linear))


def embed_linear_model(linear: LinearModel) -> dict[str, bytes]:
    """Return the file inside an FMU that holds the linear model, by its path; none for a large one."""
    size = 2 * sum(m.nbytes for m in (linear.A, linear.B, linear.C, linear.D, linear.T))
    return (
        {INSIDE: require_codec(INSIDE, "linear model").dumps(linear, Writing())} if size <= MAX_EMBEDDED_BYTES else {}
    )


def loads(content: bytes, origin: str) -> LinearModel:
    """Read what :func:`dumps` wrote."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            inside = read_member(archive, INSIDE)
    except KeyError:
        raise ModelError(
            f"'{origin}' is an FMU without a linear model in it ({INSIDE} is missing). To linearize it: fmilin "
            f"linearize {origin}."
        ) from None
    except DAMAGED as error:
        why = str(error).rstrip(".") or type(error).__name__
        raise ModelError(f"'{origin}' is not an FMU that can be read: {why}. Save it again.") from None
    linear: LinearModel = require_codec(INSIDE, "linear model").loads(inside, origin)
    return linear


def holds_linear_model(path: str | Path) -> bool:
    """Whether this is an FMU of a linear model that fmilin wrote; False where it cannot be read."""
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as archive:
            return INSIDE in archive.namelist()
    except (OSError, *DAMAGED):
        return False
