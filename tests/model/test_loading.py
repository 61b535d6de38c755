"""Loading published checkpoints: stored types, shards, sparse files, pickles, and the places where models are found."""

from __future__ import annotations

import json
import os
import pickle
import resource
import shutil
import struct
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tui_transformer.engine import keep, weights
from tui_transformer.engine.edits import Edit
from tui_transformer.errors import InputError
from tui_transformer.model import Model
from tui_transformer.model.local_models import LocalModel, cache_folder, find_model, local_models
from tui_transformer.model.tensors import open_file

REFERENCES = Path(__file__).parents[1] / "references"
FAMILIES = ["bart", "bert", "distilbert", "gpt2", "gpt_neox", "llama", "marian", "qwen2", "qwen3", "roberta", "t5"]
TENSOR = "encoder.0.self_attention.query.weight"
SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
INDEX = "model.safetensors.index.json"
TEXT = "The waves crashed forcefully against the shore!"


@pytest.fixture
def folder(tmp_path) -> Path:
    """A whole checkpoint."""
    Model.load("encoder", device="cpu").save(tmp_path / "model")
    return tmp_path / "model"


def logits(where: str | Path) -> np.ndarray[Any, Any]:
    return np.array(Model.load(where, device="cpu").trace(TEXT)["output.logits"])


def refusal(where: str | Path) -> str:
    with pytest.raises(InputError) as caught:
        Model.load(where, device="cpu").trace(ids=[1, 2]).compute()
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


# Tokenizers in the folder


@pytest.mark.parametrize("family", FAMILIES)
def test_a_published_checkpoint_reads_text_by_its_own_tokenizer(family):
    with np.load(REFERENCES / family / "expected.npz") as expected:
        text, ids = expected["text"].tobytes().decode(), expected["input_ids"].tolist()
    model = Model.load(REFERENCES / family, device="cpu")
    assert list(model.encode(text).ids) == ids
    assert model.vocabulary.path.name == "tokenizer.json"
    assert model.word(ids[3]) == model.vocabulary.words[ids[3]]
    assert model.changed(dtype="float64").encode(text).ids == tuple(ids)


