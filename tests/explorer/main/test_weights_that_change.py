"""A file of weights that is cut, written over, replaced or deleted while the explorer has it open."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from driving import NARROW, WIDE, exploring
from reference import REFERENCES

from tui_transformer.explorer.run import open_session
from tui_transformer.model.options import ModelOptions
from tui_transformer.session.session import Session

READ = "decoder.1.self_attention.norm"
"""The last step of which every weight is read."""


def opened(folder: Path) -> Session:
    """A session whose first layer is read and whose second is not."""
    shutil.copytree(REFERENCES / "gpt2", folder)
    session = open_session(ModelOptions(model=str(folder)), None, (1, 2, 3))
    assert session.trace["decoder.1.self_attention.norm"].shape == (3, 32)
    return session


def cut(path: Path) -> None:
    os.truncate(path, 3000)


def written_over(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"\x00" * 100)
    os.utime(path, ns=(1, 1))


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"something else")
    other.replace(path)


@pytest.mark.parametrize(
    ("change", "said"), [(cut, "cut while it was open"), (written_over, "written to while it was open")]
)
async def test_the_explorer_says_so_and_stays_where_everything_is_read(change, said, tmp_path: Path):
    folder = tmp_path / "model"
    session = opened(folder)
    change(folder / "model.safetensors")
    async with exploring(WIDE, session=session, whole=True, at=READ) as explorer:
        place = explorer.place
        for keys in (["space"], ["space"], ["0", "space"]):
            await explorer.press(*keys)
            assert explorer.stop == READ
            assert explorer.place == place
            assert explorer.scene.view.name == READ
        await explorer.resize(*NARROW)
        await explorer.press("space")
        assert explorer.stop == READ
        assert explorer.scene.view.name == READ
        line = explorer.app.messages.text.split("\n")[0]
        lost = "tensor transformer.h.1.attn.c_attn.weight is lost: copy the file again and open it"
        assert f"{folder}/model.safetensors: {said}, {lost}" in line
        await explorer.press("backspace")
        assert explorer.stop != READ
        await explorer.prompt("e", "1.5")
        assert explorer.session.edits, "what is read can be worked with"
        await explorer.press("u", "}", "}", "}")
        assert explorer.stop in explorer.session.stops


@pytest.mark.parametrize("change", [replaced, Path.unlink])
async def test_another_file_under_its_name_or_none_changes_nothing(change: Callable[[Path], None], tmp_path: Path):
    session = opened(tmp_path / "model")
    change(tmp_path / "model" / "model.safetensors")
    async with exploring(WIDE, session=session, whole=True, at="output.probabilities") as explorer:
        assert "model.safetensors" not in explorer.app.messages.text
