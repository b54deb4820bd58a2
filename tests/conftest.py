"""What all tests share: a folder for what is built once, and how hypothesis searches."""

from __future__ import annotations

import faulthandler
import gc
import hashlib
import io
import shutil
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

from fmilin.fmi.write import linear_model_fmu, symbolic_fmu
from fmilin.fmi.write.symbolic_fmu import archive_bytes
from tests.fmus.make import build
from tests.shared import new_folder, shared

settings.register_profile("the same everywhere", derandomize=True, database=None, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile("the same everywhere")  # another one by --hypothesis-profile=search


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # in a background job of a shell; children inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = new_folder()
    if folder is not None:
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_collection_finish() -> None:
    """Spare the garbage collector what stays until the end: thousands of tests, and the libraries that they import."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def no_dump_of_the_stack() -> Iterator[None]:
    """The crashes here are wanted: pytest need not report them."""
    was_on = faulthandler.is_enabled()
    faulthandler.disable()
    yield
    if was_on:
        faulthandler.enable(sys.__stderr__ or 2)


@pytest.fixture(scope="session")
def zoo() -> Callable[[str], Path]:
    """Return the FMU of a C file in tests/fmus by name."""
    return lambda name: shared(f"{name}.fmu", lambda path: build(name, path.parent))


@pytest.fixture(scope="session", autouse=True)
def _fmpy_finds_nothing_wrong_in_what_is_written() -> Iterator[None]:
    """Let FMPy check every FMU that a test writes in this process, once for each model description."""
    import lark
    from fmpy.validation import validate_fmu

    checked: set[bytes] = set()
    lark_parser = lark.Lark

    @cache
    def parser_of_names(grammar: str, *, start: str) -> SimpleNamespace:
        """Return FMPy's parser of names, which takes milliseconds for each: the same names return in most FMUs."""
        return SimpleNamespace(parse=cache(lark_parser(grammar, start=start).parse))

    def find_problems(archive: bytes) -> list[str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lark, "Lark", parser_of_names)
            problems: list[str] = validate_fmu(io.BytesIO(archive))
        return problems

    def checked_bytes(content: Mapping[str, bytes], *, packed: Collection[str] = ()) -> bytes:
        archive = archive_bytes(content, packed=packed)
        digest = hashlib.sha256(content.get("modelDescription.xml", b"")).digest()  # a system of FMUs has none
        if "modelDescription.xml" in content and digest not in checked:
            assert find_problems(archive) == []
            checked.add(digest)
        return archive

    with pytest.MonkeyPatch.context() as patch:
        for writer in (symbolic_fmu, linear_model_fmu):
            patch.setattr(writer, "archive_bytes", checked_bytes)
        yield
