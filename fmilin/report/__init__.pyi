from .cosimulation import cosimulation_figure as cosimulation_figure
from .cosimulation import find_step_limit as find_step_limit
from .mechanism_picture import mechanism_figure as mechanism_figure
