"""The transformer of the 2017 paper, in the project's own checkpoints."""

from __future__ import annotations

from tui_transformer.engine.axis import Axis
from tui_transformer.engine.ops import Mask
from tui_transformer.engine.program import Builder, Program
from tui_transformer.model.config import Config
from tui_transformer.model.families.base import Family
from tui_transformer.model.layers import embedding, encoder, output_head, sequence


def program(config: Config, length: int) -> Program:
    """Tokens → embedding → N layers → logits (Vaswani et al. 2017)."""
    build = Builder()
    vocabulary = Axis("vocabulary", config.vocab_size)
    tokens = sequence(build, "tokens", length)
    x = embedding(
        build,
        tokens,
        vocabulary,
        config.sizes,
        config.positions,
        config.max_length,
        scaled=config.scale_embedding,
    )
    mask = Mask(causal=config.masks_future)
    x = encoder(build.within(config.stack), x, tokens, config.layers, config.sizes, mask)
    output_head(build, x, vocabulary, config.sizes, tied=config.tie_output)
    return build.program()


VANILLA = Family("vanilla", Config.from_json, program)
