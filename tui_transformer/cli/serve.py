"""`serve`: the explorer in a browser, a process for every visitor."""

from __future__ import annotations

import dataclasses
import re
import shlex
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tui_transformer.cli.commands.serve import Request
from tui_transformer.cli.options import Edited
from tui_transformer.cli.output import note
from tui_transformer.cli.parsing import written
from tui_transformer.cli.terminal import check_theme
from tui_transformer.errors import InputError, UsageError
from tui_transformer.files import expanded, is_folder

LONGEST = 7 * 24 * 60
"""Minutes of `--idle`."""

OWN = ("host", "port", "url", "visitors", "token", "files", "idle")
"""Options of the command itself; the others are the explorer's."""


def run(request: Request) -> None:
    """Serve until it is ended.

    Raises:
        InputError: The library for it is not installed, or the address cannot be used.
    """
    try:
        from tui_transformer.cli.server import BoundedServer
        from tui_transformer.cli.visit import LOOPBACK, new_token
    except ImportError as error:
        raise InputError("serve needs the extra serve: pip install 'tui-transformer[serve]'") from error
    if request.theme is not None:
        check_theme(request.theme)
    request.options()  # what cannot be is said now, and not to every visitor
    url, files = _url(request), _folder(request.files)
    if not request.idle <= LONGEST:
        raise UsageError(f"--idle {request.idle:g}: {LONGEST:,} minutes at most, and 0 for never")
    _check_address(request.host, request.port)
    note(" ".join(_said(request, files, is_local=request.host in LOOPBACK)))
    command, token = shlex.join(explorer_command(request)), new_token() if request.token else None
    server = BoundedServer(
        command, request.host, request.port, url, request.visitors, token=token, files=files, idle=request.idle * 60
    )
    server.serve()


def _said(request: Request, files: Path | None, *, is_local: bool) -> Iterator[str]:
    """What whoever serves should know before it begins: who comes in, what visitors can do, and how it ends."""
    reach = "on this computer" if is_local else f"who reaches {request.host}:{request.port} over a network"
    if request.token:
        yield f"Everybody {reach} who has the address with its token can use the explorer, as you: keep it to yourself."
    else:
        yield f"There is no token: everybody {reach} can use the explorer, every user of this computer included."
    if files is None:
        yield "Visitors open no files of their choice and write none (--files FOLDER allows that below a folder):"
        yield "what they export is a download."
    else:
        yield f"Visitors open, write and replace files below {files} only, also those of other visitors."
    yield "They see the model, words and tour that you serve, compute with them on this computer, and run no code."
    idle = f"without a key for {request.idle:g} minutes it ends" if request.idle else "it never ends for being idle"
    yield f"Each of at most {request.visitors} visitors has a session; {idle}. Ctrl+c ends all."


def _folder(files: Path | None) -> Path | None:
    """The folder of the visitors, whole.

    Raises:
        InputError: It is no folder.
    """
    if files is None:
        return None
    folder = expanded(files)
    if not is_folder(folder):
        raise InputError(f"--files {files}: no such folder: make it first")
    return folder.resolve()


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
