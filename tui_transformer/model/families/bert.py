"""BERT (Devlin et al. 2018) and the encoders like it, which were trained to fill in masked words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from tui_transformer.engine.backend import Host
from tui_transformer.errors import UsageError
from tui_transformer.model.base_config import BaseConfig, check_divides, check_ids, counted, unpadded
from tui_transformer.model.checks import Check, layers_count, one_of, shown, small, token_id
from tui_transformer.model.description import (
    ACTIVATION_NAMES,
    Embedding,
    Head,
    Layer,
    Norm,
    Stack,
    Transform,
    Transformer,
    biased_layer,
)
from tui_transformer.model.families import family
from tui_transformer.model.labels import REPLACED, Layout, of_encoder
from tui_transformer.model.layers import RelativePositions
from tui_transformer.model.weight_table import Part, WeightTable, layer_parts
from tui_transformer.records import dataclass, replace


@dataclass(frozen=True)
class EncoderConfig(BaseConfig):
    """Sizes and choices of an encoder. A family gives the names that they have in its `config.json`.

    Class attributes:
        first_row: Of the table of positions that tokens use; None for the one after the pad ID.
        head_gelu: The head has GELU, whatever the layers have.

    Attributes:
        position_rows: Rows of the table of positions.
        segments: Segments (token types), 0 for none.
        activation: A key of `ACTIVATION_NAMES`.
        tie_output: The head uses the embedding table again.
        head: The file has the head that gives a logit for every word; only its tensors tell.
    """

    first_row: ClassVar[int | None] = 0
    head_gelu: ClassVar[bool] = False
    keys: ClassVar[Mapping[str, str]] = {
        "d_model": "hidden_size",
        "heads": "num_attention_heads",
        "d_ff": "intermediate_size",
        "layers": "num_hidden_layers",
        "position_rows": "max_position_embeddings",
        "segments": "type_vocab_size",
        "pad_id": "pad_token_id",
        "activation": "hidden_act",
        "norm_epsilon": "layer_norm_eps",
        "tie_output": "tie_word_embeddings",
        "table_width": "embedding_size",
    }
    of_the_file: ClassVar[frozenset[str]] = frozenset({"head"})
    fixed: ClassVar[Mapping[str, Any]] = {
        "is_decoder": False,
        "add_cross_attention": False,
        "is_encoder_decoder": False,
        "position_embedding_type": "absolute",
        "pruned_heads": {},
    }
    checks: ClassVar[Mapping[str, Check]] = {
        "layers": layers_count,
        "pad_id": token_id,
        "activation": one_of(tuple(ACTIVATION_NAMES)),
        "norm_epsilon": small,
    }

    vocab_size: int = 30522
    d_model: int = 768
    heads: int = 12
    d_ff: int = 3072
    layers: int = 12
    position_rows: int = 512
    segments: int = 2
    pad_id: int | None = 0
    activation: str = "gelu"
    norm_epsilon: float = 1e-12
    tie_output: bool = True
    head: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_divides(self.key("d_model"), self.d_model, self.key("heads"), self.heads)
        check_ids(self, "pad_id")
        if self.first_row is None and (self.pad_id is None or self.max_length < 1):
            rows = self.position_rows
            raise UsageError(
                f"pad_token_id {shown(self.pad_id)} leaves no position: they count from it, up to {rows} rows"
            )

    @property
    def max_length(self) -> int:
        """A position for every token; the rows before the first token's are for none."""
        first = (self.pad_id or 0) + 1 if self.first_row is None else self.first_row
        return self.position_rows - first

    def places(self, rows: Host) -> Host:
        """Rows of the table of positions; where the first is not for tokens, padding has no row of its own."""
        if self.first_row == 0:
            return counted(rows)
        return unpadded(rows, self.pad_id if self.first_row is None else self.first_row - 1)

    @property
    def tied(self) -> bool:
        return self.tie_output

    def fitted(self, names: frozenset[str]) -> Self:
        """With the head, where the file has it, tied or not."""
        own = self.weights.own_head(self, names)
        return replace(
            self, head=self.weights.has("output.transform.hidden.weight", names), tie_output=self.tie_output and not own
        )

    def describe(self) -> Transformer:
        """Tokens → embedding → N layers, and where the file has the head → logits (Devlin et al. 2018, §3)."""
        stack = Stack(self.embedding(), self.layers_of_the_stack())
        return Transformer(self.vocab_size, self.d_model, encoder=stack, head=self.word_head() if self.head else None)

    @property
    def projected(self) -> bool:
        """There is a matrix between the embedding, of another width, and the layers (Lan et al. 2020, §3.1)."""
        return getattr(self, "table_width", self.d_model) != self.d_model

    def embedding(self) -> Embedding:
        return Embedding(
            width=getattr(self, "table_width", 0) if self.projected else 0,
            positions="learned",
            max_length=self.position_rows,
            segments=self.segments,
            norm=Norm(self.norm_epsilon),
        )

    def layers_of_the_stack(self) -> tuple[Layer, ...]:
        return (self.layer(),) * self.layers

    def layer(self) -> Layer:
        return biased_layer(self.d_model, self.heads, self.d_ff, self.activation, Norm(self.norm_epsilon), "post")

    def word_head(self) -> Head:
        """A matrix to the width of the embedding, activation and norm of its own, then a logit for every word."""
        activation = "gelu" if self.head_gelu else ACTIVATION_NAMES[self.activation]
        width = getattr(self, "table_width", 0)
        transform = Transform(width, activation=activation, norm=Norm(self.norm_epsilon))
        return Head(Embedding.table if self.tie_output else None, bias=True, transform=transform)


