"""Weights written to files and opened again: every family, in every form, gives the same numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from reference import in_float64
from refusing import refuses
from safetensors.numpy import load_file

from tui_transformer.errors import InputError, UsageError
from tui_transformer.model import Model
from tui_transformer.model.loading import check_settings_say_all
from tui_transformer.report.weight_files import FORMS, arrays_of, export, shapes_of

TESTS = Path(__file__).parent.parent
PLACES = ("references", "classifiers", "sentences")
FOLDERS = sorted(path.parent for place in PLACES for path in TESTS.glob(f"{place}/*/config.json"))
IDS = [5, 6, 7, 4, 3]


def last_step(model: Model) -> np.ndarray:
    trace = model.trace(ids=IDS) if model.config.vocab_size else model.trace()
    return trace[list(trace)[-1]]


@pytest.mark.parametrize(("place", "folder"), enumerate(FOLDERS), ids=[folder.name for folder in FOLDERS])
def test_a_model_of_every_family_opens_again_with_the_same_numbers(place: int, folder: Path, tmp_path: Path) -> None:
    model, form = in_float64(folder), list(FORMS)[place % len(FORMS)]
    export(model, tmp_path / "out", form)
    again = in_float64(tmp_path / "out")
    np.testing.assert_allclose(last_step(again), last_step(model), rtol=0, atol=1e-12)
    assert shapes_of(again) == shapes_of(model)
    assert again.unread == ()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["encoder", "encoder-decoder", "attention", "question"])
def test_models_of_the_program_open_again_from_every_form(form: str, name: str, tmp_path: Path) -> None:
    model = in_float64(name)
    export(model, tmp_path / "out", form)
    again = in_float64(tmp_path / "out")
    np.testing.assert_array_equal(last_step(again), last_step(model))
    assert getattr(again.vocabulary, "words", None) == getattr(model.vocabulary, "words", None)


@pytest.mark.parametrize("family", ["llama", "qwen3", "t5"])
def test_a_gguf_file_becomes_a_folder(family: str, tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    from gguf_files import write_gguf

    model = in_float64(write_gguf(tmp_path / "model.gguf", family))
    export(model, tmp_path / "out", "raw")
    np.testing.assert_allclose(last_step(in_float64(tmp_path / "out")), last_step(model), rtol=0, atol=1e-12)


def test_files_hold_names_shapes_and_numbers_as_any_program_reads_them(tmp_path: Path) -> None:
    model = Model.load("encoder", device="cpu", d_model=4, heads=2, d_ff=6)
    weights = dict(arrays_of(model))
    for form in FORMS:
        export(model, tmp_path / form, form)
    export(model, tmp_path / "alone.npz", "npz")
    export(model, tmp_path / "alone.safetensors", "safetensors")
    shapes = json.loads((tmp_path / "raw" / "shapes.json").read_text())
    assert {name: tuple(sizes) for name, sizes in shapes.items()} == shapes_of(model)
    of_safetensors = [load_file(tmp_path / name) for name in ("safetensors/model.safetensors", "alone.safetensors")]
    for name, array in weights.items():
        raw = np.fromfile(tmp_path / "raw" / f"{name}.f32", "<f4").reshape(shapes[name])
        table = np.loadtxt(tmp_path / "csv" / f"{name}.csv", delimiter=",", dtype=np.float32).reshape(array.shape)
        for other in (raw, table, *(tensors[name] for tensors in of_safetensors)):
            np.testing.assert_array_equal(other, array)
        for packed in (tmp_path / "npz" / "model.npz", tmp_path / "alone.npz"):
            with np.load(packed, allow_pickle=False) as arrays:
                np.testing.assert_array_equal(arrays[name], array)
                assert set(arrays.files) == set(weights)
    assert [tensors.keys() for tensors in of_safetensors] == [weights.keys()] * 2


def test_double_numbers_are_written_where_the_model_has_them(tmp_path: Path) -> None:
    model = in_float64("encoder")
    export(model, tmp_path / "out", "raw")
    numbers = np.fromfile(tmp_path / "out" / "embedding.tokens.weight.f64", "<f8")
    np.testing.assert_array_equal(numbers, model.trace(ids=IDS)["embedding.tokens.weight"].reshape(-1))


def test_one_weight_at_a_time_is_held(tmp_path: Path) -> None:
    model = in_float64("bert")
    most = 0

    def watched():
        nonlocal most
        for name, array in arrays_of(model):
            most = max(most, len(model.weights.held))
            yield name, array

    export(model, tmp_path / "out", "npz", watched())
    assert (most, len(model.weights.held)) == (1, 0)


@pytest.mark.parametrize("form", FORMS)
def test_what_fails_on_the_way_leaves_nothing(form: str, tmp_path: Path) -> None:
    model = Model.load("encoder", device="cpu")

    def broken():
        yield from list(arrays_of(model))[:3]
        raise InputError("the weights ended")

    refuses("the weights ended", lambda: export(model, tmp_path / "out", form, broken()))
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_or_has_another_ending_is_not_written_over(tmp_path: Path) -> None:
    model = Model.load("encoder", device="cpu")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note.txt").write_text("mine")
    for place in ("full", "full/note.txt"):
        with pytest.raises(InputError, match="there is something already: name a new folder"):
            export(model, tmp_path / place, "raw")
    assert (tmp_path / "full" / "note.txt").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    export(model, tmp_path / "empty", "raw")
    assert (tmp_path / "empty" / "config.json").is_file()
    refuses("cannot be made", lambda: export(model, tmp_path / "full" / "note.txt" / "below", "raw"))
    refuses(r"ends in \.npz is npz, not raw", lambda: export(model, tmp_path / "a.npz", "raw"), UsageError)


def test_a_model_that_no_settings_say_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = in_float64("bert")
    written = type(model.config).to_json
    lost = lambda config: {key: value for key, value in written(config).items() if key != "num_attention_heads"}  # noqa: E731
    monkeypatch.setattr(type(model.config), "to_json", lost)
    refuses("a model of bert", lambda: export(model, tmp_path / "out", "raw"))
    assert not (tmp_path / "out").exists()
    export(model, tmp_path / "out.npz", "npz")  # its weights alone say nothing of it
    refuses("a model of bert", lambda: check_settings_say_all(model.config))
