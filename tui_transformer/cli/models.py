"""`models`: what `--model` can name on this computer."""

from __future__ import annotations

from pathlib import Path

from tui_transformer.cli.output import emit, note
from tui_transformer.engine.parts import readable
from tui_transformer.errors import InputError
from tui_transformer.learning.recipes import recipe
from tui_transformer.model.checkpoint import read_config
from tui_transformer.model.loading import BUILT_IN
from tui_transformer.model.local_models import LocalModel, cache_folder, local_models
from tui_transformer.text.display import cells, fit, visible

RANDOM, GIVEN = "random weights", "attention alone, of given Q, K and V"


def run() -> None:
    """A line a model: its name, where it is from, its size, and what it is or why it cannot be read."""
    listed = local_models()
    rows = [(name, "built in", "", GIVEN if name == "attention" else RANDOM) for name in BUILT_IN]
    rows += [(each.name, each.source, _size(each.folder), _about(each)) for each in listed]
    name, source, size = (max(cells(row[column]) for row in rows) for column in range(3))
    for row in rows:
        line = f"{fit(row[0], name)}  {fit(row[1], source)}  {fit(row[2], size, 'right')}  {visible(row[3])}"
        emit([line.rstrip() + "\n"])
    if not listed:
        note(f"no other model is in {visible(str(cache_folder()))} or in an installed package: name a folder")


def _size(folder: Path) -> str:
    try:
        files = [folder] if folder.is_file() else [*folder.glob("*.safetensors"), *folder.glob("*.gguf")]
        return readable(sum(path.stat().st_size for path in files if path.exists()))
    except OSError:
        return ""


def _about(listed: LocalModel) -> str:
    """A model in a line, or why it cannot be read: whatever is wrong with one, the others are listed."""
    try:
        return _described(listed)
    except InputError as error:
        return str(error).removeprefix(f"{listed.folder}/")
    except Exception as error:  # noqa: BLE001 - a file that nobody thought of is not to end the list
        return f"cannot be read: {error or type(error).__name__}"


def _described(listed: LocalModel) -> str:
    config = read_config(listed.folder)
    does = f"{recipe(listed.name).does} · " if listed.source == "trained" else ""
    return f"{does}{config.model_type}: {config.summary}"
