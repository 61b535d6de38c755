"""The report that is left when the program itself is at fault: a file with the traceback and the versions."""

from __future__ import annotations

import datetime
import os
import platform
import tempfile
import traceback
from pathlib import Path

from tui_transformer import __version__
from tui_transformer.files import own_folders

PACKAGES = ("numpy", "textual", "plotext", "typer", "tokenizers", "safetensors")


def versions() -> dict[str, str]:
    """The versions of the program, of Python and of the packages it stands on; nothing is imported for it."""
    own = {"tui-transformer": __version__, "python": platform.python_version(), "system": platform.platform()}
    return own | {name: package_version(name) for name in PACKAGES}


def package_version(name: str) -> str:
    """The installed version of a package."""
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def write_report(error: BaseException) -> Path | None:
    """Write a report of an error, in the user's state folder or else in a temporary one.

    It holds the traceback, without the values of variables, and the versions.

    Returns:
        The file, or None where none can be written.
    """
    lines = [f"{name}: {version}" for name, version in versions().items()]
    text = "\n".join([*lines, "", *traceback.format_exception(error)])
    start = f"tui-transformer-crash-{datetime.datetime.now(datetime.UTC):%Y%m%d-%H%M%S}-"
    for own in (True, False):
        folder = own_folders().user_state_path if own else Path(tempfile.gettempdir())
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=start, suffix=".txt", dir=folder)
            with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            return Path(name)
        except OSError:
            continue
    return None


def message(error: BaseException) -> str:
    """Two lines for the user: what happened, and where the report is."""
    path = write_report(error)
    where = f"a report is in {path}" if path else "no report could be written"
    return f"the program made a mistake ({type(error).__name__}): please report it\n{where}"
