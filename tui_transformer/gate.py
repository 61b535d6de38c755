"""What the visitors of a served explorer may open and write: one gate, which every file goes through.

Whoever serves says so once, in `VARIABLE` of a session's environment, and `confine` closes the gate for the rest of the
process. It cannot be gone around in Python: an audit hook sees every file that is opened, listed, made, renamed or
removed, links followed, and every program that is started. `files.py` asks as well, so that a visitor reads why.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tui_transformer.errors import InputError
from tui_transformer.records import dataclass, field

VARIABLE = "TUI_TRANSFORMER_VISITOR"
"""The variable of the environment in which a session is told its own folder and, in a line below, the visitors'."""

REDRAW, SAY, QUIT = "redraw", "say", "quit"
"""Packets of whoever serves: the page shows nothing yet, a message for the visitor, and the end."""

PROGRAM = Path(__file__).resolve().parent
GUARDED = (sys.executable, "-P", "-X", "utf8", str(PROGRAM / "text" / "guarded_child.py"))
"""The one command that is run in a visitor's name: a tokenizer within limits, which reads no file and runs nothing."""

MOST_LINKS = 10_000
"""Files of a folder whose links are followed, where the folder is one that whoever serves has named."""

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_READ = {"os.listdir": (0,), "os.scandir": (0,), "os.link": (0,)}
_WRITTEN: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.chmod", "os.chown", "os.utime"), (0,)),
    **dict.fromkeys(("os.setxattr", "os.removexattr"), (0,)),
    **dict.fromkeys(("os.link", "os.symlink"), (1,)),
    "os.rename": (0, 1),
}
"""Events of Python's audit, by the places of the paths that are read or written."""

