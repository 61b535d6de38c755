"""How many words of a sentence the vocabulary does not know is said wherever one is analysed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run

SENTENCE = "where did Zorro hide the xylophone ?"
SAID = "2 of 7 words of the sentence are not in the vocabulary of question: Zorro, xylophone\n"
COMMANDS = ("answer", "heads", "links", "rollout", "lens", "ablate", "show")


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_words_are_counted_and_named_on_standard_error(run: Run, command: str) -> None:
    ended = run(command, "--text", SENTENCE)
    assert ended.code == 0
    assert SAID in ended.err
    assert SAID not in ended.out


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "show"])
def test_json_stays_json(run: Run, command: str) -> None:
    json.loads(run(command, "--text", SENTENCE, "--format", "json").out)


def test_a_trace_says_it_too(run: Run) -> None:
    assert SAID in run("trace", "--out", "a.npz", "--text", SENTENCE).err


def test_of_a_patch_both_sentences_are_counted(run: Run) -> None:
    err = run(
        "patch", "weights", "--text", "where did the map hide ?", "--from-text", "where did the xylophone hide ?"
    ).err
    assert "1 of 6 words of the other sentence is not in the vocabulary of question: xylophone" in err
    assert "of the sentence" not in err


def test_the_prompt_of_a_text_that_is_written_on_is_counted(run: Run) -> None:
    err = run("generate", "--model", "decoder", "--text", "the waves xylophone", "--max-new-tokens", "2").err
    assert "1 of 3 words of the text is not in the vocabulary of decoder: xylophone" in err


def test_what_a_decoder_has_written_is_counted(run: Run) -> None:
    err = run("answer", "--model", "encoder-decoder", "--text", "the waves", "--decoder-text", "the xylophone").err
    assert "of the decoder's text is not in the vocabulary of encoder-decoder: xylophone" in err


def test_a_sentence_of_known_words_needs_no_remark(run: Run) -> None:
    assert run("answer", "--text", "where did the old sailor hide the map ?").err == ""


def test_of_many_unknown_words_the_first_are_named(run: Run) -> None:
    err = run("answer", "--model", "encoder", "--text", "aa bb cc dd ee ff gg").err
    assert err == "7 of 7 words of the sentence are not in the vocabulary of encoder: aa, bb, cc, dd, ee, …\n"


def test_texts_that_edits_and_means_are_made_of_are_counted_together(run: Run) -> None:
    Path("means.txt").write_text("where did Zorro hide ?\nwho is Zorro ?\n\n", encoding="utf-8")
    said = "2 of 9 words of {} are not in the vocabulary of question: Zorro\n"
    known = ("ablate", "layer:encoder.0", "--text", "where did the map hide ?")
    assert run(*known, "--mean-of", "means.txt").err == said.format("means.txt")
    assert run(*known, "--edit", "0.output = mean(means.txt)").err == said.format("the texts of --edit")
    err = run(*known, "--edit", "0.output += 'the xylophone' - 'Zorro'").err
    assert "2 of 3 words of the texts of --edit are not in the vocabulary of question: xylophone, Zorro" in err