def test_the_tokenizer_of_a_folder_is_chosen_in_order(folder):
    tokenizer = json.loads((REFERENCES / "gpt2" / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"], tokenizer["model"]["merges"] = {"a": 0, "t": 1}, []
    tokenizer["added_tokens"] = []
    files = {
        "vocab.json": '{"a": 0, "t": 1}',
        "vocab.txt": "[UNK]\na\n##t\n",
        "vocabulary.txt": "a\n",
        "tokenizer.json": json.dumps(tokenizer),
    }
    (folder / "vocabulary.txt").unlink()
    assert Model.load(folder).vocabulary is None
    (folder / "merges.txt").write_text("#version: 0.2\n")
    for name, content in files.items():
        (folder / name).write_text(content)
        assert Model.load(folder).vocabulary.path.name == name
    assert Model.load(folder, vocabulary="waves").vocabulary.name == "waves"


def test_a_broken_tokenizer_is_told_in_one_line(folder):
    (folder / "tokenizer.json").write_text("{")
    assert "tokenizer.json is no tokenizer that can be read" in refusal(folder)


def test_a_tokenizer_is_saved_with_the_model(tmp_path):
    model = Model.load("encoder", vocabulary=REFERENCES / "t5" / "tokenizer.json", device="cpu")
    model.save(tmp_path / "new")
    again = Model.load(tmp_path / "new", device="cpu")
    assert again.encode(TEXT).ids == model.encode(TEXT).ids
    assert np.array_equal(again.trace(TEXT)["output.logits"], model.trace(TEXT)["output.logits"])


# Stored types


def test_bfloat16_is_the_upper_half_of_float32(folder):
    tensors = load_file(folder / "model.safetensors")
    halves = {name: array.view("<u4") >> 16 for name, array in tensors.items()}
    write_raw(folder / "model.safetensors", {name: ("BF16", half.astype("<u2")) for name, half in halves.items()})
    model = Model.load(folder, device="cpu")
    for name in tensors:
        wanted = (halves[name] << 16).view("<f4")
        assert np.array_equal(model.weights.get(name, wanted.shape), wanted)
        np.testing.assert_allclose(wanted, tensors[name], rtol=1 / 128)


def test_a_bfloat16_infinity_is_refused(folder):
    tensors = load_file(folder / "model.safetensors")
    raw = {name: ("BF16", (array.view("<u4") >> 16).astype("<u2")) for name, array in tensors.items()}
    raw[TENSOR][1][2, 3] = 0x7F80
    write_raw(folder / "model.safetensors", raw)
    assert f"tensor {TENSOR} holds NaN or infinity" in refusal(folder)


def test_parts_of_one_tensor_are_taken_before_they_are_converted(tmp_path):
    """GPT-2 and GPT-NeoX store query, key and value in one tensor."""
    for family in ("gpt2", "gpt_neox"):
        shutil.copytree(REFERENCES / family, tmp_path / family)
        tensors = load_file(tmp_path / family / "model.safetensors")
        halves = {name: (array.view("<u4") >> 16).astype("<u2") for name, array in tensors.items()}
        write_raw(tmp_path / family / "model.safetensors", {name: ("BF16", half) for name, half in halves.items()})
        widened = {name: (half.astype("<u4") << 16).view("<f4") for name, half in halves.items()}
        shutil.copytree(REFERENCES / family, tmp_path / f"{family}-32")
        save_file(widened, tmp_path / f"{family}-32" / "model.safetensors")
        assert np.array_equal(logits(tmp_path / family), logits(tmp_path / f"{family}-32"))


@pytest.mark.parametrize(("kind", "dtype"), [("F8_E4M3", "u1"), ("I64", "<i8"), ("U8", "u1"), ("BOOL", "?")])
def test_other_types_are_refused_only_where_they_are_needed(folder, kind, dtype):
    tensors: dict[str, tuple[str, Any]] = {
        name: ("F32", array) for name, array in load_file(folder / "model.safetensors").items()
    }
    write_raw(folder / "model.safetensors", tensors | {"position_ids": (kind, np.zeros((1, 8), dtype))})
    assert logits(folder).shape == (8, 8)
    write_raw(folder / "model.safetensors", tensors | {TENSOR: (kind, np.zeros((8, 8), dtype))})
    message = f"tensor {TENSOR} is stored as {kind}: only F64, F32, F16, BF16 can be read"
    assert f"model.safetensors: {message}" in refusal(folder)


def write_raw(path: Path, tensors: dict[str, tuple[str, Any]]) -> None:
    """Write a safetensors file with types that NumPy does not name."""
    header, place = {}, 0
    for name, (kind, array) in tensors.items():
        header[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [place, place + array.nbytes]}
        place += array.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for _, array in tensors.values()))


# Large files


