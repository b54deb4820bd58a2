"""The names that FMI 1.0, 2.0 and 3.0 give to the functions behind the operations of a host, for messages."""

from __future__ import annotations

from typing import NamedTuple

from fmilin.fmi.client.host_programs import Operation, ValueType


class FmiStandard(NamedTuple):
    """The version of FMI and the interface through which a library is called."""

    version: int  # 1, 2 or 3
    stepped: bool  # co-simulation, else model exchange
    symbols: str = ""  # with which the names of all functions of the library begin, in FMI 1.0

    @property
    def prefix(self) -> str:
        """With which the names of functions begin in the standard."""
        return "fmi" if self.version == 1 else f"fmi{self.version}"


_COMMON = {
    Operation.FREE_INSTANCE: "FreeInstance",
    Operation.TERMINATE: "Terminate",
    Operation.RESET: "Reset",
    Operation.ENTER_INITIALIZATION: "EnterInitializationMode",
    Operation.EXIT_INITIALIZATION: "ExitInitializationMode",
    Operation.ENTER_EVENT_MODE: "EnterEventMode",
    Operation.ENTER_CONTINUOUS_TIME_MODE: "EnterContinuousTimeMode",
    Operation.SET_DEBUG_LOGGING: "SetDebugLogging",
    Operation.SET_TIME: "SetTime",
    Operation.SET_CONTINUOUS_STATES: "SetContinuousStates",
    Operation.GET_CONTINUOUS_STATES: "GetContinuousStates",
    Operation.GET_EVENT_INDICATORS: "GetEventIndicators",
    Operation.GET_NOMINALS: "GetNominalsOfContinuousStates",
    Operation.COMPLETED_STEP: "CompletedIntegratorStep",
    Operation.DIRECTIONAL: "GetDirectionalDerivative",
    Operation.DO_STEP: "DoStep",
}
_OF_EACH = {
    1: {
        Operation.INSTANTIATE: "InstantiateModel",
        Operation.FREE_INSTANCE: "FreeModelInstance",
        Operation.ENTER_INITIALIZATION: "Initialize",
        Operation.UPDATE_DISCRETE_STATES: "EventUpdate",
        Operation.GET_DERIVATIVES: "GetDerivatives",
        Operation.GET_NOMINALS: "GetNominalContinuousStates",
        Operation.GET_STATE_REFERENCES: "GetStateValueReferences",
    },
    2: {
        Operation.INSTANTIATE: "Instantiate",
        Operation.SETUP_EXPERIMENT: "SetupExperiment",
        Operation.UPDATE_DISCRETE_STATES: "NewDiscreteStates",
        Operation.GET_DERIVATIVES: "GetDerivatives",
        Operation.SAVE_STATE: "GetFMUstate",
        Operation.RESTORE_STATE: "SetFMUstate",
        Operation.FREE_STATE: "FreeFMUstate",
    },
    3: {
        Operation.INSTANTIATE: "InstantiateModelExchange",
        Operation.ENTER_CONFIGURATION: "EnterConfigurationMode",
        Operation.EXIT_CONFIGURATION: "ExitConfigurationMode",
        Operation.ENTER_STEP_MODE: "EnterStepMode",
        Operation.UPDATE_DISCRETE_STATES: "UpdateDiscreteStates",
        Operation.GET_DERIVATIVES: "GetContinuousStateDerivatives",
        Operation.COUNT_STATES: "GetNumberOfContinuousStates",
        Operation.COUNT_EVENT_INDICATORS: "GetNumberOfEventIndicators",
        Operation.ADJOINT: "GetAdjointDerivative",
        Operation.SAVE_STATE: "GetFMUState",
        Operation.RESTORE_STATE: "SetFMUState",
        Operation.FREE_STATE: "FreeFMUState",
    },
}
_OF_SLAVES = {
    1: {
        Operation.INSTANTIATE: "InstantiateSlave",
        Operation.FREE_INSTANCE: "FreeSlaveInstance",
        Operation.TERMINATE: "TerminateSlave",
        Operation.RESET: "ResetSlave",
        Operation.ENTER_INITIALIZATION: "InitializeSlave",
    },
    3: {Operation.INSTANTIATE: "InstantiateCoSimulation"},
}
_EARLY_VALUES = {
    ValueType.FLOAT64: "Real",
    ValueType.INT32: "Integer",
    ValueType.BOOLEAN: "Boolean",
    ValueType.TEXT: "String",
}
_VALUES = {
    ValueType.FLOAT64: "Float64",
    ValueType.FLOAT32: "Float32",
    ValueType.INT8: "Int8",
    ValueType.UINT8: "UInt8",
    ValueType.INT16: "Int16",
    ValueType.UINT16: "UInt16",
    ValueType.INT32: "Int32",
    ValueType.UINT32: "UInt32",
    ValueType.INT64: "Int64",
    ValueType.UINT64: "UInt64",
    ValueType.BOOLEAN: "Boolean",
    ValueType.TEXT: "String",
    ValueType.BINARY: "Binary",
    ValueType.CLOCK: "Clock",
}


def function_name(standard: FmiStandard, operation: Operation, kind: ValueType = ValueType.FLOAT64) -> str:
    """Return the name of the function behind an operation, without the prefix of the standard."""
    if operation in (Operation.GET_VALUES, Operation.SET_VALUES):
        verb = "Get" if operation is Operation.GET_VALUES else "Set"
        return verb + (_EARLY_VALUES if standard.version < 3 else _VALUES)[kind]
    of_slaves = _OF_SLAVES.get(standard.version, {}) if standard.stepped else {}
    for names in (of_slaves, _OF_EACH[standard.version], _COMMON):
        if operation in names:
            return names[operation]
    return operation.name
