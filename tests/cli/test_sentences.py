"""Several sentences at once, masks, and models with two token sequences."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pytest
from command_line import REFERENCES, Run, traced

from tui_transformer.cli import explore
from tui_transformer.explorer import run as explorer_run
from tui_transformer.explorer.run import open_session
from tui_transformer.model import Model
from tui_transformer.model.options import ModelOptions, Reading

ENCODER = ("--model", "encoder", "--vocab", "english")


def rows(run: Run, *arguments: str) -> list[str]:
    labels = run("show", "tokens", "--format", "json", *arguments).json["rows"]["labels"]
    return [label.partition(" @")[0] for label in labels]  # of words that come again, their places are said too


def test_a_sentence_has_its_begin_end_and_padding(run: Run) -> None:
    labels = rows(run, "--text", "the dog", "--bracket", "--pad-to", "6", *ENCODER)
    assert labels == ["[BOS]", "the", "dog", "[EOS]", "[PAD]", "[PAD]"]
    # one that is cut keeps its begin and end
    arguments = ("--text", "the dog bites the cat", "--cut", "--bracket", *ENCODER)
    assert rows(run, *arguments, "--max-length", "4") == ["[BOS]", "the", "dog", "[EOS]"]
    assert rows(run, *arguments, "--pad-to", "5") == ["[BOS]", "the", "dog", "bites", "[EOS]"]
    said = run("show", "tokens", *arguments, "--max-length", "4").err
    assert said == "the sentence is cut: the model reads 4 tokens, 3 are left out\n"
    both = ("--text", "the dog bites the cat", "--text", "the", "--cut", "--pad-to", "4", *ENCODER)
    assert "reads 4 tokens, 1 are left out" in run("show", "tokens", *both).err
    # padding is not counted among what is read
    both = ("--text", "the dog bites the cat", "--text", "the dog", "--bracket", "--cut", "--pad-to", "4", *ENCODER)
    assert rows(run, *both, "--item", "1") == ["[BOS]", "the", "dog", "[EOS]"]
    # one that is patched from is framed like the other
    arguments = ("patch", "0.output", "--text", "the dog bites", "--from-text", "the cat bites", "--rows", "4")
    assert "5 × 8" in run(*arguments, "--bracket", *ENCODER, code=0).out


def test_one_of_several_sentences_is_shown_with_the_numbers_of_its_batch(run: Run) -> None:
    for item, expected in (("0", ["the", "dog", "bites"]), ("1", ["the", "cat", "[PAD]"])):
        assert rows(run, "--text", "the dog bites", "--text", "the cat", "--item", item, *ENCODER) == expected
    batch = ("--ids", "1,2,3;4,5", "--model", "encoder")
    arrays = traced(run, "all", *batch, "--steps", "tokens,encoder.0.output")
    shown = run("show", "encoder.0.output", "--format", "json", "--item", "1", *batch).json
    assert arrays["tokens"].tolist()[0] == [1, 2, 3]
    assert arrays["tokens"].tolist()[1][:2] == [4, 5]
    assert arrays["padding"].astype(int).tolist() == [[1, 1, 1], [1, 1, 0]]
    np.testing.assert_allclose(shown["values"], arrays["encoder.0.output"][1], atol=1e-6)


def test_decoding_stops_at_the_end_and_leaves_padding_out(run: Run) -> None:
    coded = run("vocab", "tokens", "[BOS] the dog [EOS] [PAD] a", "--vocab", "english", "--format", "json").json
    ids = ",".join(str(token["id"]) for token in coded["tokens"])
    assert run("vocab", "decode", ids, "--vocab", "english").out == "the dog\n"
    assert run("vocab", "decode", ids, "--around", "--vocab", "english").out == "[BOS] the dog [EOS] [PAD] a\n"
    assert run("vocab", "decode", "2,4,5,3,1,4", "--vocab", "nation").out == "strong nation\n"
    assert run("vocab", "decode", "99999", "--vocab", "waves").code == 1


# Masks


LLAMA = ("--model", str(REFERENCES / "llama"), "--device", "cpu", "--dtype", "float64")
WEIGHTS = "decoder.0.self_attention.weights"
PADDED = ("--ids", "2,2,12,10,9", "--mask", "0,0,1,1,1")


def values(run: Run, *arguments: str) -> np.ndarray:
    ended = run("show", WEIGHTS, "--format", "json", *LLAMA, *arguments, code=0)
    return np.array([[cell or 0.0 for cell in row] for row in ended.json["values"]])


def test_a_padded_sentence_is_what_it_is_alone_of_a_mask_in_parts_and_of_a_text_too(run: Run) -> None:
    padded = values(run, *PADDED)
    np.testing.assert_allclose(padded[2:, 2:], values(run, "--ids", "12,10,9"), atol=1e-12)
    np.testing.assert_array_equal(values(run, *PADDED[:2], "--mask", "0 0", "--mask", "1,1,1"), padded)
    given = ("--text", "the cat sat", "--mask", "1,1,0", "--format", "json")
    ended = run("show", "encoder.0.self_attention.weights", *given, code=0)
    assert not any(row[2] for row in ended.json["values"])


def test_the_loss_of_a_padded_sentence_is_that_of_it_alone(run: Run) -> None:
    def loss(*given: str) -> float:
        found = run("ablate", "head:decoder.0.self_attention:0", "--metric", "loss", "--format", "json", *LLAMA, *given)
        assert found.json["metric"] == "loss on 2 targets"
        return found.json["value"] - found.json["change"]

    alone = loss("--ids", "12,10,9")
    assert loss(*PADDED) == pytest.approx(alone, abs=1e-9)
    assert loss("--ids", "4,5,6,7,8,9;12,10,9", "--item", "1") == pytest.approx(alone, abs=1e-9)
    scored = run("score", "--ids", "12,10,9", "--format", "json", *LLAMA).json
    assert scored["cross_entropy"] == pytest.approx(alone, abs=1e-9)


def test_a_baseline_is_the_mean_without_padding(run: Run) -> None:
    command = ("attribute", "--by", "integrated", "--baseline", "mean", "--tokens", "7", "--format", "csv", *LLAMA)
    alone, padded = (run(*command, *given).table for given in (("--ids", "12,10,9"), PADDED))
    shares = [[float(row["integrated gradient"]) for row in table] for table in (alone, padded)]
    np.testing.assert_allclose(shares[1], [0.0, 0.0, *shares[0]], atol=1e-6)


def test_a_trace_says_which_tokens_are_padding_and_is_compared_with_them(run: Run) -> None:
    arrays = traced(run, "trace", *LLAMA, *PADDED)
    assert arrays.pop("padding").tolist() == [False, False, True, True, True]
    np.savez("bare.npz", **arrays)
    ended = run("diff", "trace.npz", "trace.npz", *LLAMA)
    assert (ended.code, "padding" in ended.out) == (0, False)
    run("diff", str(REFERENCES / "llama"), "trace.npz", *LLAMA[2:], code=0)
    # a dump without a mask is compared under the one that is given
    assert run("diff", "bare.npz", *LLAMA).code == 1
    assert run("diff", "bare.npz", *LLAMA, "--mask", "0,0,1,1,1").code == 0
    # a trace without padding has no word of it
    assert "padding" not in traced(run, "without", *LLAMA, "--ids", "2,12")


def test_what_is_patched_from_or_written_on_has_the_same_mask(run: Run) -> None:
    same = ("patch", "decoder.0.output", "--from-ids", "2,2,12,10,9", *LLAMA)
    ended = run(*same, *PADDED, "--format", "json", code=0)
    assert not any(step["largest"] for step in ended.json["steps"])
    said = ("generate", *LLAMA, "--max-new-tokens", "4", "--format", "json")
    padded = run(*said, *PADDED)
    alone = run(*said, "--ids", "12,10,9")
    assert padded.code == alone.code == 0, padded.err
    tokens = [[json.loads(line).get("id") for line in ended.out.splitlines()] for ended in (padded, alone)]
    assert tokens[0] == tokens[1]


# Two token sequences


MODEL = ("--model", "encoder-decoder")
BOTH = (*MODEL, "--text", "The waves crashed", "--decoder-text", "the shore!")
CROSS = "decoder.0.cross_attention.weights"


def _trace():
    return Model.load("encoder-decoder").trace("The waves crashed", decoder_text="the shore!")


def test_every_side_has_the_words_of_its_own_sequence(run: Run) -> None:
    def first_column(step: str) -> list[str]:
        return [row[0] for row in csv.reader(io.StringIO(run("show", step, *BOTH, "--format", "csv").out))][1:]

    source, target = ["the", "waves", "crashed"], ["[UNK]", "the", "shore", "!"]
    for step in ("tokens", "embedding.output", "encoder.0.output", "decoder.0.cross_attention.key"):
        assert first_column(step) == source, step
    for step in ("decoder.tokens", "decoder.embedding.output", "decoder.0.cross_attention.query", "output.logits"):
        assert first_column(step) == target, step
    # rows are words of the decoder, columns of the source
    read = run("show", CROSS, *BOTH, "--format", "json").json
    assert read["shape"] == [8, 4, 3]
    assert read["rows"]["labels"] == ["[UNK]", "the", "shore", "!"]
    assert read["columns"]["labels"] == ["the", "waves", "crashed"]
    np.testing.assert_array_equal(np.array(read["values"], dtype=np.float32), _trace()[CROSS][0])
    arguments = (*MODEL, "--ids", "2,3", "--decoder-ids", "4,6")
    read = run("show", CROSS, *arguments, "--format", "json").json
    assert read["rows"]["labels"] == ["forcefully", "shore"]
    assert read["columns"]["labels"] == ["waves", "crashed"]
    # a cell is named by both
    first = run("show", CROSS, *BOTH, "--explain", "2,1").out.splitlines()[0]
    assert first == f"{CROSS}[0, 2, 1] · query shore · key waves"


def test_beside_a_sentence_that_is_given_there_is_the_start_token(run: Run) -> None:
    shown = run("show", "decoder.tokens", *MODEL, "--text", "the shore", "--format", "csv").out
    assert shown.splitlines() == [",decoder.tokens", "[UNK],0"]
    # beside the sample, a few words are written
    for model, words in (("encoder-decoder", "[UNK] the waves crashed"), ("dates", "[BOS] 2 @1 0 2 @3 1 -")):
        lines = run("show", "decoder.tokens", "--model", model, "--format", "csv").out.splitlines()
        assert " ".join(line.rpartition(",")[0] for line in lines[1:]) == words


def test_steps_of_both_stacks_are_listed_with_both_lengths(run: Run) -> None:
    lines = {line.split()[0]: line for line in run("show", *BOTH, "--decoder-layers", "2").out.splitlines()}
    assert "8 × 4 × 3" in lines["decoder.1.cross_attention.scores"]
    assert "8 × 3 × 3" in lines["encoder.0.self_attention.scores"]
    assert "encoder.1.output" not in lines
    assert next(iter(lines)) == "tokens"
    # a decoder text that is cut
    arguments = (*MODEL, "--max-length", "3", "--cut", "--text", "the shore", "--decoder-text", "the waves crashed")
    ended = run("show", "decoder.tokens", *arguments, "--format", "csv", code=0)
    assert len(ended.out.splitlines()) == 4
    assert "the decoder's text is cut: the model reads 3 tokens, 1 are left out" in ended.err


def test_a_trace_holds_the_steps_of_both_and_is_the_same_as_its_model(run: Run) -> None:
    arrays, expected = traced(run, "a", *BOTH), _trace()
    assert list(arrays) == list(expected.names)
    assert arrays["decoder.tokens"].tolist() == [0, 1, 6, 7]
    ended = run("diff", "a.npz", *MODEL, code=0)
    computed = [name for name in expected.names if not name.endswith("tokens") or "embedding" in name]
    said = f"same: the {len(computed)} steps that were compared are the same, as far as rounding goes\n"
    assert ended.out.endswith(said)
    assert run("diff", "a.npz", *MODEL, "--decoder-text", "the shore").code == 1
    # its decoder IDs are no input for a model of one sentence
    ended = run("diff", "a.npz", "--model", "encoder")
    assert ended.err == ""
    assert re.search(r"^not compared \(no step of this name\): .*decoder\.embedding\.tokens", ended.out, re.MULTILINE)


def test_the_explorer_begins_with_what_was_given() -> None:
    options = ModelOptions("encoder-decoder")
    assert open_session(options, "the waves", None).trace["decoder.tokens"].tolist() == [0]
    session = open_session(options, "the waves", None, decoder_text="the shore")
    assert session.trace["decoder.tokens"].tolist() == [0, 1, 6]
    cut = ModelOptions("encoder-decoder", sizes={"max_length": 3}, cut=True)
    opened = open_session(cut, "the waves", None, decoder_text="the waves crashed")
    assert opened.trace["decoder.tokens"].tolist() == [0, 1, 2]
    assert open_session(options, None, (2, 3), decoder_ids=(4,)).trace["decoder.tokens"].tolist() == [4]


def test_the_command_gives_all_sentences_to_the_explorer(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    monkeypatch.setattr(explore, "check_terminal", lambda: None)
    # a second one is refused for a model of one
    ended = run("--model", "encoder", "--decoder-text", "a", code=1)
    assert ended.err.startswith("tui-transformer: encoder reads no second sentence")
    monkeypatch.setattr(explorer_run, "run", lambda *args, **more: given.append((*args, more)) or 0)
    assert run(*BOTH).code == 0
    assert run(*MODEL, "--ids", "1,2", "--decoder-ids", "3 4").code == 0
    assert run("--text", "the dog", "--text", "the cat", "--item", "1", "--bracket").code == 0
    assert given[2][0].framing.bracket
    assert [reading for _, reading, *_ in given] == [
        Reading("The waves crashed", decoder_text="the shore!"),
        Reading(ids=(1, 2), decoder_ids=(3, 4)),
        Reading("the cat", batch=("the dog", "the cat"), item=1),
    ]


# Pairs


BERT = ("--model", str(REFERENCES / "bert"), "--device", "cpu")


def test_a_second_sentence_is_the_second_segment(run: Run) -> None:
    arguments = ("show", "embedding.segments", "--format", "json", *BERT)
    alone = run(*arguments, "--text", "the waves").json["values"]
    pair = run(*arguments, "--text", "the waves", "--text-pair", "a shore").json["values"]
    assert len({tuple(row) for row in alone}) == 1
    assert len({tuple(row) for row in pair}) == 2
    assert pair[0] == alone[0] != pair[-1]
