"""One aircraft in JSBSim: its properties, what of it runs, and how its controls come to rest.

JSBSim advances its models one after the other, each by a step of its own. Rates at a state are had by steps of length
zero, with the motion of the aircraft switched off; a model that is not meant to change is switched off, too.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import jsbsim
import numpy as np
from lxml import etree

from fmilin.errors import ModelError

__all__ = ["Simulator", "aircraft_files", "data_folder"]

STEP = 1.0 / 120.0
"""The step of the flight control system, in s, for which JSBSim computes its filters."""
SETTLED = 1e-12
"""Changes of control surfaces by less than this fraction of the largest are none."""
LONGEST = 1500
"""Runs after which a flight control system that still moves is taken as one that never rests."""
MODELS = ("Input", "Atmosphere", "Winds", "FCS", "MassBalance", "Auxiliary", "Propulsion", "Aerodynamics",
          "GroundReactions", "ExternalReactions", "BuoyantForces", "Aircraft", "Accelerations",
          "Propagate")  # fmt: skip
WITH_MEMORY = {"lag_filter", "lead_lag_filter", "second_order_filter", "washout_filter", "pid", "integrator"}


def data_folder() -> Path:
    """Return the folder with JSBSim's aircraft, engines and systems.

    JSBSim searches for it in the environment's own site-packages only. In an environment that takes JSBSim from
    elsewhere (a .pth file, PYTHONPATH) it raises OSError, although the imported package contains the data.
    """
    try:
        return Path(jsbsim.get_default_root_dir())
    except OSError:
        folder = Path(jsbsim.__file__).parent
        if not (folder / "aircraft").is_dir():
            raise
        return folder


def aircraft_files() -> dict[str, Path]:
    """Return the files of the aircraft that come with JSBSim, by name."""
    folders = sorted((data_folder() / "aircraft").iterdir())
    return {folder.name: path for folder in folders if (path := folder / f"{folder.name}.xml").is_file()}


class Simulator:
    """JSBSim with an aircraft in flight: engines running, gear up, no output files.

    Attributes
    ----------
    remarks : list of str
        What a user should know of it.
    """

    def __init__(self, path: Path) -> None:
        self.name, self.remarks = path.stem, list[str]()
        root = data_folder()
        with on_standard_error():
            fdm = self._fdm = jsbsim.FGFDMExec(str(root))
        fdm.set_debug_level(0)
        fdm.set_dt(STEP)
        try:
            with on_standard_error(), with_ideal_actuators(path) as (folder, ideal):
                fdm.set_aircraft_path(str(folder))
                loaded = fdm.load_model(self.name)
        except Exception as error:  # JSBSim has classes of its own for what it finds in files
            raise ModelError(f"JSBSim cannot load '{path}': {' '.join(str(error).split())}.") from error
        if ideal:
            self.remarks.append(f"Actuators are ideal here, without {', '.join(ideal)}.")
        if not loaded:
            raise ModelError(f"JSBSim cannot load '{path}': see the messages that it printed above.")
        fdm.disable_output()
        self.properties = _names(fdm)
        self._set_off()

    def _set_off(self) -> None:
        self.set({"ic/h-sl-ft": 5000.0, "ic/u-fps": 200.0, "gear/gear-cmd-norm": 0.0, "gear/gear-pos-norm": 0.0})
        self.set({name: 1.0 for name in self.properties if name.startswith("fcs/mixture-cmd-norm")})
        self._fdm.run_ic()
        self._fdm.get_propulsion().init_running(-1)
        self._fdm["propulsion/fuel_freeze"] = 1
        self._fdm.run_ic()

    def __getitem__(self, name: str) -> float:
        return float(self._fdm[name])

    def get(self, names: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the values of properties."""
        return np.array([self._fdm[name] for name in names], dtype=np.float64)

    def set(self, values: dict[str, float]) -> None:
        """Set those properties that the aircraft has."""
        for name, value in values.items():
            if name in self.properties:
                self._fdm[name] = value

    def set_state(self, values: dict[str, float]) -> None:
        """Put the aircraft into a state that the properties ``ic/...`` say, in their order, and compute once."""
        for _ in range(2):  # each of them keeps another one, of before, through conversions
            for name, value in values.items():
                self._fdm[name] = value
        self._fdm.run_ic()

    def still(self) -> None:
        """Compute once more at the same state."""
        self._fdm.suspend_integration()
        self._fdm.run()
        self._fdm.resume_integration()

    def advance(self, step: float) -> None:
        """Let what is switched on advance by ``step`` seconds, which may be negative."""
        self._fdm.set_dt(step)
        self._fdm.run()
        self._fdm.set_dt(STEP)

    @contextmanager
    def only(self, models: Iterable[str]) -> Iterator[None]:
        """Switch off all models but these."""
        off = [name for name in MODELS if name not in set(models)]
        self._switch(off, on=False)
        try:
            yield
        finally:
            self._switch(off, on=True)

    def _switch(self, models: Iterable[str], *, on: bool) -> None:
        for name in models:
            self.set({f"simulation/models/FG{name}/enabled": float(on)})

    def settle(self, surfaces: Sequence[str]) -> bool:
        """Run the flight control system alone until its outputs rest; return whether they do."""
        with self.only(["FCS"]):
            before = self.get(surfaces)
            for _ in range(LONGEST):
                self.advance(STEP)
                now = self.get(surfaces)
                if np.abs(now - before).max(initial=0.0) <= SETTLED * max(1.0, float(np.abs(now).max(initial=0.0))):
                    return True
                before = now
        return False


