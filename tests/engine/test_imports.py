"""The core loads no terminal library and no GPU library."""

from __future__ import annotations

import subprocess
import sys

import pytest

CORE = ("engine", "model", "text", "views", "analysis", "guide", "report")
FORBIDDEN = ("textual", "rich", "plotext", "typer", "cupy")
LOAD_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module("tui_transformer." + sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


@pytest.mark.parametrize("folder", CORE)
def test_the_core_loads_no_terminal_library(folder):
    run = subprocess.run([sys.executable, "-c", LOAD_ALL, folder], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert "tui_transformer" in loaded
    assert not set(loaded) & set(FORBIDDEN)
