"""A page for one person: bound to the loopback address, refused without its token, ended with its terminal."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = "127.0.0.1"
LOOK = 0.5  # seconds between two looks at whether the parent lives


class Guarded:
    """Passes requests on that show the token: in the address at first, then in a cookie of this page alone."""

    def __init__(self, app: ASGIApp, token: str, host: str) -> None:
        self._app, self._token, self._host = app, token, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, refuse it with 403, or close a socket that may not open."""
        if scope["type"] == "lifespan" or self._is_known(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif self._same(parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]):
            cookie = f"{self._name}={self._token}; HttpOnly; SameSite=Strict; Path=/"
            await _say(send, 303, {"location": "/", "set-cookie": cookie}, "")
        else:
            await _say(send, 403, {}, "This page belongs to who has started it: open the address in the terminal.\n")

    @property
    def _name(self) -> str:
        return f"fmilin-{self._host.rpartition(':')[2]}"

    def _is_known(self, scope: Scope) -> bool:
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        if headers.get("origin", f"http://{self._host}") != f"http://{self._host}" or headers.get("host") != self._host:
            return False
        kept = SimpleCookie(headers.get("cookie", "")).get(self._name)
        return kept is not None and self._same(kept.value)

    def _same(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self._token.encode())


async def _say(send: Send, status: int, headers: dict[str, str], text: str) -> None:
    sent = [(k.encode(), v.encode()) for k, v in {"content-type": "text/plain", **headers}.items()]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": text.encode()})


def serve(page: Callable[[], object], title: str, opened: Callable[[str], None]) -> None:
    """Show ``page`` until SIGINT, SIGTERM or the end of the parent; ``opened`` is told the address, with its token."""
    import uvicorn
    from fastapi import FastAPI
    from nicegui import ui

    parent = os.getppid()
    listening = socket.create_server((LOOPBACK, 0))
    host = f"{LOOPBACK}:{listening.getsockname()[1]}"
    token = secrets.token_urlsafe(24)
    app = FastAPI(openapi_url=None)
    ui.run_with(app, root=page, title=title, dark=None, show_welcome_message=False)
    config = uvicorn.Config(Guarded(app, token, host), log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)

    async def run() -> None:
        watching = asyncio.create_task(_watch(parent, server))
        await server.serve([listening])
        watching.cancel()

    async def _watch(parent: int, server: uvicorn.Server) -> None:
        while not server.started:
            await asyncio.sleep(LOOK / 10)
        opened(f"http://{host}/?token={token}")
        while os.getppid() == parent:
            await asyncio.sleep(LOOK)
        server.should_exit = True

    with listening:
        asyncio.run(run())