ENCODER_LAYER = "encoder.{}"
BERT_LAYER: dict[str, str | Part] = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "output": "attention.output.dense",
    "norm": "attention.output.LayerNorm",
    "hidden": "intermediate.dense",
    "down": "output.dense",
    "feed_norm": "output.LayerNorm",
}
EMBEDDINGS = {
    "tokens": "word_embeddings",
    "positions": "position_embeddings",
    "segments": "token_type_embeddings",
    "norm": "LayerNorm",
}
Tensors = str | tuple[str, ...]


def word_head(hidden: Tensors, norm: Tensors, logits: Tensors) -> dict[str, str | Part]:
    """The parts of the head that fills in words."""
    tensors = {"transform.hidden": hidden, "transform.norm": norm, "logits": logits}
    return {f"output.{step}": Part(each) for step, each in tensors.items()}


def encoder_table(
    prefix: str,
    head: Mapping[str, str | Part],
    others: Mapping[str, str | Part] | None = None,
    /,
    layer: str = "encoder.layer.{}",
    **parts: str | Part,
) -> WeightTable:
    """The table of BERT but for these steps of its layers, the head, and others by the names of their steps."""
    embeddings = {f"embedding.{step}": f"{prefix}embeddings.{tensor}" for step, tensor in EMBEDDINGS.items()}
    layers = layer_parts(ENCODER_LAYER, f"{prefix}{layer}", **(BERT_LAYER | parts))
    return WeightTable({**embeddings, **layers, **head, **(others or {})}, prefix)


CLS = "cls.predictions"
BERT_HEAD = word_head(f"{CLS}.transform.dense", f"{CLS}.transform.LayerNorm", (f"{CLS}.decoder", CLS))


BertConfig = family(
    "BertConfig",
    EncoderConfig,
    "bert",
    layouts=of_encoder("bert.pooler.dense"),
    weights=encoder_table("bert.", BERT_HEAD),
)
"""BERT."""

LM_HEAD = word_head("lm_head.dense", "lm_head.layer_norm", ("lm_head.decoder", "lm_head"))
LM_LAYOUTS = of_encoder("classifier.dense", logits="classifier.out_proj")
ROBERTA: Mapping[str, Any] = {
    "first_row": None,
    "head_gelu": True,
    "layouts": LM_LAYOUTS,
    "weights": replace(encoder_table("roberta.", LM_HEAD), prefixes=("", "data2vec_text.")),
}

RobertaConfig = family("RobertaConfig", EncoderConfig, "roberta", {"vocab_size": 50265, "pad_id": 1}, **ROBERTA)
"""RoBERTa (Liu et al. 2019): BERT with other training, and places that count from behind the pad ID."""

XlmRobertaConfig = family("XlmRobertaConfig", EncoderConfig, "xlm-roberta", {"pad_id": 1}, **ROBERTA)
"""XLM-R (Conneau et al. 2020): RoBERTa for a hundred languages, with other defaults."""

