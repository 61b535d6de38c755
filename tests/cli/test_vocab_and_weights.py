"""`vocab`, `info` and `weights`, and the page that says what a folder of one's own has to hold."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Run, arrays_of

import tui_transformer
from tui_transformer.model import Model
from tui_transformer.model.config import Config
from tui_transformer.text.vocabulary import built_in_vocabularies


def test_built_in_vocabularies_are_listed_shown_and_searched(run: Run) -> None:
    lines = run("vocab", "list").out.splitlines()
    assert [line.split()[0] for line in lines] == list(built_in_vocabularies())
    # a range of words
    ended = run("vocab", "show", "waves", "--from", "2", "--count", "2")
    assert ended.out == "2  waves\n3  crashed\n"
    assert "4 more" in ended.err
    # beginnings first
    assert run("vocab", "search", "SH").out == "6  shore\n3  crashed\n"


def test_check_counts_words_repetitions_and_special_words(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("[PAD] a b a \x1b[2J\n", encoding="utf-8")
    ended = run("vocab", "check", "./mine.txt")
    facts = dict(line.split(maxsplit=1) for line in ended.out.splitlines())
    assert facts["entries"] == "5"
    assert facts["repeated"].startswith("1")
    assert facts["special"] == "[UNK] [PAD]"
    assert facts["padding"] == "[PAD] 1"
    assert "\x1b" not in ended.out


def test_tokens_gives_ids_places_unknown_words_and_the_text_back(run: Run) -> None:
    lines = run("vocab", "tokens", "The zebra!").out.splitlines()
    assert [line.split() for line in lines[1:4]] == [
        ["1", "the", "0–3"],
        ["0", "zebra", "4–9", "unknown"],
        ["7", "!", "9–10"],
    ]
    assert lines[-1] == "the [UNK]!"
    # as JSON
    report = run("vocab", "tokens", "Thé zebra!", "--format", "json").json
    assert list(report) == ["tokens"]
    assert report["tokens"][1:] == [
        {"id": 0, "token": "[UNK]", "start": 4, "end": 9},
        {"id": 7, "token": "!", "start": 9, "end": 10},
    ]
    # what a tokenizer adds can be left out
    roberta = str(REFERENCES / "roberta" / "tokenizer.json")
    whole, own = (
        run("vocab", "tokens", "a cat", "--vocab", roberta, "--format", "json", *more).json["tokens"]
        for more in ((), ("--no-special",))
    )
    assert own == whole[1:-1]
    assert [(each["start"], each["end"]) for each in (whole[0], whole[-1])] == [(0, 0), (5, 5)]
    assert run("vocab", "tokens", "", "--vocab", roberta, "--format", "json", "--no-special").json == {"tokens": []}


def test_info_says_what_is_used_and_why(run: Run) -> None:
    facts = run("info", "--json", "--device", "cpu").json
    assert facts["device"] == "cpu (NumPy)"
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert "waves" in facts["vocabularies"]
    text = run("info", "--device", "cpu").out
    assert all(name in text for name in facts)


# `vocab build`


TEXT = "The cat sat.\nA cat, the dog!\n"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_words_are_written_one_a_line_and_summed_up_on_standard_error(run: Run, corpus: Path, tmp_path: Path) -> None:
    ended = run("vocab", "build", "corpus.txt", "--size", "6")
    assert (ended.code, ended.out) == (0, "[PAD]\n[UNK]\n[BOS]\n[EOS]\nthe\ncat\n")
    assert "6 entries from 10 words, 8 of them distinct: they cover 40.0 % of the text" in ended.err
    assert "the 2, cat 2" in ended.err
    # several files are one text
    (tmp_path / "more.txt").write_text("dog dog dog", encoding="utf-8")
    assert run("vocab", "build", "corpus.txt", "more.txt", "--min-frequency", "3").out.split()[4:] == ["dog"]
    # counts stand beside the entries
    ended = run("vocab", "build", "corpus.txt", "--counts", "--size", "6", "-o", "words.txt")
    assert ended.out.splitlines()[4:] == ["4  2  the", "5  2  cat"]
    # special words can have other names
    run("vocab", "build", "corpus.txt", "--special", "<pad>,<unk>,<s>,</s>", "-o", "words.txt")
    facts = dict(line.split(maxsplit=1) for line in run("vocab", "check", "./words.txt").out.splitlines())
    assert (facts["special"], facts["padding"]) == ("<pad> <unk> <s> </s>", "<pad> 0")


def test_what_is_built_can_be_used(run: Run, corpus: Path) -> None:
    for kind, name in (("word", "a.txt"), ("character", "a.txt"), ("bpe", "a.json")):
        ended = run("vocab", "build", "corpus.txt", "--kind", kind, "--size", "300", "-o", name)
        assert (ended.code, ended.out) == (0, "")
        assert "unknown" not in run("vocab", "cut", "the cat sat", "--vocab", f"./{name}").out
        assert run("show", "tokens", "--vocab", f"./{name}", "--text", "the cat").code == 0


def test_pieces_of_words_bytes_and_marked_spaces_are_explained(run: Run) -> None:
    def cut(text: str, family: str) -> list[str]:
        lines = run("vocab", "cut", text, "--vocab", str(REFERENCES / family / "tokenizer.json")).out.splitlines()
        return [" ".join(line.split()) for line in lines]

    lines = cut("The waves", "bert")
    assert lines[1] == "2 [CLS] special added"
    assert "132 ##ves ves, inside a word “ves” 6–9" in lines
    assert cut("waves 😊", "gpt2")[-2:] == ["247 ĺ byte 98 part of “😊” 6–7", "233 Ĭ byte 8A part of “😊” 6–7"]
    assert "32 ␣wa wa, after a space “ wa” 3–6" in cut("The waves", "t5")
    lines = run("vocab", "show", str(REFERENCES / "bert/tokenizer.json"), "--from", "131", "--count", "2").out
    assert lines == "131  ##ve   ve, inside a word\n132  ##ves  ves, inside a word\n"


def test_vocabularies_are_compared_word_by_word(run: Run) -> None:
    bert = str(REFERENCES / "bert/tokenizer.json")
    lines = run("vocab", "compare", "The waves ☃!", "--vocab", "waves", "--vocab", bert).out.splitlines()
    assert [" ".join(line.split()) for line in lines] == [
        "waves tokenizer.json",
        "3 tokens 7 tokens, 1 unknown",
        "[CLS]",
        "The the the",
        "waves waves wa ##ves",
        "☃! ! ☃? !",
        "[SEP]",
    ]


def test_a_terminal_gets_no_control_characters_of_the_text(run: Run, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "odd.txt").write_text("\x1b[31m\u202e \x07", encoding="utf-8")
    assert "\x1b\n" in run("vocab", "build", "odd.txt").out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    ended = run("vocab", "build", "odd.txt", code=0)
    assert not {"\x1b", "\u202e", "\x07"} & set(ended.out)


def test_the_rule_for_words_is_written_into_the_file_and_entries_that_no_text_gives_are_named(run, tmp_path) -> None:
    text, out = tmp_path / "text.txt", tmp_path / "words.txt"
    text.write_text("The nation's The it\n")
    assert run("vocab", "build", str(text), "--split", "spaces", "--case", "kept", "--out", str(out)).code == 0
    assert out.read_text().splitlines()[0] == "#!vocabulary words split=spaces case=kept"
    ended = run("vocab", "check", str(out))
    assert "split       whatever stands between white space\ncase        as written\nnever       0\n" in ended.out
    words = tmp_path / "words.txt"
    words.write_text("the words: a\n")
    assert "never       1 that no text can give: words:\n" in run("vocab", "check", str(words)).out


# `weights`


PAGE = (Path(tui_transformer.__file__).parent / "WEIGHTS.md").read_text(encoding="utf-8")
TABLE = "embedding.tokens.weight"


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_every_weight_is_listed_with_its_shape_type_bytes_and_place(run: Run) -> None:
    bert = str(REFERENCES / "bert")
    rows = run("weights", "list", "--model", bert, "--dtype", "float64", "--format", "json").json
    program = Model.load(bert, device="cpu").program(1)
    assert [row["name"] for row in rows] == list(program.weights)
    stored = {"stored": "F32", "tensor": "bert.embeddings.word_embeddings.weight"}
    assert rows[0] == {"name": TABLE, "shape": [140, 32], "type": "float64", "bytes": 140 * 32 * 8} | stored
    table = run("weights", "list", "--model", bert, "--format", "csv").table
    assert (table[0]["shape"], table[0]["bytes"]) == ("140 × 32", str(140 * 32 * 4))
    # random weights have no file
    lines = run("weights", "list", "--model", "encoder", "--d-model", "16").out.splitlines()
    assert lines[0].split() == ["name", "shape", "type", "bytes", "stored", "tensor"]
    assert lines[1].split() == [TABLE, "8", "×", "16", "float32", "512", "–", "–"]
    count = sum(int(line.split()[-3]) for line in lines[1:-2])
    assert lines[-1].endswith(f"{count // 4:,} numbers, {count // 1024} KiB")


def test_what_is_exported_opens_and_gives_the_same_answer(run: Run, tmp_path: Path) -> None:
    of_forms = {"safetensors": "story", "npz": "question", "raw": "story", "csv": "question"}
    for form, model in of_forms.items():
        out = tmp_path / form
        ended = run("weights", "export", "--model", model, "--format", form, "--out", str(out))
        assert (ended.code, ended.out) == (0, "")
        assert ended.err.startswith(f"wrote {out}: ")
        assert ended.err.endswith(f" MiB; --model {out} opens it\n") or " KiB; --model" in ended.err
        shown = ("show", "output.logits", "--ids", "5,6,7", "--dtype", "float64", "--format", "csv")
        assert run(*shown, "--model", str(out)).out == run(*shown, "--model", model).out
    # the name of a file says the format
    out = tmp_path / "w.npz"
    ended = run("weights", "export", "--model", "encoder", "--seed", "4", "--out", str(out))
    assert (ended.code, "opens it" in ended.err) == (0, False)
    trace = Model.load("encoder", seed=4, device="cpu").trace(ids=[1])
    np.testing.assert_array_equal(arrays_of(out)[TABLE], trace[TABLE])


# The page


def test_the_commands_of_the_page_run_one_after_another(run: Run, tmp_path: Path) -> None:
    del tmp_path  # the commands run in it
    for line in block("sh").splitlines():
        run(*shlex.split(line)[1:], code=0)


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_a_program_in_cpp_writes_a_folder_that_opens(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.cpp").write_text(block("cpp"))
    compiled = ["g++", "-std=c++17", "-Wall", "-Werror", "mine.cpp", "-o", "mine_writes"]
    subprocess.run(compiled, cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "mine_writes"], cwd=tmp_path, check=True)
    model = Model.load(tmp_path / "mine", device="cpu", dtype="float64")
    assert (model.vocabulary.pad_id, model.config.layers, model.unread) == (0, 2, ())
    trace = model.trace("the waves crashed")
    for name in ("encoder.1.feed_forward.hidden.weight", "encoder.0.self_attention.query.weight"):
        numbers = np.fromfile(tmp_path / "mine" / f"{name}.f32", "<f4")
        np.testing.assert_array_equal(trace[name].reshape(-1), numbers)
    assert trace["output.logits"].shape == (3, 6)
    run("show", "0.self_attention.weights", "--model", "mine", "--text", "the waves crashed", "--head", "2", code=0)


def test_a_program_in_numpy_writes_a_folder_that_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(block("python"), names)  # noqa: S102 - the project's own text
    model = Model.load(tmp_path / "mine", device="cpu")
    trace = model.trace("the waves crashed")
    for name, array in names["weights"].items():
        np.testing.assert_array_equal(trace[name], array)
    assert set(names["weights"]) == set(model.program(1).weights)


def test_the_page_says_the_defaults_of_the_configuration() -> None:
    config = Config().to_json()
    for key, said in {
        "norm_epsilon": "1e-5",
        "activation": '"relu"',
        "norm": '"post"',
        "positions": '"sinusoidal"',
        "max_length": "4096",
        "vocab_size": "8",
    }.items():
        assert re.search(rf"`{key}` +\| `?{re.escape(said)}", PAGE)
        assert json.loads(said) == config[key]
    assert "| `d_model`, `heads`, `d_ff` | 8, 8, 128 |" in PAGE
    assert (config["d_model"], config["heads"], config["d_ff"]) == (8, 8, 128)
    assert not any(config[key] for key in ("scale_embedding", "bias", "tie_output"))
