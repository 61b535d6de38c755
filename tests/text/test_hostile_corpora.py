"""Texts of any bytes: their lines as they are, or one line that names the file."""

from __future__ import annotations

from hostile import COUNTS, damaged, hold, read_or_refused
from hypothesis import strategies as st

from tui_transformer.text.files import read_lines

TEXT = "The waves\r\ncrashed — ‘é’ \U0001f60a\n\nagainst the shore, and on and on and on\rof the sea".encode()


@COUNTS
def test_broken_texts(tmp_path, count):
    path = tmp_path / "text.txt"

    def check(data: bytes, longest: int, chunk: int) -> None:
        path.write_bytes(data)
        lines = read_or_refused(lambda: list(read_lines([path], longest=longest, chunk=chunk)), path)
        if lines is None:
            return
        whole = data.decode().removeprefix("\ufeff")
        assert "".join(lines) == whole.replace("\r\n", "\n")
        assert all(0 < len(line.rstrip("\n")) <= max(longest, chunk) or line == "\n" for line in lines)
        assert not any("\n" in line[:-1] for line in lines)

    texts = st.one_of(damaged(TEXT), st.text(max_size=60).map(str.encode), st.binary(max_size=20))
    hold(count, check, data=texts, longest=st.integers(1, 50), chunk=st.integers(1, 50))