BUCKETS, LIMIT = 32, 128
"""Distances of MPNet have so many buckets, whatever the table has rows; farther keys share the last (as published)."""

BIAS = RelativePositions("encoder.biased.weight", BUCKETS, LIMIT, bidirectional=True, in_order=True)


@dataclass(frozen=True)
class MPNetConfig(EncoderConfig):
    """MPNet (Song et al. 2020): RoBERTa's head, places as if the pad ID were 1, scores with a bias by distance."""

    model_type = "mpnet"
    title = "MPNet"
    first_row = 2
    head_gelu = True
    of_the_file = frozenset({"segments"})
    layouts = LM_LAYOUTS
    fixed: ClassVar[Mapping[str, Any]] = {**EncoderConfig.fixed, "relative_attention_num_buckets": BUCKETS}
    weights = encoder_table(
        "mpnet.",
        LM_HEAD,
        {"encoder.biased": "mpnet.encoder.relative_attention_bias"},
        query="attention.attn.q",
        key="attention.attn.k",
        value="attention.attn.v",
        output="attention.attn.o",
        norm="attention.LayerNorm",
    )

    vocab_size: int = 30527
    pad_id: int | None = 1
    segments: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_length < 1:
            raise UsageError(f"max_position_embeddings {self.position_rows} leaves no position behind the first two")

    def layer(self) -> Layer:
        layer = super().layer()
        return replace(layer, attention=replace(layer.attention, score_bias=BIAS))


@dataclass(frozen=True)
class DistilBertConfig(EncoderConfig):
    """DistilBERT (Sanh et al. 2019): half of BERT's layers, without segments, trained to imitate it.

    ε is not a setting.

    Attributes:
        sinusoidal: Positions are sines and cosines and not in the file.
    """

    model_type = "distilbert"
    keys: ClassVar[Mapping[str, str]] = {
        "d_model": "dim",
        "heads": "n_heads",
        "d_ff": "hidden_dim",
        "layers": "n_layers",
        "position_rows": "max_position_embeddings",
        "pad_id": "pad_token_id",
        "sinusoidal": "sinusoidal_pos_embds",
        "tie_output": "tie_word_embeddings",
    }
    other_names: ClassVar[Mapping[str, str]] = {
        "dim": "hidden_size",
        "n_heads": "num_attention_heads",
        "n_layers": "num_hidden_layers",
    }
    of_the_file = frozenset({"segments", "norm_epsilon"})
    layouts = of_encoder("pre_classifier", "relu")
    weights = encoder_table(
        "distilbert.",
        word_head("vocab_transform", "vocab_layer_norm", "vocab_projector"),
        layer="transformer.layer.{}",
        query="attention.q_lin",
        key="attention.k_lin",
        value="attention.v_lin",
        output="attention.out_lin",
        norm="sa_layer_norm",
        hidden="ffn.lin1",
        down="ffn.lin2",
        feed_norm="output_layer_norm",
    )

    layers: int = 6
    segments: int = 0
    sinusoidal: bool = False

    def fitted(self, names: frozenset[str]) -> Self:
        """With the head, where the file has it; a table of positions in the file counts, whatever config.json says.

        Published files say `sinusoidal_pos_embds` and hold a table that training has moved away from sines.
        """
        table = self.weights.has("embedding.positions.weight", names)
        return replace(super().fitted(names), sinusoidal=self.sinusoidal and not table)

    def embedding(self) -> Embedding:
        return replace(super().embedding(), positions="sinusoidal" if self.sinusoidal else "learned")


# With an embedding of its own width


ElectraConfig = family(
    "ElectraConfig",
    EncoderConfig,
    "electra",
    {"d_model": 256, "heads": 4, "d_ff": 1024, "table_width": 128},
    head_gelu=True,
    layouts={
        **of_encoder("classifier.dense", "gelu", "classifier.out_proj"),
        REPLACED: Layout(("discriminator_predictions.dense_prediction",), "discriminator_predictions.dense"),
    },
    weights=encoder_table(
        "electra.",
        word_head("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head"),
        {"embedding.projected": "electra.embeddings_project"},
    ),
)
"""ELECTRA (Clark et al. 2020): BERT with a narrow embedding, `table_width`; its generator fills in masked words."""
