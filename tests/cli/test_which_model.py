"""Which model is meant where none is named, and the words of a sentence that it does not know."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Run
from safetensors.numpy import load_file, save_file

from tui_transformer.cli import options
from tui_transformer.cli.generate import usual
from tui_transformer.cli.options import SIZES, Flags
from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model

READ = {"text": "a", "ids": "4,5", "cut": True, "device": "cpu", "dtype": "float64", "budget": "0"}
"""Options for the text of a model, and for its computation."""

GIVEN_SIZES = dict.fromkeys(SIZES, 2)


@pytest.mark.parametrize(("name", "value"), READ.items())
def test_what_a_model_reads_and_how_it_is_computed_leaves_the_trained_one(name: str, value: object) -> None:
    assert Flags().options().model == "question"
    assert Flags(**{name: value}).options().model == "question"


@pytest.mark.parametrize(("name", "value"), {**GIVEN_SIZES, "vocab": "dog", "seed": 3}.items())
def test_what_only_random_weights_have_means_the_built_in_encoder(name: str, value: object) -> None:
    assert Flags(**{name: value}).options().model == "encoder"
    assert Flags(**{name: value}, text="a dog").options().model == "encoder"


def test_a_model_that_is_named_is_taken() -> None:
    assert Flags(model="decoder", layers=2).options().model == "decoder"
    assert Flags(model="story", text="a").options().model == "story"


def test_a_text_is_written_on_by_the_trained_writer_or_a_decoder_of_the_sizes_that_were_given() -> None:
    assert (usual(Flags()), usual(Flags(text="a")), usual(Flags(seed=3))) == ("story", "story", "story")
    assert (usual(Flags(layers=2)), usual(Flags(vocab="dog"))) == ("decoder", "decoder")


def test_a_command_answers_with_the_trained_model(run: Run) -> None:
    said = ("--text", "where did the old sailor hide the map ?", "--top", "1", "--format", "json")
    assert [row["word"] for row in run("answer", *said).json] == ["question"]


@pytest.mark.parametrize("command", ["show", "answer", "generate"])
def test_the_help_says_which(run: Run, command: str) -> None:
    assert options.USUAL == "question"
    said = " ".join(run(command, "--help").out.split())
    assert "default: question, in generate story; with a size, --vocab or --seed encoder" in said


# How many words of a sentence the vocabulary does not know is said wherever one is analysed


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
    assert run(command, "--text", SENTENCE, "--format", "json").json


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


ZEBRA = ("--model", "encoder", "--text", "the zebra crashed", "--dtype", "float64")


def test_an_unknown_word_is_the_vector_0_where_that_is_asked_for(run: Run) -> None:
    ended = run("show", "embedding.tokens", *ZEBRA, "--unknown", "zero", "--format", "json")
    assert ended.err.endswith("encoder: zebra; their vectors are 0\n")
    rows = np.array(ended.json["values"])
    usual = np.array(run("show", "embedding.tokens", *ZEBRA, "--format", "json").json["values"])
    assert np.abs(usual[1]).min() > 0
    np.testing.assert_array_equal(rows, [usual[0], np.zeros(8), usual[2]])


def test_its_position_is_added_to_it(run: Run) -> None:
    steps = ("embedding.positions", "embedding.output")
    shown = [run("show", step, *ZEBRA, "--unknown", "zero", "--format", "json").json["values"] for step in steps]
    assert shown[0][1] == shown[1][1]
    assert shown[0][0] != shown[1][0]


def test_a_cell_of_it_says_why_it_is_0(run: Run) -> None:
    explained = run("show", "embedding.tokens", *ZEBRA, "--unknown", "zero", "--explain", "1,3").out
    assert "an unknown word: its vector is 0" in explained
    assert "· 0 = 0" in explained
    assert "difference  0" in explained
    known = run("show", "embedding.tokens", *ZEBRA, "--unknown", "zero", "--explain", "0,3").out
    assert "unknown word" not in known


def test_a_trace_has_it_and_its_gradient_does_not_reach_the_table(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "zero.npz"
    arguments = (*ZEBRA, "--unknown", "zero", "--gradients", "--targets", "1,2,3")
    assert run("trace", "--out", str(out), *arguments).code == 0
    with np.load(out) as arrays:
        assert np.abs(arrays["embedding.tokens"]).max(axis=1).tolist()[1] == 0
        table = arrays["gradient/embedding.tokens.weight"]
        assert (np.abs(table[[1, 3]]).max() > 0, np.abs(table[0]).max()) == (True, 0)


def test_all_words_are_computed_alike_with_it_and_without(run: Run) -> None:
    known = ("--model", "encoder", "--text", "the waves crashed", "--format", "json")
    for step in ("output.logits", "embedding.tokens"):
        assert (
            run("show", step, *known).json["values"] == (run("show", step, *known, "--unknown", "zero").json["values"])
        )


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


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"where": "attention", "unknown": "zero"}, "no word is unknown to attention"),
        ({"where": "encoder", "unknown": "nothing"}, "unknown words are read as token, zero, error"),
    ],
)
def test_what_unknown_words_cannot_be_is_refused(given: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Model.load(given["where"], unknown=given["unknown"])


def test_a_pair_and_the_decoders_text_are_refused_too() -> None:
    with pytest.raises(InputError, match="not in the vocabulary of encoder-decoder: zebra"):
        Model.load("encoder-decoder", unknown="error").encode_target("zebra waves")


def test_the_explorer_reads_them_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("go embedding.tokens\ndown\nexplain\n"))
    ended = run("--plain", *ZEBRA, "--unknown", "zero")
    assert "an unknown word: its vector is 0" in ended.out or "· 0 = 0" in ended.out, ended.out


# Tensors that nothing reads


def test_one_line_names_them(run: Run, tmp_path: Path) -> None:
    shutil.copytree(REFERENCES / "llama", tmp_path / "model")
    path = tmp_path / "model" / "model.safetensors"
    save_file(load_file(path) | {"extra\x1b[31m": np.ones(2, "f4")}, path)
    given = ("--model", str(tmp_path / "model"), "--ids", "5,6", "--device", "cpu")
    for command in (("show", "tokens"), ("generate", "--max-new-tokens", "1")):
        ended = run(*command, *given)
        assert ended.code == 0
        lines = [line for line in ended.err.splitlines() if "nothing here reads a tensor of the file: extra" in line]
        assert len(lines) == 1
        assert "\x1b" not in ended.err


def test_nothing_is_said_of_a_file_that_is_read_whole(run: Run) -> None:
    assert run("show", "tokens", "--model", str(REFERENCES / "llama"), "--ids", "5,6", "--device", "cpu").err == ""