def pages_read() -> int:
    """Pages of memory that this process has asked for so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_minflt + usage.ru_majflt


def test_a_file_of_many_gigabytes_costs_its_header(tmp_path):
    path, size = tmp_path / "model.safetensors", 48 << 30
    header = {
        "small": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        "large": {"dtype": "F32", "shape": [size // 4], "data_offsets": [8, 8 + size]},
    }
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + struct.pack("<2f", 1.5, -2.0))
        file.truncate(8 + len(text) + 8 + size)
    if path.stat().st_blocks * 512 > 1 << 20:
        pytest.skip("this file system writes holes")
    tracemalloc.start()
    faults = pages_read()
    tensors = open_file(path)
    assert tensors.read("small", lambda tensor: tensor).tolist() == [1.5, -2.0]
    assert tensors.read("large", lambda tensor: tensor[-3:]).tolist() == [0.0, 0.0, 0.0]
    assert pages_read() - faults < 1000  # of twelve million
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()


@pytest.fixture
def large(tmp_path) -> Model:
    """Embeddings of more cells than are read at once, in bfloat16; the row of token 900 is not finite."""
    Model.load("decoder", vocabulary="english", d_model=16, device="cpu").save(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    raw = {name: ("BF16", (array.view("<u4") >> 16).astype("<u2")) for name, array in tensors.items()}
    raw[TABLE][1][900] = 0x7F80
    write_raw(tmp_path / "model.safetensors", raw)
    return in_parts(tmp_path)


def in_parts(folder: Path, **sizes: int) -> Model:
    """A model of whose weights those of some thousand cells are read in parts."""
    model = Model.load(folder, device="cpu")
    return replace(model, weights=replace(model.weights, large=1 << 12, **sizes))


TABLE = "embedding.tokens.weight"
ROWS = [3, 700, 3, 12]


def test_of_a_large_table_only_the_rows_that_are_looked_up_are_read(large):
    trace = large.trace(ids=ROWS)
    whole = np.array(trace["embedding.tokens"])
    seen = trace.explain("embedding.tokens", row=1, column=2)
    rows = trace.window(TABLE, (range(699, 701), range(16)))
    assert TABLE not in large.weights.held
    assert (seen.stored, rows[1, 2]) == (whole[1, 2], whole[1, 2])
    with pytest.raises(InputError, match=f"tensor {TABLE} holds NaN or infinity"):
        in_parts(large.folder).trace(ids=[899, 900])["embedding.tokens"]


def test_a_row_that_is_looked_up_is_that_of_the_whole_table(large):
    whole = in_parts(large.folder)
    table = np.array(whole.weights.file.part(TABLE, slice(0, 900)))
    whole.weights.held[TABLE] = table
    for trace in (whole.trace(ids=ROWS), whole.trace(ids=[ROWS, ROWS[::-1]])):
        other = large.trace(ids=ROWS if trace.batch == 1 else [ROWS, ROWS[::-1]])
        assert np.array_equal(trace["decoder.0.output"], other["decoder.0.output"])


def test_an_edited_table_is_read_whole(large):
    edited = in_parts(large.folder).trace(ids=ROWS).edited([Edit(TABLE, (3, 2), 5.0)])
    with pytest.raises(InputError, match=f"tensor {TABLE} holds NaN or infinity"):
        edited.window(TABLE, (range(4), range(4)))


def test_a_model_larger_than_memory_is_computed_with_weights_read_again(large, monkeypatch):
    wanted = np.array(large.trace(ids=ROWS)["decoder.0.output"])
    small = in_parts(large.folder, small=1)
    taken = sum(array.nbytes for name, array in large.weights.held.items())
    free = taken // 2
    monkeypatch.setattr(weights, "available_memory", lambda: free - held_bytes(small))
    monkeypatch.setattr(keep, "available_memory", lambda: free - held_bytes(small))
    for _ in range(2):
        assert np.array_equal(small.trace(ids=ROWS, budget=0)["decoder.0.output"], wanted)
        assert 0 < held_bytes(small) < free


def held_bytes(model: Model) -> int:
    return sum(int(array.nbytes) for array in model.weights.held.values())


def test_a_weight_that_does_not_fit_into_memory_is_refused_before_it_is_read(folder, monkeypatch):
    monkeypatch.setattr(keep, "available_memory", lambda: 300)
    loaded = (Model.load(folder, device="cpu", dtype=dtype).weights for dtype in ("float32", "float64"))
    single, double = (replace(each, small=1) for each in loaded)
    assert single.get(TENSOR, (8, 8)).shape == (8, 8), "256 B"
    with pytest.raises(InputError, match=f"{TENSOR} takes 512 B of memory and 300 B are free"):
        double.get(TENSOR, (8, 8))
    with pytest.raises(InputError, match="the weights take, as float64, 512 B of memory"):
        double.check_room({TENSOR: (8, 8)})


# Several files


@pytest.fixture
def sharded(folder) -> Path:
    """The same checkpoint in two files."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    weight_map = {name: SHARDS[i % 2] for i, name in enumerate(sorted(tensors))}
    for shard in SHARDS:
        save_file({name: tensors[name] for name in tensors if weight_map[name] == shard}, folder / shard)
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    return folder


