"""Small BART, Marian and T5: configurations of other sizes than the references', and models with random tensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import bart_in_numpy
import t5_in_numpy
from plain_numpy import random_tensors
from saved import checkpoint

from tui_transformer.engine.trace import Trace
from tui_transformer.model import Model

BART = {
    "model_type": "bart",
    "vocab_size": 13,
    "d_model": 12,
    "encoder_layers": 1,
    "encoder_attention_heads": 3,
    "encoder_ffn_dim": 10,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "decoder_ffn_dim": 7,
    "max_position_embeddings": 9,
    "activation_function": "relu",
    "scale_embedding": True,
    "pad_token_id": 1,
    "decoder_start_token_id": 2,
}
MARIAN = {
    "model_type": "marian",
    "vocab_size": 13,
    "decoder_vocab_size": 13,
    "d_model": 12,
    "encoder_layers": 2,
    "encoder_attention_heads": 3,
    "encoder_ffn_dim": 10,
    "decoder_layers": 1,
    "decoder_attention_heads": 2,
    "decoder_ffn_dim": 7,
    "max_position_embeddings": 9,
    "activation_function": "swish",
    "scale_embedding": True,
    "static_position_embeddings": True,
    "extra_pos_embeddings": 13,
    "share_encoder_decoder_embeddings": True,
    "pad_token_id": 12,
    "decoder_start_token_id": 12,
}
T5 = {
    "model_type": "t5",
    "vocab_size": 13,
    "d_model": 12,
    "d_kv": 5,
    "d_ff": 7,
    "num_layers": 1,
    "num_decoder_layers": 2,
    "num_heads": 3,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 9,
    "layer_norm_epsilon": 1e-5,
    "feed_forward_proj": "relu",
    "tie_word_embeddings": True,
    "pad_token_id": 0,
    "decoder_start_token_id": 0,
}
CONFIGS: dict[str, dict[str, Any]] = {"bart": BART, "marian": MARIAN, "t5": T5}
IDS = {
    "bart": [0, 5, 7, 3, 12, 2],
    "marian": [4, 5, 7, 3, 11, 0],
    "t5": [4, 5, 7, 3, 11, 2, 6, 8, 1, 12, 10, 4, 4, 1],
}
DECODER_IDS = {"bart": [2, 0, 9, 4], "marian": [12, 0, 9, 4], "t5": [0, 6, 9, 4, 5, 3, 2, 2, 7, 8, 11, 1]}

Made = tuple[Model, dict[str, Any], dict[str, Any]]


def shapes(config: Mapping[str, Any], *, prefix: str, bias: bool, head: bool) -> dict[str, tuple[int, ...]]:
    """The tensors of a file and their shapes."""
    if config["model_type"] == "t5":
        return t5_in_numpy.shapes(config, gated=config["feed_forward_proj"].startswith("gated"), head=head)
    table = bart_in_numpy.shapes(config, prefix, learned=config["model_type"] == "bart")
    return table | ({"final_logits_bias": (1, config["vocab_size"])} if bias else {})


def made(
    folder: Path, family: str, *, prefix: str = "model.", bias: bool = True, head: bool = False, **changes: Any
) -> Made:
    """A model, its tensors and its configuration.

    Args:
        folder: Where its checkpoint is written.
        family: A name in `CONFIGS`.
        prefix: In front of the names of tensors of BART and Marian.
        bias: The file of BART or Marian has a bias of the logits.
        head: The file of T5 has a matrix of the logits.
        changes: Settings that are other than in `CONFIGS`.
    """
    config = CONFIGS[family] | changes
    tensors = random_tensors(shapes(config, prefix=prefix, bias=bias, head=head))
    return load(folder, config, tensors), tensors, config


def load(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, Any]) -> Model:
    """The model of a configuration and tensors, in float64."""
    return Model.load(checkpoint(folder, config, tensors), device="cpu", dtype="float64")


def traced(model: Model, family: str) -> Trace:
    """The trace of the family's token IDs."""
    return model.trace(ids=IDS[family], decoder_ids=DECODER_IDS[family])
