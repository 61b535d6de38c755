"""A broken file of what was used lately: what can be read of it is, and what is used next is kept all the same."""

from __future__ import annotations

from hostile import COUNTS, as_json, changed, damaged, hold
from hypothesis import strategies as st

from tui_transformer.explorer.shell.user_files import LONGEST, MOST, recent, recent_path, remember

WHOLE = {"models": ["question", "copy"], "sentences": ["the cat", "é\u202e\n"], "vocabularies": ["english"]}


@COUNTS
def test_broken_files(count):
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

    hold(min(count, 1000), check, data=st.one_of(changed(WHOLE).map(as_json), damaged(as_json(WHOLE))))
