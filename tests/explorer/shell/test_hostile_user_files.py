"""Broken files of the user: preferences, what was used lately, and the score."""

from __future__ import annotations

from hostile import COUNTS, as_json, changed, damaged, hold
from hypothesis import strategies as st

from tui_transformer.explorer.shell.preferences import read_preferences
from tui_transformer.explorer.shell.user_files import (
    LONGEST,
    MOST,
    MOST_ASKED,
    Score,
    count_answer,
    read_score,
    recent,
    recent_path,
    remember,
    score_path,
)

PREFERENCES = b'theme = "tui-light"\n[keys]\n"step.next" = "space,j"\n"help" = "f1"\n'
PIECES = ["theme", "keys", "[[", *"='[]{}.,1\n", '"', "nan", "true", "2020-01-01", "\\u0000"]
USED = {"models": ["question", "copy"], "sentences": ["the cat", "é\u202e\n"], "vocabularies": ["english"]}
SCORE = {"right": 3, "asked": 4}


@COUNTS
def test_preferences_that_can_be_used_are_and_each_line_about_the_rest_names_the_file(tmp_path, count):
    path = tmp_path / "config.toml"

    def check(data: bytes) -> None:
        path.write_bytes(data)
        preferences = read_preferences(path)
        assert all(isinstance(key, str) for key in preferences.keys.values())
        assert preferences.theme is None or isinstance(preferences.theme, str)
        for line in preferences.problems:
            assert path.name in line
            assert len(line.splitlines()) == 1

    text = st.lists(st.sampled_from(PIECES), max_size=20).map(lambda pieces: "".join(pieces).encode())
    hold(count, check, data=st.one_of(damaged(PREFERENCES), text, st.just(b"a = " + b"[" * 5000)))


@COUNTS
def test_what_was_used_lately_is_read_as_far_as_it_can_be_and_what_is_used_next_is_kept(count):
    path = recent_path()
    path.parent.mkdir(parents=True)

    def check(data: bytes) -> None:
        path.write_bytes(data)
        for kind in ("models", "sentences", "surveys", "vocabularies"):
            assert len(recent(kind)) <= MOST
            assert all(isinstance(entry, str) and len(entry) <= LONGEST for entry in recent(kind))
        before = recent("models")
        remember("sentences", "a new one")
        assert recent("sentences")[0] == "a new one"
        assert recent("models") == before

    hold(min(count, 1000), check, data=st.one_of(changed(USED).map(as_json), damaged(as_json(USED))))


@COUNTS
def test_what_can_be_a_score_is_one_and_the_next_answer_is_counted(count):
    path = score_path()
    path.parent.mkdir(parents=True)

    def check(data: bytes) -> None:
        path.write_bytes(data)
        score = read_score()
        assert 0 <= score.right <= score.asked <= MOST_ASKED
        assert str(score).endswith("predicted")
        assert count_answer(right=True) == Score(score.right + 1, score.asked + 1)
        assert read_score() in (Score(score.right + 1, score.asked + 1), Score())

    hold(count, check, data=st.one_of(changed(SCORE).map(as_json), damaged(as_json(SCORE))))
