from .ssp_file import ssp as ssp
