"""Messages of an FMU: those of an attempt that another one replaced are details."""

from __future__ import annotations

import logging

import pytest

from fmilin.fmi.read.component import LogSink

ERROR = 3  # the status of FMI


def test_messages_are_logged_after_an_attempt_and_are_details_where_another_way_led_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "fmilin.fmu")
    sink = LogSink("plant.fmu", {})
    with sink.hold_messages():
        sink.take(ERROR, "", "cannot be set now")
        assert not caplog.records
        sink.excuse()
        sink.take(ERROR, "", "of the second way")
    assert [record.levelno for record in caplog.records] == [logging.DEBUG, logging.ERROR]
    assert caplog.messages[0] == "plant.fmu: cannot be set now"
    caplog.clear()
    with pytest.raises(ValueError, match="whatever"), sink.hold_messages():  # noqa: PT012
        sink.take(ERROR, "", "reported before the failure")
        raise ValueError("whatever")
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
