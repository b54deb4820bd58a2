"""What foreign code may take, and what it may reach."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from fmilin.ground.errors import UsageError


@dataclass(frozen=True, slots=True)
class Limits:
    """What foreign code may take, and what it may reach beyond its own folder and the system's libraries.

    Parameters
    ----------
    seconds : float, optional
        For every single call of a function of the model, its loading included; None: for ever.
    memory : float, optional
        Size in bytes of the child process and of those that it starts. None: nine tenths of what is free when the
        child starts, so that the machine stays usable.
    processes : int
        That it may have started at a time.
    read : sequence of str or Path
        Files and folders that it may read: weather data, licence files.
    network : bool
        Whether it may use the network, and sockets of this machine.
    environment : sequence of str
        Variables of the environment that it may see.
    caged : bool
        False: it may reach all that the user may.
    """

    seconds: float | None = 120.0
    memory: float | None = None
    processes: int = 100
    read: Sequence[str | os.PathLike[str]] = ()
    network: bool = False
    environment: Sequence[str] = ()
    caged: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.read, str | os.PathLike) or isinstance(self.environment, str):
            raise UsageError("'read' and 'environment' are sequences: write ['...'] even for a single one.")
