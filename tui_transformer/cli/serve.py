"""`serve`: the explorer in a browser, a process for every visitor."""

from __future__ import annotations

import dataclasses
import re
import shlex
import socket
import sys
from collections.abc import Iterator
from typing import Any

from tui_transformer.cli.commands.serve import Request
from tui_transformer.cli.options import Edited
from tui_transformer.cli.output import note
from tui_transformer.cli.parsing import written
from tui_transformer.cli.themes import check_theme
from tui_transformer.errors import InputError, UsageError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
OWN = ("host", "port", "url", "visitors")
"""Options of the command itself; the others are the explorer's."""


def run(request: Request) -> None:
    """Serve until it is ended.

    Raises:
        InputError: The library for it is not installed, or the address cannot be used.
    """
    try:
        from tui_transformer.cli.server import BoundedServer
    except ImportError as error:
        raise InputError("serve needs the extra serve: pip install 'tui-transformer[serve]'") from error
    if request.theme is not None:
        check_theme(request.theme)
    request.options()  # what cannot be is said now, and not to every visitor
    url = _url(request)
    _check_address(request.host, request.port)
    if request.host not in LOOPBACK:
        note(
            f"everyone who reaches {request.host}:{request.port} can use the explorer, and the files that you can read"
        )
    command = shlex.join(explorer_command(request))
    BoundedServer(command, request.host, request.port, url, request.visitors).serve()


def explorer_command(request: Request) -> list[str]:
    """The command of a session, an argument each: nothing that was given is read by a shell."""
    return [sys.executable, "-P", "-m", "tui_transformer", *_arguments(request)]


def _arguments(request: Request) -> Iterator[str]:
    """The options that were given, as they are given to the explorer."""
    for field in dataclasses.fields(request):
        value = getattr(request, field.name)
        if field.name not in OWN and value != field.default:
            yield from _option(
                field.name, value, known=field.name in {each.name for each in dataclasses.fields(Edited)}
            )


def _option(name: str, value: Any, *, known: bool) -> Iterator[str]:
    option = written(name) if known else f"--{name}"
    if isinstance(value, bool):
        yield option if value else option.replace("--", "--no-", 1)
    else:
        for each in value if isinstance(value, list | tuple) else (value,):
            yield f"{option}={each}"


def _url(request: Request) -> str:
    """The address that the page's own links have."""
    if request.url is None:
        host = f"[{request.host}]" if ":" in request.host else request.host
        return f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{request.port}"  # noqa: S104 - what was asked for
    if not re.fullmatch(r"https?://[A-Za-z0-9.\-:\[\]]+(/[A-Za-z0-9._~/\-]*)?", request.url):
        raise UsageError(f"--url: {request.url[:80]!r} is not an address such as https://lecture.example.org")
    return request.url.rstrip("/")


def _check_address(host: str, port: int) -> None:
    """Raise InputError where nobody can be waited for."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "no such address"
        raise InputError(f"--host {host[:80]} --port {port}: {reason}: choose another") from error
