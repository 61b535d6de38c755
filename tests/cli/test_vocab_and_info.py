from __future__ import annotations

import json
import sys
from pathlib import Path

from command_line import Run
from reference import REFERENCES

from tui_transformer.text.vocabulary import built_in_vocabularies


def test_every_built_in_vocabulary_is_listed(run: Run) -> None:
    lines = run("vocab", "list").out.splitlines()
    assert [line.split()[0] for line in lines] == list(built_in_vocabularies())


def test_check_counts_words_repetitions_and_special_words(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("[PAD] a b a \x1b[2J\n", encoding="utf-8")
    ended = run("vocab", "check", "./mine.txt")
    facts = dict(line.split(maxsplit=1) for line in ended.out.splitlines())
    assert facts["entries"] == "5"
    assert facts["repeated"].startswith("1")
    assert facts["special"] == "[UNK] [PAD]"
    assert facts["padding"] == "[PAD] 1"
    assert "\x1b" not in ended.out


def test_show_gives_a_range_of_words_and_says_how_many_follow(run: Run) -> None:
    ended = run("vocab", "show", "waves", "--from", "2", "--count", "2")
    assert ended.out == "2  waves\n3  crashed\n"
    assert "4 more" in ended.err


def test_search_puts_beginnings_first(run: Run) -> None:
    assert run("vocab", "search", "SH").out == "6  shore\n3  crashed\n"


def test_tokens_gives_ids_places_unknown_words_and_the_text_back(run: Run) -> None:
    lines = run("vocab", "tokens", "The zebra!").out.splitlines()
    assert [line.split() for line in lines[1:4]] == [
        ["1", "the", "0–3"],
        ["0", "zebra", "4–9", "unknown"],
        ["7", "!", "9–10"],
    ]
    assert lines[-1] == "the [UNK]!"


def test_tokens_as_json_are_ids_tokens_and_places_in_characters(run: Run) -> None:
    report = json.loads(run("vocab", "tokens", "Thé zebra!", "--format", "json").out)
    assert list(report) == ["tokens"]
    assert report["tokens"][1:] == [
        {"id": 0, "token": "[UNK]", "start": 4, "end": 9},
        {"id": 7, "token": "!", "start": 9, "end": 10},
    ]


def test_what_a_tokenizer_adds_can_be_left_out(run: Run) -> None:
    roberta = str(REFERENCES / "roberta" / "tokenizer.json")
    whole, own = (
        json.loads(run("vocab", "tokens", "a cat", "--vocab", roberta, "--format", "json", *more).out)["tokens"]
        for more in ((), ("--no-special",))
    )
    assert own == whole[1:-1]
    assert [(each["start"], each["end"]) for each in (whole[0], whole[-1])] == [(0, 0), (5, 5)]
    nothing = run("vocab", "tokens", "", "--vocab", roberta, "--format", "json", "--no-special")
    assert json.loads(nothing.out) == {"tokens": []}


def test_info_says_what_is_used_and_why(run: Run) -> None:
    facts = json.loads(run("info", "--json", "--device", "cpu").out)
    assert facts["device"] == "cpu (NumPy)"
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert "waves" in facts["vocabularies"]
    text = run("info", "--device", "cpu").out
    assert all(name in text for name in facts)
