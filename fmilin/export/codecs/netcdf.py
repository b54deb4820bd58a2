"""netCDF 4, which xarray reads with labelled axes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmilin.export.container import Container, Content, find_conversions, register_container
from fmilin.formats import Writing, unreadable_file

if TYPE_CHECKING:
    from fmilin.export.record import Record, Stored


@register_container
class Netcdf(Container):
    suffix = ".nc"
    contents = (
        Content("family", 10, "xarray", "netCDF 4 with labelled axes; needs `pip install 'fmilin[families]'`"),
        Content("periodic model", 10, "xarray", "matrices over the phase, multipliers, exponents: `fmilin floquet -o`"),
    )

    def encode(self, record: Record) -> bytes:
        from fmilin.export.netcdf_file import encode

        return encode(record)

    def decode(self, content: bytes) -> Stored:
        from io import BytesIO

        from fmilin.export.netcdf_file import decode

        return decode(BytesIO(content))

    def write(self, result: Any, path: Path, writing: Writing) -> None:
        """Write the points one run after the other: a family may be larger than the memory."""
        from fmilin.export.netcdf_file import write

        write(find_conversions(self.holds)[0](result), path)

    def read(self, path: Path) -> Any:
        """Read from the path: HDF5 reads parts of a file."""
        from fmilin.export.netcdf_file import decode
        from fmilin.support.files import open_file

        try:
            open_file(path).close()
        except (OSError, ValueError) as error:
            raise unreadable_file(path, self.holds, error) from None
        with self.describe_decoding_errors(str(path)):
            stored = decode(path)
        return self.restore(stored, str(path))

    def require_installed(self) -> None:
        """Raise UsageError if h5netcdf or h5py is missing."""
        from fmilin.export.netcdf_file import require_installed

        require_installed()
