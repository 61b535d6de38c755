"""Steps recorded over texts: the values of every text alone, whoever computes them and however often it is stopped."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hostile import COUNTS, broken_json, damaged, hold_file
from hypothesis import strategies as st
from reference import in_float64
from refusing import refuses

from tui_transformer import Model, Recorded, record
from tui_transformer.engine.weights import Weights
from tui_transformer.survey import recording

TEXTS = [f"The fox found {number} shells and {'a stone ' * (number % 5)}." for number in range(40)]
STEPS = ["1.output", "0.self_attention.context"]


@pytest.fixture(scope="module")
def story() -> Model:
    return Model.load("story", device="cpu")


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_rows_are_the_values_of_each_text_alone_and_say_where_they_are_from(story: Model, tmp_path: Path):
    texts = [*TEXTS[:5], "", "A crow"]
    data = record(story, iter(texts), ["*.output", *STEPS], tmp_path)
    assert (data.texts, data.complete, data.model, repr(data).count("not complete")) == (7, True, "story", 0)
    assert data["1.output"] is data["decoder.1.output"] is data["decoder.1.feed_forward.residual"]
    assert set(data) >= {"embedding.output", "decoder.0.self_attention.context"}
    assert "1.output" in data
    assert all(name not in data for name in ("nothing", "output", 3))
    assert (data.get("1.output"), data.get("output"), data.get("9.output", 0)) == (data["1.output"], None, 0)
    for name in STEPS:
        rows, at = data[name], 0
        for number, text in enumerate(texts):
            if not text:
                continue
            trace = story.trace(text)
            values = np.moveaxis(trace[name], -2, 0)
            part = slice(at, at + len(values))
            assert np.array_equal(rows[part], values)
            assert rows.text[part].tolist() == [number] * len(values)
            assert rows.position[part].tolist() == list(range(len(values)))
            assert np.array_equal(rows.token[part], trace["tokens"])
            at += len(values)
        assert rows.shape == (at, *values.shape[1:])
    rows = data["1.output"]
    whole = np.asarray(rows)
    picked = [7, 2, 7, -1]
    for index in (3, -2, slice(None, None, -3), picked, rows.position == 1, (slice(2, 5), 3), slice(5, 5)):
        assert np.array_equal(rows[index], whole[index])
    assert np.array_equal(np.concatenate([part for _, part in rows.blocks(7)]), whole)
    assert list(rows.rows())[1] == {"text": 0, "position": 1, "token": int(rows.token[1])}
    assert np.array_equal(np.load(tmp_path / "decoder.1.feed_forward.residual.00000.npy", mmap_mode="r"), whole)


def test_two_processes_write_the_bytes_of_one(story: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recording, "SHARD", 100_000)
    for workers in (1, 2):
        record(story, TEXTS, STEPS, tmp_path / str(workers), workers=workers)
    one, two = (files(tmp_path / name) for name in "12")
    assert one == two
    assert len(one) == 1 + 3 * 3  # an index, and of two steps and of the token IDs three files each


@pytest.mark.parametrize("shard", [1 << 26, 100_000, 1])
def test_what_is_stopped_goes_on_to_the_same_bytes(story, tmp_path, shard, monkeypatch):
    monkeypatch.setattr(recording, "SHARD", shard)
    monkeypatch.setattr(recording, "SECONDS", 0.0)

    def stopping(after: int):
        told = count()

        def report(what: str) -> None:
            if "recorded" in what and next(told) == after:
                raise KeyboardInterrupt

        return report

    record(story, TEXTS, STEPS, tmp_path / "whole")
    for after, texts in ((1, 16), (1, 32)):
        with pytest.raises(KeyboardInterrupt):
            record(story, TEXTS, STEPS, tmp_path / "parts", report=stopping(after))
        data = Recorded.load(tmp_path / "parts")
        assert (data.texts, data.complete) == (texts, False)
        assert data["1.output"][-1].shape == (80,)
    assert record(story, TEXTS, STEPS, tmp_path / "parts").complete
    assert files(tmp_path / "parts") == files(tmp_path / "whole")
    more = record(story, [*TEXTS, "A crow"], STEPS, tmp_path / "parts")
    assert (more.texts, more.complete, more["1.output"].text[-1]) == (41, True, 40)


def test_a_file_that_is_newer_than_the_index_is_read_as_the_index_says(story: Model, tmp_path: Path):
    record(story, TEXTS[:16], STEPS, tmp_path)
    index = (tmp_path / "index.json").read_bytes()
    rows = np.asarray(Recorded.load(tmp_path)["1.output"])
    record(story, TEXTS, STEPS, tmp_path)
    whole = files(tmp_path)
    (tmp_path / "index.json").write_bytes(index)  # as where it was killed between the two
    assert np.array_equal(Recorded.load(tmp_path)["1.output"], rows)
    record(story, TEXTS, STEPS, tmp_path)
    assert files(tmp_path) == whole


def test_what_cannot_be_recorded_is_said(story: Model, tmp_path: Path):
    given = {"model": story, "texts": TEXTS[:8], "steps": ["1.output"], "out": tmp_path}
    record(**given)
    before = files(tmp_path)
    wrongs = (
        ({"texts": ["Another text", *TEXTS[1:]]}, "over other texts: name another folder"),
        ({"texts": TEXTS[:3]}, "over other texts"),
        ({"steps": ["0.output"]}, "with another steps"),
        ({"length": 4}, "with another length"),
        ({"length": 0}, "length is 0: use 1 or more"),
        ({"model": Model.load("question", device="cpu"), "steps": ["0.output"]}, "with another model, fingerprint"),
        ({"model": in_float64("story")}, "with another fingerprint, precision"),
        ({"steps": ["0.self_attention.weights"]}, "no rows of one shape"),
        ({"steps": ["tokens"]}, "holds whole numbers"),
        ({"steps": ["nothing"]}, "no step is called"),
        ({"steps": []}, "no step to record"),
        ({"steps": "1.output"}, r"steps are a list: \['1.output"),
        ({"texts": "a text"}, "texts are a list"),
        ({"texts": [*TEXTS[:8], b"bytes"]}, "texts are a list of texts or of token IDs"),
        ({"texts": [*TEXTS[:8], None]}, "'None' is none"),
    )
    for change, said in wrongs:
        refuses(said, lambda change=change: record(**given | change))
        assert files(tmp_path) == before, said


def test_a_cell_of_a_weight_makes_another_model_and_weights_in_memory_need_no_process(story: Model, tmp_path: Path):
    name = "decoder.2.feed_forward.output.weight"
    weight = np.array(story.trace("A")[name])
    weight[3, 4] += 1e-3
    held = Weights(story.backend, story.weights.read, {name: weight})
    changed = replace(story, weights=held)
    assert recording.fingerprint(changed) != recording.fingerprint(story) == recording.fingerprint(story)
    assert record(changed, TEXTS[:2], STEPS, tmp_path / "here").texts == 2
    refuses("in memory alone", lambda: record(changed, TEXTS[:2], STEPS, tmp_path / "there", workers=1))


def test_both_stacks_have_the_tokens_of_their_own_and_a_vector_of_a_text_is_a_row(tmp_path: Path):
    dates = Model.load("dates", device="cpu")
    data = record(dates, ["May 3, 2021", "June 4, 22"], ["encoder.1.output", "decoder.1.output"], tmp_path)
    encoder, decoder = data["encoder.1.output"], data["decoder.1.output"]
    assert encoder.token[0] == dates.encode("May 3, 2021").ids[0]
    assert decoder.shape == (2, 64)
    assert decoder.text.tolist() == [0, 1]
    assert np.array_equal(decoder[1], dates.trace("June 4, 22")["decoder.1.output"][0])


def test_no_texts_are_no_rows_and_token_ids_are_texts_too(story: Model, tmp_path: Path):
    ids = story.encode("The fox found").ids
    data = record(story, ["The fox found", ids, np.array(ids[:2]), []], ["1.output"], tmp_path / "a", length=3)
    rows = data["1.output"]
    assert rows.text.tolist() == [0, 0, 0, 1, 1, 1, 2, 2]
    assert np.array_equal(rows[:3], rows[3:6])
    assert rows.token[3:].tolist() == [*ids[:3], *ids[:2]]
    padded = record(story, [[*ids, 0, 0], [0, *ids]], ["1.output"], tmp_path / "padded")["1.output"]
    assert padded.token.tolist() == [*ids, *ids]
    assert padded.position.tolist() == [*range(len(ids)), *range(len(ids))]
    np.testing.assert_allclose(padded[: len(ids)], padded[len(ids) :], atol=1e-5)
    no_words = Model.load("tests/references/gpt_neo", device="cpu")
    refuses("has no vocabulary to read texts with", lambda: record(no_words, ["a"], ["1.output"], tmp_path / "b"))
    assert record(no_words, [[3, 4, 5]], ["1.output"], tmp_path / "c")["1.output"].shape[0] == 3
    refuses("outside the vocabulary", lambda: record(story, [[5, 99_999]], ["1.output"], tmp_path / "d"))
    # no texts
    data = record(story, [], ["1.output"], tmp_path / "e")
    assert (data.texts, data.complete, data["1.output"].shape, data["1.output"][:].shape) == (0, True, (0, 80), (0, 80))
    assert list(data["1.output"].blocks()) == data["1.output"][[]].tolist() == []
    assert record(story, ["A crow"], ["1.output"], tmp_path / "e")["1.output"].shape == (2, 80)


def test_a_broken_folder_is_refused_in_words(story: Model, tmp_path: Path):
    data = record(story, TEXTS[:2], STEPS, tmp_path)
    file = tmp_path / "decoder.1.feed_forward.residual.00000.npy"
    whole = file.read_bytes()
    for content in (whole[:-1], b"", whole[:40], b"x" * 200, np.lib.format.magic(2, 0) + whole[8:]):
        file.write_bytes(content)
        refuses(r"00000\.npy", lambda: Recorded.load(tmp_path)["1.output"][:])
    file.write_bytes(whole)
    assert data["1.output"][0].shape == (80,)
    file.write_bytes(whole[:-4])  # while it is open
    refuses("cut while it was open", lambda: data["1.output"][0])
    index = json.loads((tmp_path / "index.json").read_text())
    index["arrays"] = {"../../secret": next(iter(index["arrays"].values()))}
    index["aliases"] = {}
    (tmp_path / "index.json").write_text(json.dumps(index))
    refuses("damaged", lambda: Recorded.load(tmp_path))
    refuses("nowhere", lambda: Recorded.load(tmp_path / "nowhere"))


# Broken folders: read, or refused in one line that names a file of them


@np.errstate(all="ignore")
def used(folder: Path) -> None:
    """Every array of a folder, as it is read."""
    data = Recorded.load(folder)
    for rows in data.values():
        _ = repr(data), repr(rows), rows[:2], rows[-1:], rows.token[:3]


@COUNTS
def test_broken_folders(tmp_path: Path, count: int) -> None:
    record(Model.load("story", device="cpu"), ["A crow", "The fox"], ["1.output"], tmp_path)
    index, *arrays = tmp_path / "index.json", *tmp_path.glob("*.npy")
    each(index, count, broken_json(json.loads(index.read_bytes())))
    for path in arrays:
        each(path, count, damaged(path.read_bytes()))


def each(path: Path, count: int, content: st.SearchStrategy[bytes]) -> None:
    """The folder with other contents of one file, which is put back behind that."""
    raw = path.read_bytes()
    hold_file(count, path, content, lambda: used(path.parent), *path.parent.iterdir())
    path.write_bytes(raw)
