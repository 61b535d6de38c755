"""The base of the published decoders: what their settings mean, and the whole from the layers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from tui_transformer.engine.ops import Scale
from tui_transformer.errors import UsageError
from tui_transformer.model.base_config import BaseConfig, check_divides
from tui_transformer.model.checks import (
    LARGEST_SIZE,
    Check,
    a_size,
    layers_count,
    one_of,
    optional,
    positive_float,
    shown,
    size_up_to,
    small,
    token_id,
    whole_number,
    whole_numbers,
)
from tui_transformer.model.description import (
    ACTIVATION_NAMES,
    Attention,
    Embedding,
    Experts,
    FeedForward,
    Head,
    Layer,
    Norm,
    Rotary,
    Stack,
    Transformer,
)
from tui_transformer.model.families import family
from tui_transformer.model.families.rope import (
    FULL,
    SLIDING,
    LayerRopes,
    Rope,
    check_layer_kinds,
    layer_kinds,
    read_layer_ropes,
    read_rope,
)
from tui_transformer.model.families.style import ALWAYS, LLAMA, Style, sizes_of
from tui_transformer.model.labels import ONE_STACK, Layout
from tui_transformer.model.layers import divided
from tui_transformer.model.weight_table import Part, WeightTable, layer_parts
from tui_transformer.records import dataclass, field, replace

# Where Llama's files have the weights, and most of its relatives'

LAYER, DECODER_LAYER = "model.layers.{}", "decoder.{}"
PARTS: Mapping[str, str | Part] = {
    "embedding.tokens": "model.embed_tokens",
    **layer_parts(
        DECODER_LAYER,
        LAYER,
        norm="input_layernorm",
        query="self_attn.q_proj",
        query_norm="self_attn.q_norm",
        key="self_attn.k_proj",
        key_norm="self_attn.k_norm",
        value="self_attn.v_proj",
        output="self_attn.o_proj",
        feed_norm="post_attention_layernorm",
        hidden="mlp.up_proj",
        gate="mlp.gate_proj",
        down="mlp.down_proj",
    ),
    "decoder.norm": "model.norm",
    "output.logits": "lm_head",
}
FEED_FORWARD = "decoder.{}.feed_forward"
EXPERT = f"{FEED_FORWARD}.experts.{{}}"


def llama_like(others: Mapping[str, str | Part] | None = None, /, **parts: str | Part) -> WeightTable:
    """The table of Llama but for some parts of its layers, by their short names, and others by those of their steps."""
    return WeightTable({**PARTS, **layer_parts(DECODER_LAYER, LAYER, **parts), **(others or {})}, prefix="model.")


def expert_parts(router: str, experts: str, hidden: str, gate: str, output: str) -> Mapping[str, str]:
    """The parts of layers with experts, of which each has tensors of its own."""
    names = {"hidden": hidden, "gate": gate, "output": output}
    each = {f"{EXPERT}.{part}": f"{LAYER}.{experts}.{{}}.{name}" for part, name in names.items()}
    return {f"{FEED_FORWARD}.router": f"{LAYER}.{router}", **each}


ROUTED_PARTS = expert_parts("mlp.gate", "mlp.experts", "up_proj", "gate_proj", "down_proj")


def less_one(tensor: str) -> Part:
    """γ of a norm, which files hold less 1."""
    return Part(tensor, plus=1.0)


# The settings


@dataclass(frozen=True)
class DecoderConfig(BaseConfig):
    """A configuration whose fields are the keys of `config.json`; their defaults are those of `SIZES`.

    Settings of windows, experts, multipliers and caps are known here by their names.

    Class attributes:
        style: How the layers differ from Llama's.

    Attributes:
        head: The file has logits: a matrix for them, or the embedding table used again; only its tensors tell.
        intermediate_size: Width of the feed-forward layers; None for 4 · hidden_size.
    """

    places_by_mask: ClassVar[bool] = True
    style: ClassVar[Style] = LLAMA
    weights: ClassVar[WeightTable] = llama_like()
    of_the_file: ClassVar[frozenset[str]] = frozenset({"head"})
    layouts: ClassVar[Mapping[str, Layout]] = ONE_STACK
    fixed: ClassVar[Mapping[str, Any]] = {"is_causal": True}
    checks: ClassVar[Mapping[str, Check]] = {
        "pad_token_id": token_id,
        "intermediate_size": a_size,
        "num_hidden_layers": layers_count,
        "hidden_act": one_of(tuple(ACTIVATION_NAMES)),
        "rms_norm_eps": small,
        "layer_types": optional(layer_kinds),
        "max_window_layers": whole_number,
        "num_experts": size_up_to(4096),
        "mlp_only_layers": whole_numbers,
        "logit_scale": positive_float,
        **dict.fromkeys(("final_logit_softcapping", "attn_logit_softcapping"), optional(positive_float)),
    }

    vocab_size: int
    tie_word_embeddings: bool
    pad_token_id: int | None
    head: bool = field(default=True, kw_only=True)
    hidden_size: int
    intermediate_size: int | None
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int | None
    head_dim: int | None
    hidden_act: str
    max_position_embeddings: int
    rms_norm_eps: float
    rope_parameters: Rope | LayerRopes = field(default_factory=Rope)

    def __init_subclass__(cls) -> None:
        """Give the fields the defaults of `SIZES`, and those that the family has besides."""
        sizes, said = sizes_of(cls.model_type), vars(cls)
        cls.title = sizes.pop("title")
        del sizes["rope_theta"]
        cls.defaults = {**sizes, **said.get("defaults", {})}
        if cls.style.positions != "rotary":  # then every query head has a key head
            unsaid = frozenset({"num_key_value_heads", "head_dim", "rope_parameters"})
            cls.of_the_file = unsaid | said.get("of_the_file", frozenset())
        if sizes["intermediate_size"] is None:
            cls.checks = {"intermediate_size": optional(a_size), **said.get("checks", {})}
        super().__init_subclass__()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head_dim is None or self.style.heads_divide:
            size, heads = self.key("hidden_size"), self.key("num_attention_heads")
            check_divides(size, self.hidden_size, heads, self.num_attention_heads)
        check_divides("num_attention_heads", self.num_attention_heads, "num_key_value_heads", self.kv_heads)
        for rope in self.ropes.values():
            turned = rope.checked_width(self.model_type, self.head_width, in_part=self.style.part is not None)
            if self.style.in_pairs and self.head_width % turned:
                raise UsageError(
                    f"{turned} columns that are turned do not divide head_dim {self.head_width}: this is not supported"
                )
        check_layer_kinds(self.setting("layer_types"), self.num_hidden_layers, self.window)
        chosen, experts = self.setting("num_experts_per_tok", 0), self.setting("num_experts", 0)
        if chosen > experts:
            raise UsageError(f"num_experts_per_tok {shown(chosen)} is more than the {experts} experts")
        if "mlp_only_layers" in self.defaults and self.setting("use_sliding_window"):
            a_size("sliding_window", self.window)

    def setting(self, name: str, without: Any = None) -> Any:
        """A setting that not all families have, or what holds without it."""
        return True if name == ALWAYS else getattr(self, name, without)

    @property
    def tied(self) -> bool:
        return self.tie_word_embeddings

    @property
    def kv_heads(self) -> int:
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def head_width(self) -> int:
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def longest(self) -> int:
        """More than the model was made for, where positions are computed."""
        return self.max_length if self.style.positions == "learned" else LARGEST_SIZE

    def keeps(self, past: int, length: int) -> bool:
        turns = [rope.rotary(self.head_width) for rope in self.ropes.values()]
        return all(turn.of(past) == turn.of(length) for turn in turns)

    # The file

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; null and 0 of some settings are none, as published."""
        pad, begins, ends = (raw.get(f"{name}_token_id") for name in ("pad", "bos", "eos"))
        if pad in (-1, begins, *(ends if isinstance(ends, list) else [ends])):  # no padding, or a real token
            pad = None
        both_sides = raw.get("use_bidirectional_attention") or None
        given = {**raw, "pad_token_id": pad, "use_bidirectional_attention": both_sides}
        if "mlp_only_layers" in cls.defaults:
            given["mlp_only_layers"] = raw.get("mlp_only_layers") or ()
            given |= {"sliding_window": None} if raw.get("sliding_window") == 0 else {}
        rope = {"rope_parameters": cls.read_rope(raw)} if cls.style.positions == "rotary" else {}
        return super().from_json({**given, **rope})

    @classmethod
    def read_rope(cls, raw: Mapping[str, Any]) -> Rope | LayerRopes:
        style, theta = cls.style, sizes_of(cls.model_type)["rope_theta"]
        context = sizes_of(cls.model_type)["max_position_embeddings"]
        if style.theta_of_windows is not None:
            key, of_windows = style.theta_of_windows
            return read_layer_ropes(raw, theta, of_windows, key, context)
        if style.usual_rope and raw.get("rope_parameters") is None and not raw.get("rope_scaling"):
            raw = {**raw, "rope_parameters": style.usual_rope}
        return read_rope(raw, default=theta, whole=style.part or 1.0, context=context)

    def fitted(self, names: frozenset[str]) -> Self:
        """Tied or not, with logits or without, as the tensors tell."""
        own = self.weights.own_head(self, names)
        tied = self.tie_word_embeddings and not own
        bare = self.style.logits_bias and not self.weights.has("output.logits.bias", names)
        return replace(self, tie_word_embeddings=tied, head=own or (tied and not bare))

    # Windows and rotary positions

    @property
    def window(self) -> int | None:
        """How many keys a query of a layer with a window sees, where windows are used."""
        used = self.setting("use_sliding_window", without=True)
        window: int | None = self.setting("sliding_window") if used else None
        return window

    @property
    def kinds(self) -> tuple[str, ...]:
        kinds: tuple[str, ...] | None = self.setting("layer_types")
        return kinds or tuple(SLIDING if self.style.slides(self, i) else FULL for i in range(self.num_hidden_layers))

    @property
    def ropes(self) -> Mapping[str, Rope]:
        """The rotary positions of every kind of layer."""
        ropes = self.rope_parameters if self.style.positions == "rotary" else None
        return dict.fromkeys((FULL, SLIDING), ropes) if isinstance(ropes, Rope) else vars(ropes) if ropes else {}

    def rotary(self, kind: str) -> Rotary | None:
        rope = self.ropes.get(kind)
        return None if rope is None else rope.rotary(self.head_width)

    # The model

    def describe(self) -> Transformer:
        """Tokens → embedding → the layers → norm → logits, where there are any (Radford et al. 2019, §2.3)."""
        stack = Stack(self.embedding(), self.layers(), self.norm())
        return Transformer(
            self.vocab_size, self.hidden_size, decoder=stack, head=self.word_head() if self.head else None
        )

    def embedding(self) -> Embedding:
        rows = self.max_position_embeddings if self.style.positions == "learned" else 0
        kind = "learned" if rows else "none"
        scale = math.sqrt(self.hidden_size) if self.style.root_scaled else self.setting("embedding_multiplier", 1.0)
        return Embedding(scale=scale, positions=kind, max_length=rows)

    def norm(self) -> Norm:
        return Norm(self.rms_norm_eps, self.style.norm, self.style.shift)

    def attention(self) -> Attention:
        """Grouped keys (Touvron et al. 2023, §2.2; Ainslie et al. 2023), as far as all layers are alike."""
        style = self.style
        normalised = style.head_norms and self.setting(style.head_norms_where)
        multiplier, divisor = self.setting("attention_multiplier"), self.setting("query_pre_attn_scalar")
        output_bias = style.bias if style.output_bias is None else style.output_bias
        scale = style.scale if multiplier is None else Scale(multiplier, f"· {multiplier:g}")
        return Attention(
            self.num_attention_heads,
            self.head_width,
            self.kv_heads,
            bias=bool(self.setting(style.bias)),
            output_bias=bool(self.setting(output_bias)),
            scale=scale if divisor is None else divided(divisor),
            head_norm=replace(self.norm(), shift=style.head_norms != "own") if normalised else None,
            head_norms=style.head_norms or "alike",
            causal=True,
            cap=self.setting("attn_logit_softcapping"),
        )

    def feed_forward(self) -> FeedForward:
        """Gated (Touvron et al. 2023, §2.2), unless the family says otherwise."""
        width, bias = self.intermediate_size or 4 * self.hidden_size, bool(self.setting(self.style.feed_forward_bias))
        return FeedForward(width, ACTIVATION_NAMES[self.hidden_act], gated=self.style.gated, bias=bias)

    def experts(self) -> Experts | None:
        if (count := self.setting("num_experts")) is None:
            return None
        whole = self.feed_forward()
        one = replace(whole, width=self.setting("moe_intermediate_size", whole.width))
        shared = self.setting("shared_expert_intermediate_size")
        return Experts(
            count,
            self.setting("num_experts_per_tok"),
            one,
            among_chosen=self.setting("norm_topk_prob", without=True),
            shared=None if shared is None else replace(whole, width=shared),
        )

    def layers(self) -> tuple[Layer, ...]:
        """Every layer with its window (Jiang et al. 2023, §2), its rotary positions and its experts."""
        attention, feed_forward, experts, layers = self.attention(), self.feed_forward(), self.experts(), []
        parallel = self.style.parallel if self.setting("use_parallel_residual", without=True) else ""
        turns = {kind: self.rotary(kind) for kind in set(self.kinds)}
        dense, step = self.setting("mlp_only_layers", ()), self.setting("decoder_sparse_step", 1)
        for number, kind in enumerate(self.kinds):
            window = self.window if kind == SLIDING else None
            rotary = turns[kind] if self.style.turns(self, number, window) else None
            own = replace(attention, window=window, rotary=rotary)
            fed = feed_forward if experts is None or number in dense or (number + 1) % step else experts
            scale = self.setting("residual_multiplier", 1.0)
            layers.append(Layer(own, fed, self.norm(), self.style.place, parallel=parallel, residual_scale=scale))
        return tuple(layers)

    def word_head(self) -> Head:
        scale, cap = self.setting("logit_scale"), self.setting("final_logit_softcapping")
        scale = 1.0 / self.setting("logits_scaling", 1.0) if scale is None else scale
        return Head(Embedding.table if self.tie_word_embeddings else None, self.style.logits_bias, scale, cap)


def decoder(
    model_type: str, style: Style = LLAMA, defaults: Mapping[str, Any] | None = None, **said: Any
) -> type[DecoderConfig]:
    """The configuration of a family that is told by its style, its own settings and other class attributes."""
    name = "".join(filter(str.isalnum, sizes_of(model_type)["title"]))
    return family(f"{name}Config", DecoderConfig, model_type, defaults, style=style, **said)
