"""Which model is meant where none is named, and the words of a sentence that it does not know."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Run, traced
from safetensors.numpy import load_file, save_file

from tui_transformer.cli.generate import usual
from tui_transformer.cli.options import SIZES, Flags
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model

READ = {"text": "a", "ids": "4,5", "cut": True, "device": "cpu", "dtype": "float64", "budget": "0"}
"""Options for the text of a model, and for its computation."""


def test_what_a_model_reads_and_how_it_is_computed_leaves_the_trained_one() -> None:
    for name, value in READ.items():
        assert Flags().options().model == "question"
        assert Flags(**{name: value}).options().model == "question"


def test_what_only_random_weights_have_means_the_built_in_encoder_and_what_is_named_is_taken() -> None:
    for name, value in {**dict.fromkeys(SIZES, 2), "vocab": "dog", "seed": 3}.items():
        assert Flags(**{name: value}).options().model == "encoder"
        assert Flags(**{name: value}, text="a dog").options().model == "encoder"
    assert Flags(model="decoder", layers=2).options().model == "decoder"
    assert Flags(model="story", text="a").options().model == "story"
    # what writes a text on
    assert (usual(Flags()), usual(Flags(text="a")), usual(Flags(seed=3))) == ("story", "story", "story")
    assert (usual(Flags(layers=2)), usual(Flags(vocab="dog"))) == ("decoder", "decoder")


def test_a_command_answers_with_the_trained_model_and_the_help_says_which(run: Run) -> None:
    said = ("--text", "where did the old sailor hide the map ?", "--top", "1", "--format", "json")
    assert [row["word"] for row in run("answer", *said).json] == ["question"]
    for command in ("show", "answer", "generate"):
        assert Flags.usual == "question"
        said = " ".join(run(command, "--help").out.split())
        assert "default: question, in generate story; with a size, --vocab or --seed encoder" in said


# How many words of a sentence the vocabulary does not know is said wherever one is analysed


SENTENCE = "where did Zorro hide the xylophone ?"
SAID = "2 of 7 words of the sentence are not in the vocabulary of question: Zorro, xylophone\n"


def test_unknown_words_are_counted_and_named_on_standard_error(run: Run) -> None:
    for command in ("answer", "heads", "links", "rollout", "lens", "ablate", "show"):
        ended = run(command, "--text", SENTENCE, code=0)
        assert SAID in ended.err
        assert SAID not in ended.out
        assert command == "show" or run(command, "--text", SENTENCE, "--format", "json").json
    assert SAID in run("trace", "--out", "a.npz", "--text", SENTENCE).err
    # of known words nothing is said, of many the first are named
    assert run("answer", "--text", "where did the old sailor hide the map ?").err == ""
    err = run("answer", "--model", "encoder", "--text", "aa bb cc dd ee ff gg").err
    assert err == "7 of 7 words of the sentence are not in the vocabulary of encoder: aa, bb, cc, dd, ee, …\n"


def test_of_a_patch_both_sentences_are_counted_and_of_others_what_is_written_on(run: Run) -> None:
    texts = ("--text", "where did the map hide ?", "--from-text", "where did the xylophone hide ?")
    err = run("patch", "weights", *texts).err
    assert "1 of 6 words of the other sentence is not in the vocabulary of question: xylophone" in err
    assert "of the sentence" not in err
    # a prompt
    err = run("generate", "--model", "decoder", "--text", "the waves xylophone", "--max-new-tokens", "2").err
    assert "1 of 3 words of the text is not in the vocabulary of decoder: xylophone" in err
    # what a decoder has written
    err = run("answer", "--model", "encoder-decoder", "--text", "the waves", "--decoder-text", "the xylophone").err
    assert "of the decoder's text is not in the vocabulary of encoder-decoder: xylophone" in err


def test_texts_that_edits_and_means_are_made_of_are_counted_together(run: Run) -> None:
    Path("means.txt").write_text("where did Zorro hide ?\nwho is Zorro ?\n\n", encoding="utf-8")
    said = "2 of 9 words of {} are not in the vocabulary of question: Zorro\n"
    known = ("ablate", "layer:encoder.0", "--text", "where did the map hide ?")
    assert run(*known, "--mean-of", "means.txt").err == said.format("means.txt")
    assert run(*known, "--edit", "0.output = mean(means.txt)").err == said.format("the texts of --edit")
    err = run(*known, "--edit", "0.output += 'the xylophone' - 'Zorro'").err
    assert "2 of 3 words of the texts of --edit are not in the vocabulary of question: xylophone, Zorro" in err


ZEBRA = ("--model", "encoder", "--text", "the zebra crashed", "--dtype", "float64")


def test_an_unknown_word_is_the_vector_0_where_that_is_asked_for(run: Run) -> None:
    ended = run("show", "embedding.tokens", *ZEBRA, "--unknown", "zero", "--format", "json")
    assert ended.err.endswith("encoder: zebra; their vectors are 0\n")
    rows = np.array(ended.json["values"])
    usual = np.array(run("show", "embedding.tokens", *ZEBRA, "--format", "json").json["values"])
    assert np.abs(usual[1]).min() > 0
    np.testing.assert_array_equal(rows, [usual[0], np.zeros(8), usual[2]])
    # its position is added to it
    steps = ("embedding.positions", "embedding.output")
    shown = [run("show", step, *ZEBRA, "--unknown", "zero", "--format", "json").json["values"] for step in steps]
    assert shown[0][1] == shown[1][1]
    assert shown[0][0] != shown[1][0]
    # a cell says why it is 0
    explained = run("show", "embedding.tokens", *ZEBRA, "--unknown", "zero", "--explain", "1,3").out
    assert "an unknown word: its vector is 0" in explained
    assert "· 0 = 0" in explained
    assert "difference  0" in explained
    known = run("show", "embedding.tokens", *ZEBRA, "--unknown", "zero", "--explain", "0,3").out
    assert "unknown word" not in known
    # known words are computed alike
    known = ("--model", "encoder", "--text", "the waves crashed", "--format", "json")
    for step in ("output.logits", "embedding.tokens"):
        shown, zero = (run("show", step, *known, *more).json["values"] for more in ((), ("--unknown", "zero")))
        assert shown == zero


def test_a_trace_has_it_and_its_gradient_does_not_reach_the_table(run: Run) -> None:
    arrays = traced(run, "zero", *ZEBRA, "--unknown", "zero", "--gradients", "--targets", "1,2,3")
    assert np.abs(arrays["embedding.tokens"]).max(axis=1).tolist()[1] == 0
    table = arrays["gradient/embedding.tokens.weight"]
    assert (np.abs(table[[1, 3]]).max() > 0, np.abs(table[0]).max()) == (True, 0)


def test_an_unknown_word_is_a_mistake_where_that_is_asked_for(run: Run) -> None:
    for command in (("show", "tokens"), ("answer",), ("trace", "--out", "a.npz")):
        ended = run(*command, *ZEBRA, "--unknown", "error")
        assert (ended.code, ended.out) == (1, "")
        assert "1 of 3 words of the text is not in the vocabulary of encoder: zebra; --unknown token" in ended.err
    assert run("show", "tokens", "--model", "encoder", "--text", "the waves", "--unknown", "error").code == 0


def test_generation_and_both_sequences_follow_it() -> None:
    model = Model.load("encoder-decoder", unknown="zero")
    trace = model.trace("the zebra", decoder_text="zebra waves")
    assert not trace["decoder.embedding.tokens"][1].any()
    assert not trace["embedding.tokens"][1].any()
    assert trace["decoder.embedding.tokens"][2].any()
    again = model.changed(d_model=16)
    assert (again.unknown, again.trace("zebra")["embedding.tokens"].any()) == ("zero", np.False_)
    # what cannot be is refused
    with pytest.raises(UsageError, match="no word is unknown to attention"):
        Model.load("attention", unknown="zero")
    with pytest.raises(UsageError, match="unknown words are read as token, zero, error"):
        Model.load("encoder", unknown="nothing")
    with pytest.raises(InputError, match="not in the vocabulary of encoder-decoder: zebra"):
        Model.load("encoder-decoder", unknown="error").encode_target("zebra waves")


def test_the_explorer_reads_them_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("go embedding.tokens\ndown\nexplain\n"))
    ended = run("--plain", *ZEBRA, "--unknown", "zero")
    assert "an unknown word: its vector is 0" in ended.out or "· 0 = 0" in ended.out, ended.out


# Tensors that nothing reads


def test_one_line_names_them_and_none_a_file_that_is_read_whole(run: Run, tmp_path: Path) -> None:
    shutil.copytree(REFERENCES / "llama", tmp_path / "model")
    path = tmp_path / "model" / "model.safetensors"
    save_file(load_file(path) | {"extra\x1b[31m": np.ones(2, "f4")}, path)
    given = ("--model", str(tmp_path / "model"), "--ids", "5,6", "--device", "cpu")
    for command in (("show", "tokens"), ("generate", "--max-new-tokens", "1")):
        ended = run(*command, *given, code=0)
        lines = [line for line in ended.err.splitlines() if "nothing here reads a tensor of the file: extra" in line]
        assert len(lines) == 1
        assert "\x1b" not in ended.err
    assert run("show", "tokens", "--model", str(REFERENCES / "llama"), "--ids", "5,6", "--device", "cpu").err == ""
