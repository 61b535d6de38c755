"""Broken preferences: what can be used is, and each line about the rest names the file."""

from __future__ import annotations

from hostile import COUNTS, damaged, hold
from hypothesis import strategies as st

from tui_transformer.explorer.shell.preferences import read_preferences

WHOLE = b'theme = "tui-light"\n[keys]\n"step.next" = "space,j"\n"help" = "f1"\n'
PIECES = ["theme", "keys", "[[", *"='[]{}.,1\n", '"', "nan", "true", "2020-01-01", "\\u0000"]


@COUNTS
def test_broken_preferences(tmp_path, count):
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
    hold(count, check, data=st.one_of(damaged(WHOLE), text, st.just(b"a = " + b"[" * 5000)))
