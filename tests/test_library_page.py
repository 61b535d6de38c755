"""The page on the library: every example runs, and the public names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tui_transformer

PAGE = Path(tui_transformer.__file__).parent / "LIBRARY.md"
SECTIONS = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda text: text.split("\n", 1)[0].strip("# ").replace(" ", "-"))
def test_the_examples_of_a_section_run_one_after_another(section: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert blocks
    exec("\n".join(blocks), {})  # noqa: S102 - the project's own text
    printed = capsys.readouterr().out
    assert bool(printed) == ("print(" in section)
    assert "nan" not in printed


def test_every_public_name_is_there() -> None:
    for name in tui_transformer.__all__:
        assert getattr(tui_transformer, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = tui_transformer.Nothing
