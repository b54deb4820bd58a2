"""A designed regulator: its loops, margins and poles, its verification on the nonlinear model, and its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fmilin.design.loop_analysis import LoopAnalysis
from fmilin.design.regulator_verification import ReferencedRegulator, RegulatorVerification, verify_regulator
from fmilin.errors import UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.model.interface import Model
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import TableRepr

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fmilin.design.margins import Margins


def build_sampling_error(linear: LinearModel) -> UsageError:
    """Return the error of a design from a sampled linear model."""
    return UsageError(
        f"This linear model is sampled every {linear.sample_time:g} s, and the design is from the continuous linear "
        "model: give sample_time= here alone. For a sampled plant use control.dlqr, and fl.design.estimator with "
        "kind='ukf' as its filter."
    )


@dataclass(frozen=True, eq=False, repr=False)
class RegulatorDesign(TableRepr):
    """A regulator with its loops and closed-loop poles: the common part of all designs."""

    method: ClassVar[str]  # as titles name it

    linear: LinearModel  #: the linear model, continuous; its outputs are the measurements
    regulator: ReferencedRegulator  #: runs in :func:`fmilin.closed_loop`; ``regulator.follow({"y": 1.0})``
    loops: LoopAnalysis  #: L at every input and output, and sensitivity peaks
    limits: Mapping[str, tuple[float, float]]  #: of the inputs, absolute

    @property
    def poles(self) -> NDArray[np.complex128]:
        """The eigenvalues z of the closed loop, shape (count,): inside the unit circle where it is stable."""
        return self.loops.poles

    @property
    def margins(self) -> dict[str, Margins]:
        """The margins of L at each driven input and each measured output, by name, with the other wires closed."""
        return {name: item.margins for name, item in self.loops.wires.items()}

    @property
    def sensitivity_peaks(self) -> dict[str, tuple[float, float]]:
        """The largest magnitudes of S and T at each driven input and each measured output, by name."""
        return {name: item.peaks for name, item in self.loops.wires.items()}

    def verify(
        self,
        model: Model,
        *,
        size: float = 0.01,
        stop_time: float | None = None,
        references: Mapping[str, float] | None = None,
    ) -> RegulatorVerification:
        """Return what the regulator does to the nonlinear model, disturbed from the operating point.

        The independent coordinates start off by ``size`` of their sizes; the motion is followed over ``stop_time``
        seconds, by default as long as the slowest pole needs. ``references`` are absolute values of tracked outputs.
        """
        return verify_regulator(
            self.regulator,
            self.linear,
            self.poles,
            model,
            size=size,
            stop_time=stop_time,
            limits=self.limits,
            references=references or {},
        )

    def to_document(self) -> dict[str, Any]:
        """Return gains, poles and margins as plain data, by the names of signals."""
        raise NotImplementedError

    def _describe_loops(self, method: str) -> dict[str, Any]:
        """Return what every design has, as plain data."""
        regulator = self.regulator
        margins = {
            name: {
                "gain": item.margins.gain,
                "phase": item.margins.phase,
                "delay": item.margins.delay,
                "disk": item.margins.disk,
                "peaks": {"S": item.peaks[0], "T": item.peaks[1]},
            }
            for name, item in self.loops.wires.items()
        }
        return {
            "format": "fmilin-design/1",
            "method": method,
            "model": {"name": self.linear.model.name, "guid": self.linear.model.guid},
            "sample_time": regulator.sample_time,
            "reads": list(regulator.reads),
            "drives": list(regulator.drives),
            "tracks": list(regulator.tracked),
            "poles": [[z.real, z.imag] for z in self.poles.tolist()],
            "margins": margins,
            "limits": {name: list(pair) for name, pair in self.limits.items()},
        }

    def save(
        self,
        path: str | Path,
        *,
        precision: Literal["double", "single"] = "double",
        fmi: Literal["2.0", "3.0"] = "2.0",
        model: Model | None = None,
        verification: RegulatorVerification | None = None,
    ) -> None:
        """Write the regulator: .c (C99), .fmu, .m and every format of a linear model; .html is a report.

        The suffix of ``path`` picks the format; .c has numbers of a ``precision``, an FMU the version ``fmi``. Both
        have the limits of the actuators and anti-windup. A name that ends in ``_simulink.m`` means a script that builds
        a Simulink model of the loop. The report has a ``verification``, or that of the nonlinear ``model``.
        """
        if Path(path).name.lower().endswith("_simulink.m"):
            self._save_loop(path)
        else:
            if verification is None and model is not None and Path(path).suffix.lower() in (".html", ".htm"):
                verification = self.verify(model)
            self._save_regulator(path, precision=precision, fmi=fmi, verification=verification)

    @implemented_in("fmilin.export.simulink_file:save_loop")
    def _save_loop(self, path: str | Path) -> None: ...

    @implemented_in("fmilin.report.web.of_regulator:save_design")
    def _save_regulator(
        self,
        path: str | Path,
        *,
        precision: Literal["double", "single"] = "double",
        fmi: Literal["2.0", "3.0"] = "2.0",
        verification: RegulatorVerification | None = None,
    ) -> None: ...

    @implemented_in("fmilin.report.regulator_report:draw_design")
    def plot(self) -> Figure:
        """Return the magnitudes of S and T at each wire, and the closed-loop poles."""
        ...
