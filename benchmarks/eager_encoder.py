"""BERT as transformers runs it eagerly on PyTorch: `eager_encoder.py D HEADS D_FF LAYERS N`.

Imports nothing of this project, so that it runs wherever torch and transformers are installed. Prints the median
seconds of a pass that gives attentions and hidden states.
"""

from __future__ import annotations

import statistics
import sys
import time

import torch
from transformers import BertConfig, BertModel

PASSES = 15


def main(width: int, heads: int, inner: int, layers: int, tokens: int) -> None:
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=inner,
        num_hidden_layers=layers,
        attn_implementation="eager",
    )
    model = BertModel(config, add_pooling_layer=False).eval()
    ids = torch.arange(tokens)[None] % 100
    taken = []
    with torch.inference_mode():
        for _ in range(PASSES):
            started = time.perf_counter()
            output = model(ids, output_attentions=True, output_hidden_states=True)
            taken.append(time.perf_counter() - started)
    if len(output.attentions) != layers or len(output.hidden_states) != layers + 1:
        raise SystemExit("not everything was recorded")
    print(statistics.median(taken[3:]))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
