"""The models that come with the program, a folder each, and what was measured of them.

`python -m tui_transformer.trained NAME…` trains them again by their recipes and puts them here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ABOUT = "about.toml"


@cache
def about(name: str) -> Mapping[str, Any]:
    """What was measured of a model when it was made; empty where there is none."""
    path = HERE / name / ABOUT
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
