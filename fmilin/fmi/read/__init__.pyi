from .archive import FmuFile as FmuFile
from .archive import read_description as read_description
from .fmu_model import FmuModel as FmuModel
from .fmu_model import open_fmu as open_fmu
