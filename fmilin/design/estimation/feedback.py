"""A regulator on the estimates of a filter."""

from __future__ import annotations

from fmilin.design.estimation.estimator import Estimator
from fmilin.design.regulators import Regulator
from fmilin.ground.errors import UsageError
from fmilin.ground.signals import FloatArray
from fmilin.ground.verbs import Shown


class EstimatorRegulator(Shown):
    """What a regulator answers to estimates in place of states; the filter is told what the actuators do.

    Parameters
    ----------
    kf : Estimator
        Its outputs are read from the plant.
    law : regulator
        Reads states (:func:`fmilin.design.state_feedback`, a schedule), estimated parameters among them, at the
        filter's sample time.

    Raises
    ------
    UsageError, UnknownNameError
        When the law reads what is not estimated, drives what is no input, or has another sample time.
    """

    def __init__(self, kf: Estimator, law: Regulator) -> None:
        states, inputs = kf.model.states, kf.model.inputs
        self.kf, self.law, self.reads, self.drives = kf, law, kf.model.outputs.names, law.drives
        self.sample_time = kf.sample_time
        if abs(law.sample_time - kf.sample_time) > 1e-9 * kf.sample_time:
            raise UsageError(f"The law runs every {law.sample_time:g} s and the filter every {kf.sample_time:g} s.")
        self._read = [states.index_of(name, "a state that is estimated") for name in law.reads]
        self._driven = [inputs.index_of(name, "an input of the model") for name in law.drives]

    def restart(self) -> None:
        """Go back to before the first sample."""
        self.kf.reset()
        self.law.restart()

    def answer(self, t: float, read: FloatArray) -> FloatArray:
        """Return the inputs, shape (k,), for what was ``read``, shape (m,), at ``t`` seconds."""
        return self.law.answer(t, self.kf.correct(read)[self._read])

    def applied(self, outputs: FloatArray) -> None:
        """Predict with the ``outputs``, shape (k,), that are really applied."""
        self.law.applied(outputs)
        u = self.kf.settings.inputs.copy()
        u[self._driven] = outputs
        self.kf.predict(u)
