"""Dictionaries of features agree with the libraries that wrote them, and what cannot be read is named.

Every folder beside this file was written by one of SAELens 6.54, sparsify 1.3.3, circuit-tracer 0.5 or in the form of
Gemma Scope, with random weights; its `expected.npz` holds activations `x`, and the `features` and the `output` that the
library computes of them in float64.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hostile import COUNTS, as_json, broken_json, broken_tensors, damaged, hold_file
from placing import FOLDERS, HERE, expected, loaded
from reference import reconfigured
from refusing import refuses
from safetensors.numpy import load_file, save_file

from tui_transformer.errors import UsageError
from tui_transformer.features import layer
from tui_transformer.features.dictionary import Features
from tui_transformer.features.labels import read_labels


@pytest.fixture
def copied(tmp_path: Path):
    def copy(name: str) -> Path:
        return Path(shutil.copytree(HERE / name, tmp_path / name))

    return copy


@pytest.mark.parametrize("name", FOLDERS)
def test_features_and_output_are_those_of_the_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, features = expected(name), loaded(name)
    found = features.encode(right["x"])
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, right["features"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(features.decode(found, right["x"]), right["output"], rtol=0, atol=1e-9)
    assert 0 < (found != 0).mean() < 1
    # float32 stays float32
    assert features.encode(right["x"].astype(np.float32)).dtype == np.float32
    out = features.decode(right["features"].astype(np.float32), right["x"].astype(np.float32))
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, right["output"], rtol=0, atol=1e-4)
    # in blocks of features
    monkeypatch.setattr(layer, "BLOCK", 7 * 32)  # 96 features do not divide by 7
    features = loaded(name)
    np.testing.assert_allclose(features.encode(right["x"]), right["features"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(features.decode(right["features"], right["x"]), right["output"], rtol=0, atol=1e-9)


def test_a_file_is_as_good_as_its_folder() -> None:
    for name, file in (
        ("gemma-scope", "params.npz"),
        ("saelens-topk", "sae_weights.safetensors"),
        ("sparsify-groupmax", "sae.safetensors"),
        ("circuit-tracer-jumprelu", "layer_0.safetensors"),
        ("circuit-tracer-cross-layer", "W_enc_1.safetensors"),
    ):
        right, features = expected(name), Features.load(HERE / name / file)
        np.testing.assert_allclose(features.encode(right["x"]), right["features"], rtol=0, atol=1e-9)


def test_a_dictionary_says_what_it_is(copied) -> None:
    assert len(FOLDERS) == 18
    features = loaded("circuit-tracer-cross-layer")
    assert repr(features) == "<Features circuit-tracer-cross-layer: 2 layers × 96 features of 32 numbers>"
    assert (features.count, features.width, features.is_cross) == (96, 32, True)
    # a hook is kept as the file says it
    folder = copied("saelens-standard")
    reconfigured(folder / "cfg.json", metadata={"hook_name": "blocks.8.hook_resid_pre"})
    features = Features.load(folder)
    assert features.hook == "blocks.8.hook_resid_pre"
    for shape in ((32,), (0, 32), (2, 3, 32)):  # of activations
        assert features.decode(features.encode(np.ones(shape))).shape == shape


def test_what_was_read_is_asked_for_in_its_width() -> None:
    for name in ("saelens-skip-transcoder", "saelens-standard-layer-norm"):
        features = loaded(name)
        refuses("give what was read", lambda features=features: features.decode(np.zeros((1, 96))), UsageError)
    refuses("have 32 numbers each", lambda: loaded("saelens-topk").encode(np.zeros((2, 31))), UsageError)
    refuses("reads 2 layers", lambda: loaded("circuit-tracer-cross-layer").encode(np.zeros((3, 7, 32))), UsageError)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"architecture": "temporal"}, "the architecture 'temporal' is not read"),
        ({"normalize_activations": "batch"}, "normalize_activations = 'batch' is not computed"),
        ({"reshape_activations": "hook_q"}, "reshape_activations = 'hook_q' is not computed"),
        ({"apply_b_dec_to_input": 2}, "apply_b_dec_to_input is 2, and should be true or false"),
        ({"architecture": "topk", "k": 0}, "k is 0, and should be a number from 1 on"),
        ({"architecture": "topk", "k": 97}, "k is 97, and there are 96 features"),
        ({"architecture": "gated"}, "tensor b_gate is missing: the file does not fit its cfg.json"),
        ({"architecture": ["topk"]}, "is not read"),
    ],
)
def test_settings_that_are_not_computed_are_named(copied, settings: dict[str, object], says: str) -> None:
    folder = copied("saelens-standard")
    reconfigured(folder / "cfg.json", **settings)
    assert says in refuses(r"cfg\.json|sae_weights", lambda: Features.load(folder))


@pytest.mark.parametrize("name", ["W_enc_1", "b_dec_1"])
def test_a_layer_without_its_tensor_is_refused(copied, name: str) -> None:
    path = copied("circuit-tracer-cross-layer") / "W_enc_1.safetensors"
    save_file({key: array for key, array in load_file(path).items() if key != name}, path)
    refuses(rf"W_enc_1.safetensors: tensor {name} is missing: copy the file again", lambda: Features.load(path.parent))


def test_folders_in_which_a_layer_is_missing_or_too_much_are_refused(copied, tmp_path: Path) -> None:
    folder = copied("circuit-tracer-relu")
    shutil.copy(folder / "layer_0.safetensors", folder / "layer_1.safetensors")
    refuses(r"2 layers, such as layer_0.safetensors: give the file of one", lambda: Features.load(folder))
    folder = copied("circuit-tracer-cross-layer")
    (folder / "W_enc_0.safetensors").unlink()
    refuses("there have to be all from 0 on", lambda: Features.load(folder))
    folder = copied("gemma-scope")
    (folder / "params.npz").write_bytes(b"PK")
    refuses("no NPZ file", lambda: Features.load(folder))
    folder = copied("sparsify-groupmax")
    reconfigured(folder / "cfg.json", k=7)
    refuses("96 features are not 7 groups", lambda: Features.load(folder))
    # something else
    refuses("no dictionary of features: sae_weights", lambda: Features.load(tmp_path))
    refuses("no such file or folder", lambda: Features.load(tmp_path / "nothing"))
    refuses("null: not a regular file", lambda: Features.load("/dev/null"))
    (tmp_path / "a.txt").write_text("x")
    refuses("no dictionary of features is stored so", lambda: Features.load(tmp_path / "a.txt"))


# Broken ones: settings and weights, each read or refused in one line that names the file


@np.errstate(all="ignore")
def used(folder: Path) -> np.ndarray:
    """What a dictionary makes of activations, by way of its features."""
    features = Features.load(folder)
    x = np.ones((2, features.width), np.float32)
    x = np.stack([x] * len(features.layers)) if features.is_cross else x
    return features.decode(features.encode(x), x)


@COUNTS
@pytest.mark.parametrize("name", ["saelens-topk", "saelens-gated", "sparsify-groupmax"])
def test_broken_settings(tmp_path: Path, count: int, name: str) -> None:
    folder = Path(shutil.copytree(HERE / name, tmp_path / name))
    path = folder / "cfg.json"
    hold_file(count, path, broken_json(json.loads(path.read_text())), lambda: used(folder), *folder.iterdir())


@COUNTS
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("saelens-standard", "sae_weights.safetensors"),
        ("sparsify-topk", "sae.safetensors"),
        ("gemma-scope", "params.npz"),
        ("circuit-tracer-jumprelu", "layer_0.safetensors"),
        ("circuit-tracer-cross-layer", "W_dec_0.safetensors"),
        ("circuit-tracer-cross-layer", "W_enc_1.safetensors"),
    ],
)
def test_broken_weights(tmp_path: Path, count: int, name: str, file: str) -> None:
    folder = Path(shutil.copytree(HERE / name, tmp_path / name))
    path = folder / file
    broken = broken_tensors if file.endswith(".safetensors") else damaged
    hold_file(count, path, broken(path.read_bytes()), lambda: used(folder), folder, *folder.iterdir())


LABELS = [{"index": "12", "description": "the sea"}, {"feature": 3, "label": "ships"}]


@COUNTS
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv"])
def test_broken_labels(tmp_path: Path, count: int, name: str) -> None:
    path = tmp_path / name
    right = {
        "a.jsonl": b"".join(as_json(each) + b"\n" for each in LABELS),
        "a.csv": b"feature,label\n12,the sea\n3,ships\n",
    }
    broken = damaged(right[name]) if name in right else broken_json(LABELS)
    hold_file(count, path, broken, lambda: read_labels(path))
