"""Twenty mistakes, each on a line that says so; both type checkers report these lines and no others."""

import control
import fmilin.native  # mistake: the package is fmilin.models
import numpy as np

import fmilin as fl
from fmilin import design
from fmilin.models import OdeModel, OdeModle  # mistake: a misspelt class
from fmilin.systems import four_bar

model = four_bar()
point = fl.operating_point(model, {"phi": "1.2"})  # mistake: a text as a number
lin = fl.linearise(model)  # mistake: a misspelt function
linear = fl.linearize(model, derivates="auto")  # mistake: a misspelt keyword
other = fl.linearize("four_bar.fmu")  # mistake: a path as a model
loaded = fl.load(3)  # mistake: a number as a path
good = fl.linearize(model)
points = fl.sweep(model, {"phi": [1.0, 1.2]})
rows: fl.LinearFamily = points[0]  # mistake: a linear model as a family
values = good.eigenvalue()  # mistake: a misspelt method
largest: float = good.eigenvalues()  # mistake: an array as a number
array: np.ndarray = good.to_control()  # mistake: a system as an array
system: control.StateSpace = good.plot.bode()  # mistake: a figure as a system
units = [state.units for state in good.states]  # mistake: a misspelt attribute of a signal
good.save(3)  # mistake: a number as a path
family = fl.sweep(model, {"phi": "1, 2, 3"})  # mistake: a text as a list of numbers
grid = fl.sweep(model, {"phi": [1.0, 1.2]}, trimmed=True)  # mistake: a misspelt keyword
trimmed = fl.trim(model, fixed=["phi"])  # mistake: a list as a mapping
motion = fl.simulate(model, stop_time="1 s")  # mistake: a text as a number
regulator = design.state_feedback(good, "gain", sample_time=0.1)  # mistake: a text as an array
pendulum = OdeModel("pendulum", {"x": "v", "v": "-x"}, input=["F"])  # mistake: a misspelt keyword
