"""Calls of an FMU's functions, bound to arrays of an arena, and programs of them; see ``host/protocol.h``."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from fmilin.fmi.client.arena import Arena, Repeated

INSTRUCTION = struct.Struct("=IIQ12Q")
MESSAGE = struct.Struct("=IIQQQ")
OPERAND_COUNT = 4


class Operation(IntEnum):
    """The operations of a program's instructions: ``enum operation`` of ``protocol.h``."""

    FILL = 1
    COPY = 2
    INSTANTIATE = 10
    FREE_INSTANCE = 11
    TERMINATE = 12
    RESET = 13
    SETUP_EXPERIMENT = 14
    ENTER_INITIALIZATION = 15
    EXIT_INITIALIZATION = 16
    ENTER_CONFIGURATION = 17
    EXIT_CONFIGURATION = 18
    ENTER_EVENT_MODE = 19
    ENTER_CONTINUOUS_TIME_MODE = 20
    ENTER_STEP_MODE = 21
    UPDATE_DISCRETE_STATES = 22
    SET_DEBUG_LOGGING = 23
    SET_TIME = 30
    SET_CONTINUOUS_STATES = 31
    GET_CONTINUOUS_STATES = 32
    GET_DERIVATIVES = 33
    GET_EVENT_INDICATORS = 34
    GET_NOMINALS = 35
    GET_STATE_REFERENCES = 36
    COMPLETED_STEP = 37
    COUNT_STATES = 38
    COUNT_EVENT_INDICATORS = 39
    GET_VALUES = 40
    SET_VALUES = 41
    DIRECTIONAL = 42
    ADJOINT = 43
    DO_STEP = 50
    SAVE_STATE = 51
    RESTORE_STATE = 52
    FREE_STATE = 53


class ValueType(IntEnum):
    """The type of values that are read or set: ``enum value_type`` of ``protocol.h``."""

    FLOAT64 = 0
    FLOAT32 = 1
    INT8 = 2
    UINT8 = 3
    INT16 = 4
    UINT16 = 5
    INT32 = 6
    UINT32 = 7
    INT64 = 8
    UINT64 = 9
    BOOLEAN = 10
    TEXT = 11
    BINARY = 12
    CLOCK = 13


Array = NDArray[np.generic]


class Instruction:
    """One call, bound to its operands; ``name`` is that of the C function, for messages."""

    __slots__ = ("name", "operands", "operation", "record")

    def __init__(
        self,
        arena: Arena,
        operation: Operation,
        *operands: Array | Repeated,
        name: str = "",
        kind: ValueType = ValueType.FLOAT64,
        immediate: int = 0,
    ) -> None:
        self.name = name or operation.name
        self.operation = operation
        self.operands = operands  # the memory that the call uses
        numbers = [number for operand in operands for number in arena.locate(operand)]
        numbers += [0] * (3 * OPERAND_COUNT - len(numbers))
        self.record = INSTRUCTION.pack(operation, kind, immediate, *numbers)


def fill(arena: Arena, values: Array, number: float) -> Instruction:
    """Return the instruction that sets all elements of an array."""
    (bits,) = struct.unpack("=Q", struct.pack("=d", number))
    return Instruction(arena, Operation.FILL, values, immediate=bits)


class Program:
    """Instructions that a host keeps, to be run as often as wanted."""

    __slots__ = ("__weakref__", "instructions", "known_to", "number", "request")

    def __init__(self, instructions: Iterable[Instruction]) -> None:
        self.instructions = tuple(instructions)
        self.known_to: object = None  # the process that has taken it
        self.number = -1  # there
        self.request = b""  # to run it once

    @property
    def content(self) -> bytes:
        """The instructions as the host takes them."""
        return b"".join(i.record for i in self.instructions)
