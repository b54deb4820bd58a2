"""A real headless Chromium, driven through its DevTools protocol: what a page says on its console, shows and prints."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Browser", "browsing", "needs_chromium"]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: pages cannot be looked at")

OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--remote-debugging-port=0", "--window-size=1200,1600", "about:blank",
)  # fmt: skip

PATIENCE = 60.0
"""Seconds for anything that the browser is asked."""


class Browser:
    """One tab.

    Parameters
    ----------
    address : str
        Of the browser's own socket.
    """

    def __init__(self, address: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._address, self._number, self._session = address, 0, ""
        self.said: list[str] = []
        """Errors and warnings on the console, exceptions, and refused requests."""
        self.requested: list[str] = []
        """Addresses that the page asked for, itself and data left out."""
        self._loop.run_until_complete(self._connect())

    def close(self) -> None:
        """Leave the browser."""

        async def closed() -> None:
            self._socket.close()
            while await self._socket.read_message() is not None:
                pass

        self._loop.run_until_complete(asyncio.wait_for(closed(), PATIENCE))
        self._loop.close()

    async def _connect(self) -> None:
        from tornado.websocket import websocket_connect

        self._socket = await websocket_connect(self._address, max_message_size=1 << 28)
        target = await self._ask("Target.createTarget", url="about:blank")
        attached = await self._ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self._ask(f"{domain}.enable")

    async def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        mine = {"id": self._number, "method": method, "params": parameters}
        await self._socket.write_message(json.dumps(mine | ({"sessionId": self._session} if self._session else {})))
        while True:
            answer = await self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    async def _next(self) -> dict[str, Any]:
        text = await asyncio.wait_for(asyncio.ensure_future(self._socket.read_message()), PATIENCE)
        assert text is not None, "the browser is gone"
        answer: dict[str, Any] = json.loads(text)
        self._note(answer.get("method", ""), answer.get("params", {}))
        return answer

    def _note(self, method: str, found: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.said.append(str(found["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and found["type"] in ("error", "warning", "assert"):
            self.said.append(str(found["args"]))
        elif method == "Log.entryAdded" and found["entry"]["level"] in ("error", "warning"):
            self.said.append(found["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not found["request"]["url"].startswith(("data:", "about:")):
            self.requested.append(found["request"]["url"])

    def open(self, place: Path | str) -> None:
        """Open a file or an address, and wait until it is there."""

        async def opened() -> None:
            self.said.clear()
            self.requested.clear()
            await self._ask("Page.navigate", url=place if isinstance(place, str) else place.as_uri())
            while (await self._ask("Runtime.evaluate", expression="document.readyState"))["result"][
                "value"
            ] != "complete":
                await asyncio.sleep(0.05)

        self._loop.run_until_complete(opened())

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript in the page."""
        asked = self._ask("Runtime.evaluate", expression=expression, returnByValue=True)
        found = self._loop.run_until_complete(asked)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, expression: str) -> Any:
        """Wait until an expression of JavaScript is true, and return its value."""
        end = time.monotonic() + PATIENCE
        while not (value := self.evaluate(expression)):
            assert time.monotonic() < end, f"{expression} is still {value}; the page says: {self.said}"
            time.sleep(0.02)
        return value

    def press(self, key: str, code: int) -> None:
        """Press a key with this code, and let it go."""
        for kind in ("keyDown", "keyUp"):
            asked = self._ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)
            self._loop.run_until_complete(asked)

    def look(self, width: int, height: int, *, dark: bool = False) -> bytes:
        """Return what is seen in a window of this size, as PNG."""

        async def looked() -> str:
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            await self._ask("Emulation.setDeviceMetricsOverride", **size)
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            await self._ask("Emulation.setEmulatedMedia", features=[scheme])
            await asyncio.sleep(0.5)  # until everything has found its place
            return str((await self._ask("Page.captureScreenshot"))["data"])

        return base64.b64decode(self._loop.run_until_complete(looked()))

    def keep_downloads(self, folder: Path) -> None:
        """Write what pages hand out into a folder."""
        asked = self._ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
        self._loop.run_until_complete(asked)

    def pdf(self) -> bytes:
        """Return the page as it is printed."""
        found = self._loop.run_until_complete(self._ask("Page.printToPDF"))
        return base64.b64decode(found["data"])


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """Start Chromium with a fresh profile in ``folder``, and end it."""
    assert CHROMIUM is not None
    said = folder / "chromium.log"
    with said.open("wb") as log:
        process = subprocess.Popen(
            [CHROMIUM, f"--user-data-dir={folder / 'profile'}", *OPTIONS], stdout=subprocess.DEVNULL, stderr=log
        )
        try:
            browser = Browser(_address(process, said))
            try:
                yield browser
            finally:
                browser.close()
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _address(process: subprocess.Popen[bytes], said: Path) -> str:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if found := re.search(rb"DevTools listening on (ws://\S+)", said.read_bytes()):
            return found[1].decode("ascii")
        time.sleep(0.05)
    raise AssertionError(said.read_text("utf-8", "replace"))
