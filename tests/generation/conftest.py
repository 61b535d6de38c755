"""The stand-in for a GPU is beside the tests of the engine."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "engine"))
