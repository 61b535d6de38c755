"""The command `tui-transformer`, and `python -m tui_transformer`; its version alone is said without loading more."""

from __future__ import annotations

import sys

from tui_transformer import __version__


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:
        try:
            sys.stdout.write(f"tui-transformer {__version__}\n")
            sys.stdout.flush()
        except OSError:
            pass  # the command says that it cannot be written
        else:
            return
    from tui_transformer.cli.main import main as command

    command()


if __name__ == "__main__":
    main()