def test_several_files_are_read_as_one(sharded):
    assert np.array_equal(logits(sharded), logits("encoder"))


def test_one_file_comes_before_an_index(sharded):
    Model.load("encoder", device="cpu").save(sharded)
    (sharded / INDEX).write_text("{")
    assert np.array_equal(logits(sharded), logits("encoder"))


def test_the_files_of_an_index_may_be_links(sharded, tmp_path):
    (tmp_path / "blobs").mkdir()
    for shard in SHARDS:
        shutil.move(sharded / shard, tmp_path / "blobs" / shard[:11])
        (sharded / shard).symlink_to(tmp_path / "blobs" / shard[:11])
    assert np.array_equal(logits(sharded), logits("encoder"))


def test_a_missing_shard_is_named(sharded):
    (sharded / SHARDS[1]).unlink()
    assert f"{SHARDS[1]}: no such file" in refusal(sharded)


def test_a_cut_shard_is_named(sharded):
    (sharded / SHARDS[0]).write_bytes((sharded / SHARDS[0]).read_bytes()[:-1])
    assert f"{SHARDS[0]}: not a whole safetensors file (" in refusal(sharded)


def changed_shard(folder: Path, change: Callable[[dict[str, Any]], object]) -> str:
    """Change the shard that has the tensor; its name."""
    shard = json.loads((folder / INDEX).read_text())["weight_map"][TENSOR]
    tensors = load_file(folder / shard)
    change(tensors)
    save_file(tensors, folder / shard)
    return str(shard)


def test_a_tensor_that_is_not_in_its_shard_is_named(sharded):
    shard = changed_shard(sharded, lambda tensors: tensors.pop(TENSOR))
    assert f"{shard}: tensor {TENSOR} is missing, and {INDEX} says that it is there" in refusal(sharded)


def test_a_tensor_that_no_index_names_is_named(sharded):
    changed_shard(sharded, lambda tensors: tensors.pop(TENSOR))
    index = json.loads((sharded / INDEX).read_text())
    del index["weight_map"][TENSOR]
    (sharded / INDEX).write_text(json.dumps(index))
    assert f"{INDEX}: tensor {TENSOR} is missing: the file does not fit its config.json" in refusal(sharded)


def test_what_is_wrong_in_a_shard_names_the_shard(sharded):
    shard = changed_shard(sharded, lambda tensors: tensors[TENSOR].__setitem__((0, 0), np.nan))
    assert f"{shard}: tensor {TENSOR} holds NaN or infinity" in refusal(sharded)
    shard = changed_shard(sharded, lambda tensors: tensors.update({TENSOR: np.ones((4, 4), "f4")}))
    assert f"{shard}: tensor {TENSOR} is 4 × 4, but config.json says 8 × 8" in refusal(sharded)


def test_a_tensor_in_two_shards_is_read_where_the_index_says(sharded):
    weight_map = json.loads((sharded / INDEX).read_text())["weight_map"]
    other = next(shard for shard in SHARDS if shard != weight_map[TENSOR])
    tensors = load_file(sharded / other)
    save_file(tensors | {TENSOR: np.zeros((8, 8), "f4")}, sharded / other)
    assert np.array_equal(logits(sharded), logits("encoder"))


OUTSIDE = ["../model.safetensors", "/etc/passwd", "sub/model.safetensors", "..", "", "C:model", "..\\model", "a\0b"]


@pytest.mark.parametrize("place", OUTSIDE)
def test_a_shard_outside_the_folder_is_not_opened(sharded, place):
    (sharded / INDEX).write_text(json.dumps({"weight_map": {TENSOR: place}}))
    assert f"{INDEX}: tensor {TENSOR} is in {place!r}, which is not a file beside it: not opened" in refusal(sharded)


