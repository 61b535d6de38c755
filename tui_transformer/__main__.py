"""The command `tui-transformer`, and `python -m tui_transformer`; version and help are said without loading more."""

from __future__ import annotations

import os
import sys

from tui_transformer import __path__, __version__

OBJECTS = 50_000
"""More objects than before after which garbage is looked for: in the 700 of Python's own modules are always loaded, and
to find that they are none takes a tenth of a short command."""


def main() -> None:
    """Run the command line."""
    if not _is_said(sys.argv[1:]):
        import gc
        import signal

        gc.set_threshold(OBJECTS, 10, 10)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # ctrl+c meanwhile ends it without a traceback
        from tui_transformer.cli.main import main as command

        try:
            command()
        finally:
            gc.freeze()  # else Python looks through all objects once more at its end


def _is_said(arguments: list[str]) -> bool:
    """Say the version, or the help as it is where lines have 80 columns; what cannot be written the command says."""
    *command, option = arguments or [""]
    if sys.stdout is None or option not in ("--version", "--help") or (command and option == "--version"):
        return False
    try:
        text = f"tui-transformer {__version__}\n"
        if option == "--help":
            if _columns() < 80:
                return False
            with open(f"{__path__[0]}/cli/help.txt", encoding="utf-8") as page:
                first, *others = page.read().split("\f")
            pages = {"": first, **{name: text for name, _, text in (each.partition("\n") for each in others)}}
            said = None if any(" " in word for word in command) else pages.get(" ".join(command))
            if said is None:
                return False
            text = said
        sys.stdout.buffer.write(text.encode())
        sys.stdout.flush()
    except OSError:
        return False
    return True


def _columns() -> int:
    """As `shutil.get_terminal_size` says, whose import takes longer than all else here."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    return os.get_terminal_size(1).columns if sys.stdout.isatty() else 80


if __name__ == "__main__":
    main()