_RUNS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty")
_SYSTEM = ("/usr", "/lib", "/lib64", "/opt", "/sys", "/proc/self", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat")
_DEVICES = ("/dev/null", "/dev/urandom", "/etc/localtime")


class RefusedError(InputError, PermissionError):
    """A visitor may not do this: to libraries a lack of permission, to people one line."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(errno.EACCES, why)
        self.what = what

    def __str__(self) -> str:
        return f"{self.what}: {self.strerror}"


@dataclass(frozen=True)
class Gate:
    """What a session may reach; links in paths are followed before they are compared.

    Attributes:
        folder: Below it visitors open and write; None where they can do neither.
        own: The session's temporary folder, which ends with it.
        given: Files and folders of the model and tour that are served: they are read.
        caches: Where libraries keep what they compile.
        system: What the program and its libraries read by themselves.
    """

    folder: Path | None
    own: Path
    given: tuple[Path, ...] = ()
    caches: tuple[Path, ...] = ()
    system: tuple[Path, ...] = field(default=(), repr=False)

    def meant(self, path: Path) -> Path:
        """Where a path leads that a visitor writes: below the folder, unless it is one that was given."""
        if path.is_absolute() or self.folder is None or _is_below(path, self.given):
            return path
        return self.folder / path

    def opens(self, path: Path) -> bool:
        """Whether a visitor may ask for a path."""
        return _is_below(path, (*self._folders, *self.given))

    def reads(self, path: str | Path) -> bool:
        """Whether the program may read there in a visitor's name."""
        return _is_below(path, (*self._folders, self.own, *self.given, *self.system, *self.caches))

    def writes(self, path: str | Path) -> bool:
        """Whether the program may write there in a visitor's name."""
        return _is_below(path, (*self._folders, self.own, *self.caches))

    def named(self, path: Path) -> Path:
        """A path as a visitor named it: what is to be a download has a name alone."""
        return Path(path.name) if _is_below(path, (self.own,)) else path

    def refused(self, what: str | Path, does: str = "open") -> RefusedError:
        """What a visitor reads who may not open or write something."""
        if self.folder is None:
            return RefusedError(str(what), f"visitors {does} no files here, as it is served without --files")
        return RefusedError(str(what), f"visitors {does} files below {self.folder} only")

    @property
    def _folders(self) -> tuple[Path, ...]:
        return () if self.folder is None else (self.folder,)


_closed: list[Gate] = []
"""The gate of this process, once it is closed."""


def gate() -> Gate | None:
    """The gate of a visitor's session; None for everybody else."""
    return _closed[-1] if _closed else None


def check_may_run(what: str) -> None:
    """Raise RefusedError where a visitor asks for somebody's code to be run."""
    if gate() is not None:
        raise RefusedError(what, "visitors run no code here")


def described(folder: Path | None, own: Path) -> str:
    """What `VARIABLE` says."""
    return f"{own}\n{folder or ''}"


def confine(given: Iterable[Path], caches: Iterable[Path] = ()) -> None:
    """Close the gate for the rest of this process, where the environment says that it is a visitor's.

    Args:
        given: What is served: files, and folders with what their links lead to.
        caches: Where libraries keep what they compile.

    Raises:
        InputError: The environment says nothing that could be meant.
    """
    import tempfile

    told = os.environ.get(VARIABLE)
    if told is None or _closed:
        return
    own, _, folder = told.partition("\n")
    if not Path(own).is_dir():
        raise InputError(f"{VARIABLE}: names no temporary folder of a visitor")
    tempfile.tempdir = own
    places = tuple(_with_links(given)), tuple(each.resolve() for each in caches), tuple(_system())
    _closed.append(Gate(Path(folder).resolve() if folder else None, Path(own).resolve(), *places))
    sys.addaudithook(_audit)


def _with_links(given: Iterable[Path]) -> Iterable[Path]:
    """What was given, and where links in it lead: a cache of models keeps the files themselves elsewhere."""
    for each in given:
        yield each.resolve()
        below = zip(each.rglob("*"), range(MOST_LINKS), strict=False) if each.is_dir() else ()
        yield from (path.resolve() for path, _ in below if path.is_symlink())


def _system() -> Iterable[Path]:
    """Where Python, its packages, the system's libraries and the program are."""
    import mimetypes
    import sysconfig

    from platformdirs import user_config_path

    asks_for = user_config_path() / "user-dirs.dirs"  # Textual looks there where downloads go
    python = (*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix, *filter(None, sys.path))
    found = (os.environ.get("CUDA_PATH") or os.devnull, str(PROGRAM), str(asks_for))
    every = (*python, *found, *_SYSTEM, *_DEVICES, *map(str, mimetypes.knownfiles))
    return {Path(os.path.realpath(each)) for each in every}


def _is_below(path: str | Path, roots: Iterable[Path]) -> bool:
    """Whether a path is one of some folders or in it, once all links and `..` are followed."""
    try:
        whole = os.path.realpath(os.path.abspath(path))  # noqa: PTH100 - a path of any kind, and fast
    except (OSError, ValueError):
        return False
    return any(whole == str(root) or whole.startswith(f"{str(root).rstrip(os.sep)}{os.sep}") for root in roots)


def _audit(event: str, given: tuple[Any, ...]) -> None:
    """Look at what Python is about to do; raises RefusedError."""
    closed = gate()
    if closed is None:
        return
    if event == "open":
        path, _, flags = given
        _check(closed, path, writes=bool((flags or 0) & _WRITES))
    elif event in _RUNS:
        command = given[1] if event == "subprocess.Popen" else None
        if not isinstance(command, list | tuple) or tuple(command[: len(GUARDED)]) != GUARDED:
            raise RefusedError("running a program", "visitors run none")
    for table, writes in ((_READ, False), (_WRITTEN, True)):
        for place in table.get(event, ()):
            _check(closed, given[place], writes=writes)


def _check(closed: Gate, path: Any, *, writes: bool) -> None:
    if isinstance(path, int):  # a file that is open
        return
    name = os.fsdecode("." if path is None else path)
    if name == os.devnull:
        return
    if not (closed.writes(name) if writes else closed.reads(name)):
        raise closed.refused(name, "write" if writes else "open")
