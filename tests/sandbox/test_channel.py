"""Answers arrive whole or not at all, whatever else is written."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from fmilin.sandbox.watchdog import ChannelError, NamedPipe

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


def received(channel: NamedPipe) -> bytes:
    while (content := channel.receive()) is None:
        pass
    return content


@pytest.mark.parametrize("content", [b"", b"answer", bytes(range(256)) * 10_000])
def test_an_answer_of_any_size(content: bytes, tmp_path: Path) -> None:
    channel = NamedPipe(tmp_path)
    sender = threading.Thread(target=channel.send, args=(content,))
    sender.start()
    assert received(channel) == content
    sender.join()
    channel.close()


def test_a_part_of_an_answer_is_none(tmp_path: Path) -> None:
    channel = NamedPipe(tmp_path)
    with next(tmp_path.iterdir()).open("wb", buffering=0) as pipe:
        assert channel.receive() is None
        pipe.write(channel._word)
        assert channel.receive() is None
    channel.close()


@pytest.mark.parametrize("before", [True, False])
def test_what_others_write_is_noticed(before: bool, tmp_path: Path) -> None:
    channel = NamedPipe(tmp_path)
    with next(tmp_path.iterdir()).open("wb", buffering=0) as pipe:
        if before:
            pipe.write(b"garbage")
        channel.send(b"answer")
        if not before:
            pipe.write(b"garbage")
        with pytest.raises(ChannelError):
            channel.receive()
    channel.close()


def test_a_changed_answer_is_noticed(tmp_path: Path) -> None:
    channel = NamedPipe(tmp_path)
    channel.send(b"answer")
    content = bytearray(os.read(channel.fileno(), 1000))
    content[-1] ^= 1
    with next(tmp_path.iterdir()).open("wb", buffering=0) as pipe:
        pipe.write(content)
        with pytest.raises(ChannelError):
            channel.receive()
    channel.close()
