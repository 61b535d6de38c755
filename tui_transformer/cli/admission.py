"""Who may come in to a served explorer: the token of its address, the name that it is called by, and its own page."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from urllib.parse import urlsplit

from aiohttp import web

LOOPBACK = ("127.0.0.1", "localhost", "::1")
TOKEN = "token"  # noqa: S105 - the name of what the address has
WITHOUT_TOKEN = "this address needs its token: open the one that the server printed at its start"  # noqa: S105
OTHER_NAME = "the server is not called by this name: whoever serves gives it with --url"
OTHER_PAGE = "this page may not open a session here"

HEADERS = {
    "Content-Security-Policy": "; ".join(
        (
            "default-src 'self'",
            "img-src 'self' data:",
            "style-src 'self' 'unsafe-inline'",  # the terminal of the page writes its own
            "object-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}
"""Of every answer: the page loads nothing from elsewhere, is in no other page, and its address is told to nobody."""


def new_token() -> str:
    """A secret that nobody guesses."""
    return secrets.token_urlsafe(32)


class Admission:
    """Looks at every request before it is answered."""

    def __init__(self, token: str | None, host: str, port: int, url: str) -> None:
        """Admit whoever has a token; everybody where it is None.

        Args:
            token: The secret of the address.
            host: The address that is listened at.
            port: Its port.
            url: How visitors see the address.
        """
        self._token, self._seen = token, urlsplit(url)
        self._cookie = f"tui-transformer-{port}"
        self._loopback = host in LOOPBACK
        named = {host, self._seen.hostname or "", *LOOPBACK}
        self._names = named if self._loopback else {*named, socket.gethostname().lower(), socket.getfqdn().lower()}

    def check(self, request: web.Request) -> None:
        """Refuse who came by another name, or has no token.

        Raises:
            HTTPForbidden: The request is not answered.
        """
        if not self._is_called(request.headers.get("Host", "")):
            raise web.HTTPForbidden(text=OTHER_NAME)
        if not self._has_token(request):
            raise web.HTTPForbidden(text=WITHOUT_TOKEN)

    def check_page(self, request: web.Request) -> None:
        """Refuse a connection from another page, which could steer the explorer unseen.

        Raises:
            HTTPForbidden: The request is not answered.
        """
        origin = request.headers.get("Origin")
        own = (request.headers.get("Host", "").lower(), self._seen.netloc.lower())
        if origin is not None and origin.lower().partition("://")[2] not in own:
            raise web.HTTPForbidden(text=OTHER_PAGE)

    def remember(self, request: web.Request, response: web.Response) -> None:
        """Have the browser bring the token from now on, with requests of the page itself alone."""
        if self._token is not None and self._is_right(request.query.get(TOKEN)):
            secure = self._seen.scheme == "https"
            path = f"{self._seen.path}/"
            response.set_cookie(self._cookie, self._token, path=path, httponly=True, samesite="Strict", secure=secure)

    def _has_token(self, request: web.Request) -> bool:
        given = (request.query.get(TOKEN), request.cookies.get(self._cookie))
        return self._token is None or any(map(self._is_right, given))

    def _is_right(self, given: str | None) -> bool:
        """Whether a token is the right one; it takes as long for any that is wrong."""
        return given is not None and hmac.compare_digest(given.encode(errors="replace"), (self._token or "").encode())

    def _is_called(self, host: str) -> bool:
        """Whether a request names this server: a page elsewhere can give its own name the address of this computer."""
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            return False
        return name in self._names or (not self._loopback and _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
