"""A broken file of the score: what can be a score is one, and the next answer is counted."""

from __future__ import annotations

from hostile import COUNTS, as_json, changed, damaged, hold
from hypothesis import strategies as st

from tui_transformer.explorer.shell.user_files import MOST_ASKED as MOST
from tui_transformer.explorer.shell.user_files import Score, keep_score, read_score, score_path

WHOLE = {"right": 3, "asked": 4}


@COUNTS
def test_broken_scores(count):
    path = score_path()
    path.parent.mkdir(parents=True)

    def check(data: bytes) -> None:
        path.write_bytes(data)
        score = read_score()
        assert 0 <= score.right <= score.asked <= MOST
        assert str(score).endswith("predicted")
        keep_score(score.and_then(right=True))
        assert read_score() in (score.and_then(right=True), Score())

    hold(count, check, data=st.one_of(changed(WHOLE).map(as_json), damaged(as_json(WHOLE))))
