"""All sources of the gate by name, in the order of the columns of the table."""

from __future__ import annotations

from collections.abc import Mapping

from tests.textbook.cells import Source
from tests.textbook.fmus import fmu_source
from tests.textbook.functions import function_model
from tests.textbook.mechanism_files import mjcf_source, toml_model, urdf_model
from tests.textbook.modelica import modelica_model
from tests.textbook.native import dae_model, kane_model, lagrange_model, ode_model
from tests.textbook.python_control import control_blocks

__all__ = ["SOURCES"]

SOURCES: Mapping[str, Source] = {
    "OdeModel": ode_model,
    "LagrangeModel": lagrange_model,
    "KaneModel": kane_model,
    "DaeModel": dae_model,
    "FunctionModel": function_model,
    "FMU 2 ME": fmu_source("2.0", "me"),
    "FMU 2 CS": fmu_source("2.0", "cs"),
    "FMU 3 ME": fmu_source("3.0", "me"),
    "FMU 3 CS": fmu_source("3.0", "cs"),
    "Modelica": modelica_model,
    "TOML": toml_model,
    "URDF": urdf_model,
    "MJCF": mjcf_source(""),
    "MuJoCo": mjcf_source("mujoco:"),
    "python-control": control_blocks,
}
