"""Broken texts of a translation and of a trained model: what cannot be read is English, or one line."""

from __future__ import annotations

import shutil

import pytest
from hostile import COUNTS, damaged, hold, read_or_refused

from tui_transformer import trained
from tui_transformer.guide import texts


@pytest.fixture
def translated(tmp_path):
    """The folder of a second language, whose files are those of English."""
    shutil.copytree(texts.ROOT / "en", tmp_path / "en")
    shutil.copytree(texts.ROOT / "en", tmp_path / "xx")
    yield tmp_path / "xx"
    forget()


def forget() -> None:
    """Texts are kept once they are read."""
    for member in vars(texts).values():
        if hasattr(member, "cache_clear"):
            member.cache_clear()


@COUNTS
@pytest.mark.parametrize("name", ["steps.toml", "tours/encoder.toml", "tours/copy.toml", "help/general.md"])
def test_broken_translations_are_english(translated, name, count):
    path = translated / name
    tour = path.stem if name.startswith("tours") else "encoder"
    wanted = [stop.step for stop in texts.tour(tour)]

    def check(data: bytes) -> None:
        forget()
        path.write_bytes(data)
        assert [stop.step for stop in texts.tour(tour, "xx", translated.parent)] == wanted
        assert all(stop.title and stop.text for stop in texts.tour(tour, "xx", translated.parent))
        assert texts.step_text("encoder.0.self_attention.scores", "xx", translated.parent).title
        assert texts.help_text("general", "xx", translated.parent).strip()

    hold(min(count, 1000), check, data=damaged(path.read_bytes()))


@COUNTS
def test_broken_facts_of_a_trained_model(tmp_path, count):
    whole = (trained.HERE / "copy" / trained.ABOUT).read_bytes()
    (tmp_path / "copy").mkdir()
    path = tmp_path / "copy" / trained.ABOUT

    def check(data: bytes) -> None:
        trained.about.cache_clear()
        path.write_bytes(data)
        facts = read_or_refused(lambda: trained.about("copy", tmp_path), path)
        assert facts is None or isinstance(facts, dict)

    hold(count, check, data=damaged(whole))
    trained.about.cache_clear()