@contextmanager
def on_standard_error() -> Iterator[None]:
    """Let what JSBSim prints go to standard error: standard output carries results."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        with suppress(OSError, TypeError):  # Windows has no such library
            ctypes.CDLL(None).fflush(None)  # what the C library still holds
        os.dup2(kept, 1)
        os.close(kept)


@contextmanager
def with_ideal_actuators(path: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield a folder with a copy of the aircraft with ideal actuators, and sentences on what these leave out.

    A lag, a rate limit, a dead band or a hysteresis lets nothing of a small command through at once. The copy opens no
    sockets and writes no files either.
    """
    lost: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.stem
        copy.mkdir()
        for file in path.resolve().parent.iterdir():
            if file.name != path.name:
                (copy / file.name).symlink_to(file)
        content = path.read_bytes()
        with suppress(etree.XMLSyntaxError):  # which JSBSim tells
            root = etree.fromstring(content, etree.XMLParser(resolve_entities=False, no_network=True))
            for part in root.xpath("//actuator/*[self::lag or self::rate_limit or self::deadband_width"
                                   " or self::hysteresis_width]"):  # fmt: skip
                lost.append({"lag": "lags", "rate_limit": "rate limits", "deadband_width": "dead bands"}.get(
                    part.tag, "hysteresis"))  # fmt: skip
                part.getparent().remove(part)
            for part in root.xpath("/*/input | /*/output"):  # sockets and files
                root.remove(part)
            content = etree.tostring(root)
        (copy / path.name).write_bytes(content)
        yield Path(folder), sorted(set(lost))


def _names(fdm: Any) -> frozenset[str]:
    """Return the names of all properties, without what follows them in the catalog: (R), (RW)."""
    catalog = fdm.query_property_catalog("")
    lines = catalog.splitlines() if isinstance(catalog, str) else catalog
    return frozenset(line.split(" ")[0] for line in lines if line.strip())


def elements_of(path: Path) -> tuple[list[str], list[str]]:
    """Return the files of the engines of an aircraft, and the kinds of its control elements that have a memory."""
    with suppress(etree.XMLSyntaxError, OSError):  # JSBSim tells
        root = etree.parse(str(path), etree.XMLParser(resolve_entities=False, no_network=True)).getroot()
        engines = [str(e.get("file")) for e in root.iter("engine") if e.get("file")]
        return engines, [str(e.tag) for e in root.iter() if e.tag in WITH_MEMORY]
    return [], []
