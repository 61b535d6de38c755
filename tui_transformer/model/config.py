"""The configuration of the project's own models: what `config.json` holds, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from tui_transformer.errors import UsageError
from tui_transformer.model.base_config import BaseConfig
from tui_transformer.model.checks import Check, one_of, shown, size_up_to, small, token_id, truth
from tui_transformer.model.description import NORM_PLACES, POSITIONS
from tui_transformer.model.layers import ACTIVATIONS

Architecture = Literal["encoder", "decoder", "encoder-decoder"]
ARCHITECTURES = ("encoder", "decoder", "encoder-decoder")
MAX_LENGTH = 4096
LARGEST_SIZE = 1 << 24
"""No size of a model that fits any computer is larger; a config that says more is a mistake."""

MOST_LAYERS = 1024
"""Every layer is a dozen steps with names."""


OF_A_DECODER = ("decoder_layers", "start_id")
"""Settings that only an encoder–decoder has."""


@dataclass(frozen=True)
class Config(BaseConfig):
    """Sizes and choices of a transformer as the 2017 paper has it.

    The defaults are those of the classic tutorials' encoder.

    Raises:
        UsageError: A size or choice that cannot be; the message names it and says what can.
    """

    model_type: ClassVar[str] = "vanilla"
    checks: ClassVar[Mapping[str, Check]] = {
        "architecture": one_of(ARCHITECTURES),
        **dict.fromkeys(("vocab_size", "d_model", "heads", "d_ff", "max_length"), size_up_to(LARGEST_SIZE)),
        **dict.fromkeys(("layers", "decoder_layers"), size_up_to(MOST_LAYERS)),
        **dict.fromkeys(("pad_id", "start_id"), token_id),
        "norm": one_of(NORM_PLACES),
        "norm_epsilon": small,
        "activation": one_of(tuple(ACTIVATIONS)),
        "positions": one_of(POSITIONS),
        **dict.fromkeys(("scale_embedding", "bias", "tie_output", "causal", "padding_mask"), truth),
    }

    architecture: str = "encoder"
    vocab_size: int = 8
    d_model: int = 8
    heads: int = 8
    d_ff: int = 128
    layers: int = 1
    decoder_layers: int = 1
    max_length: int = MAX_LENGTH
    pad_id: int | None = None
    start_id: int | None = None
    norm: str = "post"
    norm_epsilon: float = 1e-5
    activation: str = "relu"
    positions: str = "sinusoidal"
    scale_embedding: bool = False
    bias: bool = False
    tie_output: bool = False
    causal: bool = False
    padding_mask: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model % self.heads:
            raise UsageError(
                f"d_model {self.d_model} is not divisible by {self.heads} heads: heads can be {_divisors(self.d_model)}"
            )
        for key in ("pad_id", "start_id"):
            if (getattr(self, key) or 0) >= self.vocab_size:
                raise UsageError(f"{key} {shown(getattr(self, key))} is outside the vocabulary of {self.vocab_size}")

    @property
    def places_by_mask(self) -> bool:
        """The first token that is no padding has the first place: it is what a decoder goes on from."""
        return self.architecture == "decoder"

    @property
    def has_decoder(self) -> bool:
        """Whether a decoder reads a sequence of its own beside the encoder's output."""
        return self.architecture == "encoder-decoder"

    @property
    def stack(self) -> str:
        """The name that the steps of the first layers begin with."""
        return "decoder" if self.architecture == "decoder" else "encoder"

    @property
    def masks_future(self) -> bool:
        """A query may not look at later keys."""
        return self.causal or self.architecture == "decoder"

    @property
    def summary(self) -> str:
        """The sizes in one line."""
        layers = f"{self.layers} layer" + ("s" if self.layers > 1 else "")
        if self.has_decoder:
            layers = f"{self.layers} + {self.decoder_layers} layers"
        heads = f"{self.heads} head" + ("s" if self.heads > 1 else "")
        return f"{self.architecture} · d_model {self.d_model} · {heads} · d_ff {self.d_ff} · {layers}"

    def to_json(self) -> dict[str, Any]:
        """The keys of `config.json`."""
        values = super().to_json()
        return values if self.has_decoder else {key: values[key] for key in values if key not in OF_A_DECODER}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Self:
        """The configuration that a `config.json` describes; a decoder has as many layers where it says nothing else."""
        both = raw.get("architecture") == "encoder-decoder" and "layers" in raw
        return super().from_json({"decoder_layers": raw["layers"], **raw} if both else raw)


def _divisors(number: int) -> str:
    """The first few divisors, as text."""
    divisors = [i for i in range(1, min(number, 4096) + 1) if number % i == 0]
    return ", ".join(map(str, divisors[:12]))
