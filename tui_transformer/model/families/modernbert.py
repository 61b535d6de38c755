"""ModernBERT (Warner et al. 2024) and Nomic BERT (Nussbaum et al. 2024): rotary positions and gated layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.checks import Check, one_of, optional, shown
from tui_transformer.model.description import (
    ACTIVATION_NAMES,
    Attention,
    Embedding,
    FeedForward,
    Head,
    Layer,
    Norm,
    Stack,
    Transform,
    Transformer,
)
from tui_transformer.model.families.bert import CLS, ENCODER_LAYER, EncoderConfig, encoder_table, word_head
from tui_transformer.model.families.rope import (
    FULL,
    SLIDING,
    LayerRopes,
    Rope,
    check_layer_kinds,
    layer_kinds,
    read_rope,
)
from tui_transformer.model.labels import QUESTION, SENTENCE, TOKEN, Layout, of_encoder
from tui_transformer.model.weight_table import WeightTable, layer_parts, side_by_side
from tui_transformer.records import dataclass, field, replace

THETAS: Mapping[str, tuple[str, float]] = {FULL: ("global_rope_theta", 160_000.0), SLIDING: ("local_rope_theta", 1e4)}
"""Kind of layer → what its θ is called in old files, and its default."""


FUSED = side_by_side("attn.Wqkv", lambda config: (config.d_model,) * 3)
"""Query, key and value, in one matrix."""

OF_TOKENS = Layout(hidden="head.dense", activation="gelu", norm="head.norm")


@dataclass(frozen=True)
class ModernBertConfig(EncoderConfig):
    """ModernBERT: pre-norm, with local and global attention.

    Attributes:
        global_attn_every_n_layers: One layer of so many sees all keys, the first among them.
        layer_types: The kind of every layer, where the file lists them.
        local_attention: Keys that a local layer sees on both sides together.
        rope_parameters: Rotary positions of both kinds of layers.
    """

    model_type = "modernbert"
    title = "ModernBERT"
    keys: ClassVar[Mapping[str, str]] = {
        **EncoderConfig.keys,
        "activation": "hidden_activation",
        "norm_epsilon": "norm_eps",
    }
    of_the_file = frozenset({"segments"})
    layouts: ClassVar[Mapping[str, Layout]] = {
        SENTENCE: replace(OF_TOKENS, pool="first"),
        TOKEN: OF_TOKENS,
        QUESTION: replace(OF_TOKENS, logits=("classifier", "qa_outputs")),
    }
    checks: ClassVar[Mapping[str, Check]] = {
        "classifier_activation": one_of(tuple(ACTIVATION_NAMES)),
        "layer_types": optional(layer_kinds),
    }
    weights = WeightTable(
        {
            "embedding.tokens": "model.embeddings.tok_embeddings",
            "embedding.norm": "model.embeddings.norm",
            **layer_parts(
                ENCODER_LAYER,
                "model.layers.{}",
                **FUSED,
                **side_by_side("mlp.Wi", lambda config: (config.d_ff,) * 2, ("gate", "hidden")),
                norm="attn_norm",
                output="attn.Wo",
                feed_norm="mlp_norm",
                down="mlp.Wo",
            ),
            "encoder.norm": "model.final_norm",
            **word_head("head.dense", "head.norm", "decoder"),
        },
        prefix="model.",
    )

    vocab_size: int = 50368
    d_ff: int = 1152
    layers: int = 22
    position_rows: int = 8192
    segments: int = 0
    pad_id: int | None = 50283
    norm_epsilon: float = 1e-5
    norm_bias: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    decoder_bias: bool = True
    classifier_bias: bool = False
    classifier_activation: str = "gelu"
    local_attention: int = 128
    global_attn_every_n_layers: int = 3
    layer_types: tuple[str, ...] | None = None
    rope_parameters: LayerRopes = field(default_factory=lambda: LayerRopes(Rope(rope_theta=THETAS[FULL][1])))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_layer_kinds(self.layer_types, self.layers, self.local_attention)
        for rope in (self.rope_parameters.full_attention, self.rope_parameters.sliding_attention):
            rope.checked_width(self.model_type, self.d_model // self.heads)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        return super().from_json({**raw, "rope_parameters": LayerRopes(**{kind: _rope(raw, kind) for kind in THETAS})})

    @property
    def kinds(self) -> tuple[str, ...]:
        layers = range(self.layers)
        return self.layer_types or tuple(SLIDING if i % self.global_attn_every_n_layers else FULL for i in layers)

    def norm(self) -> Norm:
        return Norm(self.norm_epsilon, shift=self.norm_bias)

    def describe(self) -> Transformer:
        stack = Stack(self.embedding(), self.layers_of_the_stack(), self.norm())
        return replace(super().describe(), encoder=stack)

    def embedding(self) -> Embedding:
        """Words, normalised; positions turn queries and keys."""
        return Embedding(norm=self.norm())

    def layers_of_the_stack(self) -> tuple[Layer, ...]:
        """Local and global layers (Warner et al. 2024, §2.1.1); the first has no norm before its attention."""
        width, bias, layers = self.d_model // self.heads, self.attention_bias, []
        attention = Attention(self.heads, width, bias=bias, output_bias=bias)
        feed_forward = FeedForward(self.d_ff, ACTIVATION_NAMES[self.activation], gated=True, bias=self.mlp_bias)
        for kind in self.kinds:
            rope: Rope = getattr(self.rope_parameters, kind)
            window = None if kind == FULL else self.local_attention // 2 + 1
            own = replace(attention, rotary=rope.rotary(width), window=window)
            layers.append(Layer(own, feed_forward, self.norm(), "pre"))
        return (replace(layers[0], attention_place="none"), *layers[1:])

    def word_head(self) -> Head:
        activation = ACTIVATION_NAMES[self.classifier_activation]
        transform = Transform(activation=activation, norm=self.norm(), bias=self.classifier_bias)
        return Head(Embedding.table if self.tie_output else None, bias=self.decoder_bias, transform=transform)


def _rope(raw: Mapping[str, Any], kind: str) -> Rope:
    """The rotary settings of a kind of layer: a table of its own, or θ beside `rope_scaling`, which is for both."""
    theta, default = THETAS[kind]
    tables = raw.get("rope_parameters")
    if not isinstance(tables, Mapping | None) or not all(
        isinstance(each, Mapping | None) for each in (tables or {}).values()
    ):
        raise UsageError(f"rope_parameters {shown(tables)} has no table for each kind of layer: {', '.join(THETAS)}")
    scaling = raw.get("rope_scaling")
    own = {**((tables or {}).get(kind) or {}), **(scaling if isinstance(scaling, Mapping) else {})}
    own.setdefault("rope_theta", raw.get(theta, default))
    return read_rope({**raw, "rope_scaling": None, "rope_parameters": own})


THETA, NAMES_OF_THETA = 1000.0, ("rope_theta", "rotary_emb_base")


@dataclass(frozen=True)
class NomicBertConfig(EncoderConfig):
    """Nomic BERT: BERT with rotary positions and gated feed-forward layers."""

    model_type = "nomic_bert"
    title = "Nomic BERT"
    other_names: ClassVar[Mapping[str, str]] = {
        "hidden_size": "n_embd",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
        "intermediate_size": "n_inner",
        "max_position_embeddings": "n_positions",
        "layer_norm_eps": "layer_norm_epsilon",
    }
    fixed: ClassVar[Mapping[str, Any]] = {
        **EncoderConfig.fixed,
        "activation_function": "swiglu",
        "rotary_emb_fraction": 1.0,
        "rotary_scaling_factor": None,
        **dict.fromkeys(("prenorm", "parallel_block", "causal", "use_rms_norm", "rotary_emb_interleaved"), False),
        **dict.fromkeys(("qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"), False),
    }

    layouts = of_encoder("nomic_bert.pooler.dense")
    weights = replace(
        encoder_table(
            "nomic_bert.",
            word_head(
                f"{CLS}.transform.dense",
                (f"{CLS}.transform.layer_norm", f"{CLS}.transform.LayerNorm"),
                (f"{CLS}.decoder", CLS),
            ),
            {"embedding.norm": "nomic_bert.emb_ln"},
            layer="encoder.layers.{}",
            **FUSED,
            output="attn.out_proj",
            norm="norm1",
            hidden="mlp.fc11",
            gate="mlp.fc12",
            down="mlp.fc2",
            feed_norm="norm2",
        ),
        prefixes=("", "bert."),
    )

    vocab_size: int = 30528
    activation: str = "silu"
    position_rows: int = 2048
    rope_parameters: Rope = field(default_factory=lambda: Rope(rope_theta=THETA))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rope_parameters.checked_width(self.model_type, self.d_model // self.heads)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        rope, width = read_rope(raw, theta=NAMES_OF_THETA, default=THETA), raw.get("head_dim")
        config = super().from_json({**raw, "rope_parameters": rope})
        if width is not None and width != config.d_model // config.heads:
            raise UsageError(f"head_dim {width} is not hidden_size ÷ num_attention_heads: this is not supported")
        return config

    def embedding(self) -> Embedding:
        return replace(super().embedding(), positions="none", max_length=0)

    def layer(self) -> Layer:
        layer = super().layer()
        turn = self.rope_parameters.rotary(self.d_model // self.heads)
        attention = replace(layer.attention, bias=False, output_bias=False, rotary=turn)
        feed_forward = FeedForward(self.d_ff, ACTIVATION_NAMES[self.activation], gated=True)
        return replace(layer, attention=attention, feed_forward=feed_forward)
