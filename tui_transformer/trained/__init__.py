"""The models that come with the program, a folder each, and what was measured of them.

`python -m tui_transformer.trained NAME…` trains them again by their recipes and puts them here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tui_transformer.files import read_toml
from tui_transformer.model.local_models import ABOUT

HERE = Path(__file__).resolve().parent
FEATURES = "features"
"""The folder of a model's dictionary of features, where it has one, in its own."""

LARGEST = 1 << 16


@cache
def about(name: str, folder: Path = HERE) -> Mapping[str, Any]:
    """Measurements of a model from when it was made, among those in a folder; empty where there is none.

    Raises:
        InputError: The file is damaged.
    """
    path = folder / name / ABOUT
    return read_toml(path, LARGEST) if path.is_file() else {}
