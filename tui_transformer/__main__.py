"""`python -m tui_transformer` is the command `tui-transformer`."""

from __future__ import annotations

from tui_transformer.cli.main import main

if __name__ == "__main__":
    main()
