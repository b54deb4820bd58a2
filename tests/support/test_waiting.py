"""Waiting for pipes."""

from __future__ import annotations

import os
import time

from fmilin.support.waiting import wait_for_readable


def test_pipes_with_content_and_closed_ones_are_readable() -> None:
    (first, to_first), (second, to_second), (third, to_third) = (os.pipe() for _ in range(3))
    os.write(to_first, b"x")
    os.close(to_second)
    assert sorted(wait_for_readable([first, second, third], 10.0)) == sorted([first, second])
    for descriptor in (first, to_first, second, third, to_third):
        os.close(descriptor)


def test_waiting_ends_after_its_time() -> None:
    reading, writing = os.pipe()
    begin = time.monotonic()
    assert wait_for_readable([reading], 0.05) == []
    assert time.monotonic() - begin >= 0.05
    os.close(reading)
    os.close(writing)
