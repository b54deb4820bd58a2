from .linear_record import require_writable as require_writable
from .ssp_file import ssp as ssp