@pytest.mark.parametrize("content", ["{}", '{"weight_map": []}', '{"weight_map": {}}', '{"weight_map": {"a": 1}}'])
def test_an_index_without_a_map_is_refused(sharded, content):
    (sharded / INDEX).write_text(content)
    assert f"{INDEX}: no weight_map" in refusal(sharded)


@pytest.mark.parametrize("content", ["", "{", "[" * 200_000])
def test_an_index_that_is_not_json_is_refused(sharded, content):
    (sharded / INDEX).write_text(content)
    assert f"{INDEX}: not JSON" in refusal(sharded)


# Pickles


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "weights.pt", "model.pth", "last.ckpt"])
def test_pickled_weights_are_refused_and_not_opened(folder, tmp_path, name):
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    for where in (folder, folder / name):
        message = refusal(where)
        assert f"{name}: pickled weights can run code when they are read" in message
        assert f"torch.load('{name}', map_location='cpu', weights_only=True)" in message
        assert "save_file" in message
    assert not (tmp_path / "sprung").exists()


def test_pickled_weights_beside_safe_ones_do_not_matter(folder):
    (folder / "pytorch_model.bin").write_bytes(b"")
    assert logits(folder).shape == (8, 8)


def test_the_weights_among_pickled_files_are_named_first(folder):
    (folder / "model.safetensors").unlink()
    for name in ("optimizer.pt", "pytorch_model.bin"):
        (folder / name).touch()
    assert "pytorch_model.bin: pickled weights" in refusal(folder)


# Finding


def test_a_file_of_a_checkpoint_names_it(folder, sharded):
    assert find_model(folder / "config.json") == LocalModel(folder.parent.name, "folder", folder)
    for name in ("config.json", INDEX, *SHARDS):
        assert np.array_equal(logits(folder / name), logits("encoder"))


def test_a_weights_file_names_its_checkpoint(folder):
    assert Model.load(str(folder / "model.safetensors")).name == folder.parent.name


def test_another_file_is_no_checkpoint(folder):
    (folder / "model_old.safetensors").touch()
    for name in ("vocabulary.txt", "model_old.safetensors"):
        assert f"{name}: not a checkpoint: name its folder" in refusal(folder / name)


@pytest.fixture
def package(folder, tmp_path, monkeypatch) -> Path:
    """An installed package that carries a checkpoint and must not be imported."""
    root = tmp_path / "site" / "carrying_package"
    shutil.copytree(folder, root / "data" / "small")
    (root / "__init__.py").write_text("raise RuntimeError('imported')")
    about = tmp_path / "site" / "carrying_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: carrying-package\nVersion: 1.0\n")
    files = [path.relative_to(tmp_path / "site").as_posix() for path in root.rglob("*") if path.is_file()]
    (about / "RECORD").write_text("".join(f"{file},sha256=x,1\n" for file in files))
    monkeypatch.syspath_prepend(tmp_path / "site")
    return root


@pytest.mark.parametrize("name", ["carrying_package", "carrying-package"])
def test_a_package_carries_a_checkpoint(package, name):
    assert find_model(name) == LocalModel(name, "package", package / "data" / "small")
    model = Model.load(name, device="cpu")
    assert (model.name, model.changed(dtype="float64").name) == (name, name)
    assert np.array_equal(logits(name), logits("encoder"))
    assert "carrying_package" not in sys.modules


def test_a_package_with_two_checkpoints_has_one_named(package):
    shutil.copytree(package / "data" / "small", package / "data" / "large")
    message = refusal("carrying_package")
    assert "carries 2 checkpoints: name the folder of one: " in message
    assert str(package / "data" / "large") in message


def test_a_package_without_one_is_no_model():
    assert "numpy: no such folder, and no model of this name" in refusal("numpy")


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(folder, tmp_path, monkeypatch) -> Path:
    """A cache with one model, in the layout of Hugging Face: links to blobs."""
    root = tmp_path / "hub"
    model = root / "models--some-org--some.model"
    snapshot = model / "snapshots" / COMMIT
    (model / "blobs").mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for number, path in enumerate(folder.iterdir()):
        shutil.copy(path, model / "blobs" / str(number))
        (snapshot / path.name).symlink_to(Path("../../blobs") / str(number))
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(COMMIT)
    monkeypatch.setenv("HF_HUB_CACHE", str(root))
    return root


