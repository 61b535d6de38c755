"""`serve`: the explorer in a browser, a process for every visitor."""

from __future__ import annotations

import dataclasses
import re
import secrets
import shlex
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import typer

from tui_transformer.cli.options import Edited, Theme
from tui_transformer.cli.output import note
from tui_transformer.cli.typer_layer import flag, option, option_name
from tui_transformer.errors import InputError, UsageError
from tui_transformer.records import dataclass

LONGEST = 7 * 24 * 60
"""Minutes of `--idle`."""


@dataclass(frozen=True, kw_only=True)
class Serve(Edited):
    """Show the explorer in a browser; on this computer alone unless --host says otherwise.

    The address that is printed has a token, without which nobody comes in. Visitors open and write files below --files
    only; without it they open none, and an export is a download. They run no code. Of your own files the explorer reads
    those of --model, --vocab and --tour. Your preferences and what you opened lately are not theirs.

    Example: tui-transformer serve --model question --port 8000

    Example: tui-transformer serve --watch --tour question
    """

    host: str = option("127.0.0.1", "Where visitors come in; 0.0.0.0 for every network.", metavar="ADDRESS")
    port: int = option(8000, "The port.", min=1, max=65535)
    url: str | None = option(None, "How visitors see it, where that is another address.", metavar="URL")
    visitors: int = option(8, "Sessions at a time, or who looks on: each session is a process.", min=1, max=1000)
    token: bool = flag("Whether nobody comes in without the secret of the address.", default=True)
    watch: bool = flag("One explorer for all: a first address leads, a second one looks on.")
    files: Path | None = option(None, "Visitors open and write files below it; none without it.", metavar="FOLDER")
    idle: float = option(30.0, "Without a key for so long a session ends; 0 for never.", metavar="MINUTES", min=0)
    tour: str | None = option(None, "Every session begins with it.", metavar="FILE|NAME")
    theme: Theme = None

    def run(self) -> None:
        if self.watch and not self.token:
            raise UsageError("--watch knows by the address who leads and who looks on: leave out --no-token")
        try:
            from tui_transformer.cli.server import LOOPBACK, BoundedServer
        except ImportError as error:
            raise InputError("serve needs the extra serve: pip install 'tui-transformer[serve]'") from error
        if self.theme is not None:
            from tui_transformer.explorer.run import check_theme

            check_theme(self.theme)
        self.options()  # what cannot be is said now, and not to every visitor
        host = f"[{self.host}]" if ":" in self.host else self.host
        url = f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{self.port}"  # noqa: S104 - what was asked for
        if self.url is not None and not re.fullmatch(r"https?://[A-Za-z0-9.\-:\[\]]+(/[A-Za-z0-9._~/\-]*)?", self.url):
            raise UsageError(f"--url: {self.url[:80]!r} is not an address such as https://lecture.example.org")
        files, url = self._folder(), url if self.url is None else self.url.rstrip("/")
        if not self.idle <= LONGEST:
            raise UsageError(f"--idle {self.idle:g}: {LONGEST:,} minutes at most, and 0 for never")
        _check_address(self.host, self.port)
        note(" ".join(self._said(files, is_local=self.host in LOOPBACK)))
        command, token = shlex.join(explorer_command(self)), secrets.token_urlsafe(32) if self.token else None
        looks_on = secrets.token_urlsafe(32) if self.watch else None
        server = BoundedServer(
            command,
            self.host,
            self.port,
            url,
            self.visitors,
            token=token,
            looks_on=looks_on,
            files=files,
            idle=self.idle * 60,
        )
        server.serve()
        if server.ended_by is not None:
            raise typer.Exit(128 + server.ended_by)

    def _said(self, files: Path | None, *, is_local: bool) -> Iterator[str]:
        """What whoever serves should know before it begins: who comes in, what visitors can do, and how it ends."""
        reach = "on this computer" if is_local else f"who reaches {self.host}:{self.port} over a network"
        if self.token:
            address = "the first address" if self.watch else "the address with its token"
            yield f"Everybody {reach} who has {address} can use the explorer, as you:"
            yield "keep it to yourself."
        else:
            yield f"There is no token: everybody {reach} can use the explorer, every user of this computer included."
        if files is None:
            yield "Visitors open no files of their choice and write none (--files FOLDER allows that below a folder):"
            yield "what they export is a download."
        else:
            yield f"Visitors open, write and replace files below {files} only, also those of other visitors."
        yield "They see the model, words and tour that you serve, compute with them on this computer, and run no code."
        idle = f"without a key for {self.idle:g} minutes it ends" if self.idle else "it never ends for being idle"
        if self.watch:
            yield f"Who has the first address leads the one session; {idle}. At most {self.visitors} with the second"
            yield "address look on: they see what is shown, and can do nothing. Ctrl+c ends all."
        else:
            yield f"Each of at most {self.visitors} visitors has a session; {idle}. Ctrl+c ends all."

    def _folder(self) -> Path | None:
        if self.files is None:
            return None
        from tui_transformer.files import expanded, is_folder

        folder = expanded(self.files)
        if not is_folder(folder):
            raise InputError(f"--files {self.files}: no such folder: make it first")
        return folder.resolve()


def explorer_command(request: Serve) -> list[str]:
    """The command of a session, an argument each: nothing that was given is read by a shell."""
    own = ("host", "port", "url", "visitors", "token", "watch", "files", "idle")  # the others are the explorer's
    words = [sys.executable, "-P", "-m", "tui_transformer"]
    for field in dataclasses.fields(request):
        value, name = getattr(request, field.name), option_name(field.name)
        if field.name in own or value == field.default:
            continue
        if isinstance(value, bool):
            words.append(name if value else name.replace("--", "--no-", 1))
        else:
            words += (f"{name}={each}" for each in (value if isinstance(value, list | tuple) else (value,)))
    return words


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
