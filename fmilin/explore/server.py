"""A page for one person: bound to the loopback address, opened by a token of one use, ended with its terminal."""

from __future__ import annotations

import asyncio
import html
import os
import secrets
import socket
from collections.abc import Callable, Iterable
from http.cookies import SimpleCookie
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from fmilin.support.files import temporary_folder, write_private

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = "127.0.0.1"
RECONNECTION_SECONDS = 60.0  # on a busy machine: a page that lost its connection meanwhile keeps its choices
PARENT_CHECK_SECONDS = 0.5  # seconds between two checks that the parent process lives

POLICY = {
    "default-src": "'none'",
    # Vue compiles the templates of NiceGUI's elements and NiceGUI evaluates the messages of its server: both need eval.
    # Scripts in the page need the number of this answer, and code in attributes does not run.
    "script-src": "'self' 'nonce-{nonce}' 'unsafe-eval'",
    "style-src": "'self' 'unsafe-inline'",  # Quasar and Tailwind add style elements and attributes
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self' ws://{host}",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
"""The content security policy of the page: what is not listed is not loaded."""

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

_REDIRECTION = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">
<meta http-equiv="refresh" content="0; url={address}"><title>fmilin</title></head>
<body><p><a href="{address}">Open the page</a></p></body></html>
"""


class Tokens:
    """Secrets that open the page once each."""

    def __init__(self) -> None:
        self._unused: dict[str, Callable[[], None]] = {}

    def issue(self, redeemed: Callable[[], None] = lambda: None) -> str:
        """Return a new token; ``redeemed`` is called when it is used."""
        token = secrets.token_urlsafe(24)
        self._unused[token] = redeemed
        return token

    def redeem(self, presented: str) -> bool:
        """Whether this is a token that was not used before. It is used then."""
        token_of_link = next((token for token in self._unused if _are_equal(token, presented)), None)
        if token_of_link is None:
            return False
        self._unused.pop(token_of_link)()
        return True


class Guarded:
    """Passes requests on that show the cookie of this page. A token of one use, in the address, is exchanged for it."""

    def __init__(self, app: ASGIApp, tokens: Tokens, host: str) -> None:
        self._app, self._tokens, self._host = app, tokens, host
        self._secret = secrets.token_urlsafe(24)
        self._name = f"fmilin-{host.rpartition(':')[2]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, reject it with 403, or close a socket that may not open."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif self._has_cookie(scope):
            await self._app(_without_compression(scope), receive, self._protect(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif self._comes_from_here(scope) and scope["method"] == "GET" and self._tokens.redeem(_read_token(scope)):
            # A page that leads on, not a redirection: of one that begins in a file or another page, browsers do not
            # show a cookie with SameSite=Strict at its end.
            cookie = f"{self._name}={self._secret}; HttpOnly; SameSite=Strict; Path=/"
            policy = "default-src 'none'; img-src data:"
            headers = {"content-type": "text/html", "set-cookie": cookie, "content-security-policy": policy}
            await _answer(send, 200, headers, _redirection("/"))
        else:
            text = "This page opens once with the address in the terminal. Start 'fmilin explore' again for another.\n"
            await _answer(send, 403, {"content-type": "text/plain"}, text)

    def _comes_from_here(self, scope: Scope) -> bool:
        headers = _read_headers(scope)
        here = f"http://{self._host}"
        return headers.get("origin", here) == here and headers.get("host") == self._host

    def _has_cookie(self, scope: Scope) -> bool:
        if not self._comes_from_here(scope):
            return False
        cookie = SimpleCookie(_read_headers(scope).get("cookie", "")).get(self._name)
        return cookie is not None and _are_equal(cookie.value, self._secret)

    def _protect(self, send: Send) -> Send:
        """Return ``send`` with the headers that protect a page; its own scripts get the number of this answer."""
        nonce = secrets.token_urlsafe(18)
        policy = "; ".join(f"{name} {sources}" for name, sources in POLICY.items())
        added = HEADERS | {"content-security-policy": policy.format(nonce=nonce, host=self._host)}
        start: Message | None = None
        body = b""

        async def send_protected(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                headers = [(key, value) for key, value in message["headers"] if key.decode("latin-1") not in added]
                message = {**message, "headers": [*headers, *_encode_headers(added)]}
                is_page = any(key == b"content-type" and value.startswith(b"text/html") for key, value in headers)
                if is_page:
                    start = message
                    return
            elif start is not None:
                body += message.get("body", b"")
                if message.get("more_body"):
                    return
                # Names stand in the page as JSON in which NiceGUI has escaped "<": each of these is an element.
                body = body.replace(b"<script", b'<script nonce="%s"' % nonce.encode())
                length = (b"content-length", str(len(body)).encode())
                other_headers = [(key, value) for key, value in start["headers"] if key != b"content-length"]
                await send({**start, "headers": [*other_headers, length]})
                message = {"type": "http.response.body", "body": body}
            await send(message)

        return send_protected


def _read_headers(scope: Scope) -> dict[str, str]:
    return {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}


def _without_compression(scope: Scope) -> Scope:
    return {**scope, "headers": [(key, value) for key, value in scope["headers"] if key != b"accept-encoding"]}


def _read_token(scope: Scope) -> str:
    query: str = scope["query_string"].decode("latin-1")
    return parse_qs(query).get("token", [""])[0]


def _are_equal(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode(), other.encode())


def _encode_headers(headers: dict[str, str]) -> Iterable[tuple[bytes, bytes]]:
    return [(key.encode(), value.encode()) for key, value in headers.items()]


def _redirection(address: str) -> str:
    return _REDIRECTION.format(address=html.escape(address))


async def _answer(send: Send, status: int, headers: dict[str, str], text: str) -> None:
    await send({"type": "http.response.start", "status": status, "headers": _encode_headers(HEADERS | headers)})
    await send({"type": "http.response.body", "body": text.encode()})


def serve(
    page: Callable[[], object],
    title: str,
    opened: Callable[[str], None],
    open_browser: Callable[[str], object] | None = None,
) -> None:
    """Show ``page`` until SIGINT, SIGTERM or the end of the parent.

    ``opened`` takes the address, with a token that opens it once. ``open_browser`` takes the address of a file that
    only this user can read and that leads there with a token of its own: every user of the machine can read the
    arguments of a browser's process. The file is removed when it was used.
    """
    import uvicorn
    from fastapi import FastAPI
    from nicegui import ui

    parent = os.getppid()
    listening = socket.create_server((LOOPBACK, 0))
    host = f"{LOOPBACK}:{listening.getsockname()[1]}"
    tokens = Tokens()
    app = FastAPI(openapi_url=None)
    ui.run_with(app, root=page, title=title, dark=None, show_welcome_message=False,
                reconnect_timeout=RECONNECTION_SECONDS)  # fmt: skip
    config = uvicorn.Config(Guarded(app, tokens, host), log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)

    async def run(folder: Path) -> None:
        watching = asyncio.create_task(watch(folder))
        await server.serve([listening])
        watching.cancel()

    async def watch(folder: Path) -> None:
        while not server.started:
            await asyncio.sleep(PARENT_CHECK_SECONDS / 10)
        opened(f"http://{host}/?token={tokens.issue()}")
        if open_browser is not None:
            leading = folder / "open.html"
            token = tokens.issue(lambda: leading.unlink(missing_ok=True))
            write_private(leading, _redirection(f"http://{host}/?token={token}"))
            # A browser in a terminal, or one that was stopped, does not return: the page is served meanwhile.
            Thread(target=open_browser, args=(leading.as_uri(),), daemon=True).start()
        while os.getppid() == parent:
            await asyncio.sleep(PARENT_CHECK_SECONDS)
        server.should_exit = True

    with listening, temporary_folder() as folder:
        asyncio.run(run(folder))