def test_a_cached_model_is_found_without_the_network(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    model = Model.load("some-org/some.model", device="cpu")
    assert (model.name, model.folder.name) == ("some-org/some.model", COMMIT)
    assert model.changed(dtype="float64").name == "some-org/some.model"
    assert np.array_equal(logits("some-org/some.model"), logits("encoder"))
    assert Model.load(model.folder).name == "some-org/some.model"


def test_a_folder_comes_before_the_cache(cache, folder, monkeypatch):
    shutil.copytree(folder, folder.parent / "some-org" / "some.model")
    monkeypatch.chdir(folder.parent)
    assert find_model("some-org/some.model").source == "folder"


@pytest.mark.parametrize("content", ["", "../../other", "no-such", "é", "a/b", ".."])
def test_a_cache_that_points_nowhere_has_no_model(cache, content):
    (cache / "models--some-org--some.model" / "refs" / "main").write_text(content, encoding="utf-8")
    assert "`tui-transformer fetch some-org/some.model` downloads one" in refusal("some-org/some.model")
    assert [each for each in local_models() if each.source == "cache"] == []


@pytest.mark.parametrize("name", ["../some.model", "some-org/../x", "some-org//some.model", "a/b/c", "/", "org/", ""])
def test_names_that_no_cache_has_are_refused(cache, name):
    with pytest.raises(InputError):
        Model.load(name, device="cpu")


PLACES = {
    "HF_HUB_CACHE": ({"HF_HUB_CACHE": "/a/b", "HF_HOME": "/c", "XDG_CACHE_HOME": "/d"}, "/a/b"),
    "HF_HOME": ({"HF_HOME": "/c", "XDG_CACHE_HOME": "/d"}, "/c/hub"),
    "XDG_CACHE_HOME": ({"XDG_CACHE_HOME": "/d"}, "/d/huggingface/hub"),
    "none": ({"HOME": "/e"}, "/e/.cache/huggingface/hub"),
    "~ and a variable": ({"HOME": "/e", "HF_HUB_CACHE": "~/$PLACE", "PLACE": "f"}, "/e/f"),
}


@pytest.mark.skipif(os.name == "nt", reason="paths of other systems")
@pytest.mark.parametrize(("variables", "place"), PLACES.values(), ids=PLACES)
def test_the_cache_is_where_the_environment_says(monkeypatch, variables, place):
    for name in ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == Path(place)


def test_what_is_found_is_listed(cache, package):
    (cache / "models--some-org--pickled" / "refs").mkdir(parents=True)
    (cache / "datasets--some-org--data").mkdir()
    listed = {each.name: each for each in local_models()}
    assert listed["some-org/some.model"].source == "cache"
    assert listed["carrying_package"].folder == package / "data" / "small"
    assert "some-org/pickled" not in listed
    assert all(find_model(name) for name in listed)


def test_the_command_lists_models_and_why_one_cannot_be_read(cache, package, capsys):
    from tui_transformer.cli.models import run

    (package / "data" / "small" / "config.json").write_text('{"model_type": "mamba"}')
    run()
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "built in" in lines["encoder-decoder"]
    assert lines["some-org/some.model"].endswith("vanilla: encoder · d_model 8 · 8 heads · d_ff 128 · 1 layer")
    assert "config.json: model_type 'mamba' is not supported" in lines["carrying_package"]


def test_the_command_says_where_it_looked(tmp_path, monkeypatch, capsys):
    from tui_transformer.cli import models

    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "none"))
    monkeypatch.setattr(models, "local_models", lambda: ())
    models.run()
    assert f"no other model is in {tmp_path / 'none'}" in capsys.readouterr().err
