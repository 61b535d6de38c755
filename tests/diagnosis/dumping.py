"""Arrays of the small models as dumps, in the names and shapes that people give them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
from reference import with_weights
from small import Arrays, encoder, llama

from tui_transformer.diagnosis import First
from tui_transformer.diagnosis.dumps import open_dump
from tui_transformer.diagnosis.dumps.dump import FLOAT16, FLOAT32, Dump, Precision, Tensor, held
from tui_transformer.model import Model

REFERENCES = Path(__file__).parent.parent / "references"
IDS = [5, 1, 3, 7, 1, 2, 4]
SIZES = {"layers": 2, "d_model": 16, "heads": 2, "d_ff": 24, "bias": True}
MODELS = {
    "post": ("encoder", {"scale_embedding": True}),
    "pre": ("decoder", {"norm": "pre", "activation": "gelu", "positions": "learned"}),
}


@lru_cache
def model_of(name: str) -> Model:
    if name == "llama":
        return Model.load(REFERENCES / "llama")
    where, settings = MODELS[name]
    return with_weights(Model.load(where, **SIZES, **settings), _with_norms)


def _with_norms(name: str, weight: np.ndarray) -> np.ndarray:
    """γ and β that are neither 1 nor 0, so that leaving them out is seen."""
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    return generator.normal(1.0, 0.3, weight.shape).astype(np.float32) if ".norm." in name else weight


def computed(name: str, fault: str = "") -> Arrays:
    return dict(_computed(name, fault))


@lru_cache
def _computed(name: str, fault: str) -> Arrays:
    return (llama if name == "llama" else encoder)(model_of(name), IDS, frozenset({fault} - {""}), np.float32)


def dumped(arrays: Mapping[str, np.ndarray], precision: Precision = FLOAT32, **given: object) -> Dump:
    """Arrays as they are stored, with what is given to the model: by name, IDS where nothing else is said."""
    tensors: dict[str, Tensor] = {
        name: held(name, np.asarray(array, np.float32), precision) for name, array in arrays.items()
    }
    for name, value in {"input_ids": IDS, **given}.items():
        tensors[name] = held(name, np.array(value), FLOAT32)
    return Dump(Path("dump.npz"), tensors)


def dump_of(text: str, folder: Path, name: str = "run.log") -> Dump:
    (folder / name).write_text(text, encoding="utf-8")
    return open_dump(folder / name)


def rows(array: np.ndarray) -> str:
    """The rows of a matrix as a program prints them."""
    return "\n".join(" ".join(f"{x:.9g}" for x in np.atleast_1d(row)) for row in array) + "\n"


def blamed(first: First | None) -> First:
    """The first wrong step, which there has to be."""
    assert first is not None
    return first


def hidden_states(arrays: Arrays) -> Arrays:
    """The arrays of `output_hidden_states`: the input of each layer, and the output of the last."""
    outputs = [name for name in arrays if name.endswith(".output") and name.count(".") == 2]
    entrance = "embedding.output" if "embedding.output" in arrays else "embedding.tokens"
    states = {"hidden_states_0": arrays[entrance]}
    for i, name in enumerate(outputs, 1):
        states[f"hidden_states_{i}"] = arrays[name]
    last = next((name for name in arrays if name in ("encoder.norm", "decoder.norm")), None)
    return states | ({f"hidden_states_{len(outputs)}": arrays[last]} if last else {})


HOOKED = (".query", ".key", ".value", "self_attention.output", ".hidden", "feed_forward.output", ".gate")


def projections(arrays: Arrays) -> Arrays:
    """The arrays that hooks on the linear modules give."""
    others = ("embedding.output", "embedding.tokens")
    return {name: array for name, array in arrays.items() if name.endswith((*HOOKED, *others))}


def logits(arrays: Arrays) -> Arrays:
    return {"logits": arrays["output.logits"]}


PARTS: dict[str, Callable[[Arrays], Arrays]] = {
    "every step": lambda arrays: arrays,
    "hidden states": hidden_states,
    "projections": projections,
    "logits": logits,
}
"""What of a program somebody dumps."""


def merged(array: np.ndarray) -> np.ndarray:
    """heads × n × d_k → n × heads · d_k."""
    return array.transpose(1, 0, 2).reshape(array.shape[1], -1)


def batched(arrays: Arrays) -> Arrays:
    return {name: array[None] for name, array in arrays.items()}


CALLED = """
embedding.tokens | hook_embed | inp_embd | model.embed_tokens
decoder.{}.self_attention.norm | blocks.{}.ln1.hook_normalized | attn_norm-{} | model.layers.{}.input_layernorm
decoder.{}.self_attention.query | blocks.{}.attn.hook_q | Qcur-{} | model.layers.{}.self_attn.q_proj
decoder.{}.self_attention.key | blocks.{}.attn.hook_k | Kcur-{} | model.layers.{}.self_attn.k_proj
decoder.{}.self_attention.value | blocks.{}.attn.hook_v | Vcur-{} | model.layers.{}.self_attn.v_proj
decoder.{}.self_attention.query_rotated | blocks.{}.attn.hook_rot_q | Qcur-{} (rope) |
decoder.{}.self_attention.scores |  | kq-{} |
decoder.{}.self_attention.masked | blocks.{}.attn.hook_attn_scores |  |
decoder.{}.self_attention.weights | blocks.{}.attn.hook_pattern | kq_soft_max-{} |
decoder.{}.self_attention.context | blocks.{}.attn.hook_z | kqv-{} |
decoder.{}.self_attention.concat |  | kqv_out-{} |
decoder.{}.self_attention.output | blocks.{}.hook_attn_out |  | model.layers.{}.self_attn.o_proj
decoder.{}.self_attention.residual | blocks.{}.hook_resid_mid | ffn_inp-{} |
decoder.{}.feed_forward.norm |  | ffn_norm-{} | model.layers.{}.post_attention_layernorm
decoder.{}.feed_forward.hidden | blocks.{}.mlp.hook_pre_linear | ffn_up-{} | model.layers.{}.mlp.up_proj
decoder.{}.feed_forward.gate | blocks.{}.mlp.hook_pre | ffn_gate-{} | model.layers.{}.mlp.gate_proj
decoder.{}.feed_forward.activation |  |  | model.layers.{}.mlp.act_fn
decoder.{}.feed_forward.gated |  | ffn_gate_par-{} |
decoder.{}.feed_forward.output | blocks.{}.hook_mlp_out | ffn_out-{} | model.layers.{}.mlp
decoder.{}.output | blocks.{}.hook_resid_post | l_out-{} | model.layers.{}
decoder.norm | ln_final.hook_normalized | result_norm | model.norm
output.logits |  | result_output | lm_head
"""
"""What steps are called: here, in TransformerLens, in ggml, by the modules of transformers."""


def in_columns(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]


LENS, GGML, MODULES = ({row[0]: row[i] for row in in_columns(CALLED) if row[i]} for i in (1, 2, 3))


def renamed(arrays: Arrays, names: Mapping[str, str]) -> Arrays:
    """The arrays that have a name in a convention, under it."""
    by_name = {}
    for ours, theirs in names.items():
        for i in range(2 if "{}" in ours else 1):
            if ours.format(i) in arrays:
                by_name[theirs.format(i)] = arrays[ours.format(i)]
    return by_name


def coarse_bits(array: np.ndarray) -> np.ndarray:
    """bf16 as its 16 bits."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def in_few_bits(arrays: Arrays, precision: Precision) -> Arrays:
    """Arrays as they are rounded where they are stored in float16, or in bf16."""
    if precision == FLOAT16:
        return {name: array.astype(np.float16) for name, array in arrays.items()}
    return {name: (coarse_bits(array).astype(np.uint32) << 16).view(np.float32) for name, array in arrays.items()}
