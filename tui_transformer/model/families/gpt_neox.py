"""GPT-NeoX (Black et al. 2022), of which Pythia (Biderman et al. 2023) is one, in its published checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

from tui_transformer.engine.backend import Host
from tui_transformer.engine.ops import Add, Mask
from tui_transformer.engine.program import Builder, Program
from tui_transformer.model.checks import Check, size_up_to, small, truth
from tui_transformer.model.config import MOST_LAYERS
from tui_transformer.model.embedding import Embedding
from tui_transformer.model.families.base import Family, Lengths, Stored, as_it_is, transposed
from tui_transformer.model.families.decoder_only import (
    DecoderConfig,
    TensorNames,
    a_size,
    an_activation,
    causal_layer,
    check_divides,
    decoder_program,
    sizes_line,
)
from tui_transformer.model.families.rope import Rope, read_rope
from tui_transformer.model.layers import (
    ACTIVATION_NAMES,
    ATTENTION_MATRICES,
    FEED_FORWARD_MATRICES,
    Layout,
    Norm,
    Sequence,
    attention,
    feed_forward,
    norm,
)

TURNED = 0.25
"""The part of a head that is turned where the file says nothing."""


@dataclass(frozen=True)
class NeoxConfig(DecoderConfig):
    """The keys of GPT-NeoX's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "gpt_neox"
    checks: ClassVar[Mapping[str, Check]] = {
        **DecoderConfig.checks,
        **dict.fromkeys(("hidden_size", "intermediate_size", "num_attention_heads"), a_size),
        "max_position_embeddings": a_size,
        "num_hidden_layers": size_up_to(MOST_LAYERS),
        "hidden_act": an_activation,
        "layer_norm_eps": small,
        **dict.fromkeys(("use_parallel_residual", "attention_bias"), truth),
    }

    vocab_size: int = 50432
    hidden_size: int = 6144
    intermediate_size: int = 24576
    num_hidden_layers: int = 44
    num_attention_heads: int = 64
    hidden_act: str = "gelu"
    max_position_embeddings: int = 2048
    layer_norm_eps: float = 1e-5
    use_parallel_residual: bool = True
    attention_bias: bool = True
    rope_parameters: Rope = field(default_factory=lambda: Rope(partial_rotary_factor=TURNED))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_divides("hidden_size", self.hidden_size, "num_attention_heads", self.num_attention_heads)
        self.rope_parameters.width(self.head_width)

    @property
    def head_width(self) -> int:
        """d_k."""
        return self.hidden_size // self.num_attention_heads

    @property
    def max_length(self) -> int:
        """The tokens that the model was made for."""
        return self.max_position_embeddings

    @property
    def summary(self) -> str:
        """The sizes in one line."""
        return sizes_line("GPT-NeoX", layout_of(self), self.num_hidden_layers)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes."""
        theta, partial = ("rotary_emb_base", "rope_theta"), ("rotary_pct", "partial_rotary_factor")
        rope = read_rope(raw, theta=theta, partial=partial, whole=TURNED)
        return super().from_json({**raw, "rope_parameters": rope})


def layout_of(config: NeoxConfig) -> Layout:
    """What the layers need of the configuration."""
    return Layout(
        d_model=config.hidden_size,
        heads=config.num_attention_heads,
        d_ff=config.intermediate_size,
        norm=Norm(config.layer_norm_eps),
        place="pre",
        activation=ACTIVATION_NAMES[config.hidden_act],
        head_width=config.head_width,
        kv_heads=config.num_attention_heads,
        bias=FEED_FORWARD_MATRICES | (ATTENTION_MATRICES if config.attention_bias else frozenset()),
        rotary=config.rope_parameters.rotary(config.head_width),
    )


def parallel_layer(build: Builder, x: str, tokens: Sequence, layout: Layout) -> str:
    """Add x, attention(norm₁(x)) and feed-forward(norm₂(x)): both read what enters (Black et al. 2022, §2.1)."""
    attend, feed = build.within("self_attention"), build.within("feed_forward")
    states = norm(attend, x, layout)
    attended = attention(attend, states, states, tokens, tokens, layout, Mask(causal=True))
    fed = feed_forward(feed, norm(feed, x, layout), layout)
    x = feed("residual", Add("x + attention(x) + feed-forward(x)"), x, attended, fed)
    build.alias("output", x)
    return x


def program(config: NeoxConfig, lengths: Lengths) -> Program:
    """Tokens, layers whose sublayers run side by side, a last norm, logits (Black et al. 2022, §2.1)."""
    layouts = (layout_of(config),) * config.num_hidden_layers
    layer = parallel_layer if config.use_parallel_residual else causal_layer
    return decoder_program(config, lengths, layouts, Embedding(), layer)


def of_every_head(place: int, heads: int, tensor: Host) -> Host:
    """Query (0), key (1) or value (2) of the fused tensor, whose rows are q, k, v of head 0, then of head 1, and on."""
    rows = tensor.reshape(heads, 3, -1, *tensor.shape[1:])[:, place]
    return transposed(rows.reshape(-1, *tensor.shape[1:]))


FUSED = {"self_attention.query": 0, "self_attention.key": 1, "self_attention.value": 2}
MATRICES = {
    "self_attention.output": "attention.dense",
    "feed_forward.hidden": "mlp.dense_h_to_4h",
    "feed_forward.output": "mlp.dense_4h_to_h",
}
NORMS = {"self_attention.norm": "input_layernorm", "feed_forward.norm": "post_attention_layernorm"}
NAMES = TensorNames(
    prefix="gpt_neox.",
    layers="layers",
    head="embed_out",
    outside={"embedding.tokens": "embed_in", "decoder.norm": "final_layer_norm"},
    inside={**dict.fromkeys(FUSED, "attention.query_key_value"), **MATRICES, **NORMS},
)


def stored(config: NeoxConfig, name: str, names: frozenset[str]) -> Stored:
    """Where a weight is in the file."""
    step, tensor = NAMES.place(config, name, names)
    if step in FUSED:
        return Stored(tensor, partial(of_every_head, FUSED[step], config.num_attention_heads))
    return Stored(tensor, transposed if step in MATRICES or step == "output.logits" else as_it_is)


GPT_NEOX = Family(
    NeoxConfig.model_type, NeoxConfig.from_json, program, stored, fitted=NAMES.fitted, copies=NAMES.copies
)
