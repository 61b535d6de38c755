"""Tensors of a checkpoint that nothing reads are named, buffers and copies are not."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from reference import REFERENCES
from safetensors.numpy import load_file, save_file

from tui_transformer.model import Model
from tui_transformer.model.checkpoint import unread, unread_said

FAMILIES = sorted(path.name for path in REFERENCES.iterdir())


def with_tensors(folder: Path, family: str, **more: np.ndarray) -> Model:
    """A reference with more tensors in its file."""
    shutil.copy(REFERENCES / family / "config.json", folder / "config.json")
    tensors = load_file(REFERENCES / family / "model.safetensors")
    save_file(tensors | {name.replace("__", "."): array for name, array in more.items()}, folder / "model.safetensors")
    return Model.load(folder, device="cpu")


@pytest.mark.parametrize("family", FAMILIES)
def test_everything_of_the_references_is_read(family):
    assert Model.load(REFERENCES / family, device="cpu").unread == ()


def test_a_built_in_model_has_nothing_unread():
    assert unread_said("encoder", Model.load("encoder").unread) is None


def test_a_tensor_that_no_step_reads_is_named(tmp_path):
    model = with_tensors(tmp_path, "bert", bert__pooler__dense__weight=np.ones((32, 32), "f4"))
    assert model.unread == ("bert.pooler.dense.weight",)
    assert (
        unread_said(model.name, model.unread)
        == f"{model.name}: nothing here reads a tensor of the file: bert.pooler.dense.weight"
    )


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("bert", "bert__embeddings__position_ids"),
        ("gpt2", "transformer__h__0__attn__masked_bias"),
        ("gpt_neox", "gpt_neox__layers__0__attention__rotary_emb__inv_freq"),
        ("llama", "model__layers__0__self_attn__rotary_emb__inv_freq"),
        ("t5", "decoder__block__0__layer__1__EncDecAttention__relative_attention_bias__weight"),
    ],
)
def test_buffers_that_are_known_to_do_nothing_are_not_named(tmp_path, family, name):
    assert with_tensors(tmp_path, family, **{name: np.ones((1, 4), "f4")}).unread == ()


def test_a_copy_of_what_is_read_is_not_named_and_another_is(tmp_path):
    tensors = load_file(REFERENCES / "bert" / "model.safetensors")
    bias = tensors["cls.predictions.bias"]
    assert with_tensors(tmp_path, "bert", cls__predictions__decoder__bias=bias).unread == ()
    other = with_tensors(tmp_path, "bert", cls__predictions__decoder__bias=bias + 1)
    assert other.unread in (("cls.predictions.decoder.bias",), ("cls.predictions.bias",))


def test_many_are_counted():
    said = unread_said("x", tuple(f"tensor {i}" for i in range(1200)))
    assert said == "x: nothing here reads 1,200 tensors of the file: tensor 0, tensor 1, tensor 2 and 1,197 more"
    assert unread({"b.weight", "a.weight", "c.weight"}, ["c.weight"]) == ("a.weight", "b.weight")
