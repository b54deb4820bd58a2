"""netCDF 4, which xarray reads with labelled axes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fmilin.formats import Codec, Writing, register, unreadable_file

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily
    from fmilin.periodic.model import PeriodicModel


@register
class FamilyNetcdf(Codec["LinearFamily"]):
    holds = "family"
    suffix = ".nc"
    audience = "xarray"
    content = "netCDF 4 with labelled axes; needs `pip install 'fmilin[families]'`"
    position = 10
    is_complete = True
    is_readable = True

    def dumps(self, result: LinearFamily, writing: Writing) -> bytes:
        from fmilin.export.family_arrays import dumps_nc

        return dumps_nc(result)

    def loads(self, content: bytes, origin: str) -> LinearFamily:
        from io import BytesIO

        from fmilin.export.family_arrays import read_nc

        return read_nc(BytesIO(content), origin)

    def write(self, result: LinearFamily, path: Path, writing: Writing) -> None:
        """Write the points one run after the other: a family may be larger than the memory."""
        from fmilin.export.family_arrays import write_nc

        write_nc(result, path)

    def read(self, path: Path) -> LinearFamily:
        """Read from the path: HDF5 reads parts of a file."""
        from fmilin.export.family_arrays import read_nc

        try:
            path.open("rb").close()
        except (OSError, ValueError) as error:
            raise unreadable_file(path, self.holds, error) from None
        return read_nc(path, str(path))

    def require_installed(self) -> None:
        """Raise UsageError if h5netcdf or h5py is missing."""
        from fmilin.export.family_arrays import require_installed

        require_installed()


@register
class PeriodicModelNetcdf(Codec["PeriodicModel"]):
    holds = "periodic model"
    suffix = ".nc"
    audience = "xarray"
    content = "matrices over the phase, multipliers, exponents: `fmilin floquet -o`"
    position = 10
    is_complete = True
    is_readable = True

    def dumps(self, result: PeriodicModel, writing: Writing) -> bytes:
        from fmilin.export.periodic_file import dumps_nc

        return dumps_nc(result)

    def loads(self, content: bytes, origin: str) -> PeriodicModel:
        from fmilin.export.periodic_file import loads_nc

        return loads_nc(content, origin)

    def require_installed(self) -> None:
        """Raise UsageError if h5netcdf or h5py is missing."""
        from fmilin.export.family_arrays import require_installed

        require_installed()
