"""The same training step in PyTorch, eager, in a process of its own: a line in, the seconds of a step out."""

from __future__ import annotations

import math
import sys
import time

import torch
from torch import nn
from torch.nn import functional


class Layer(nn.Module):
    """Pre-norm self-attention and feed-forward."""

    def __init__(self, width: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.hidden, self.back = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """As the paper has it."""
        batch, length, width = x.shape
        normal = self.first(x)
        parts = (matrix(normal) for matrix in (self.query, self.key, self.value))
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        scores = query @ key.transpose(-1, -2) / math.sqrt(width // self.heads)
        context = scores.masked_fill(mask, -math.inf).softmax(-1) @ value
        attended = self.output(context.transpose(1, 2).reshape(batch, length, width))
        x = x + functional.dropout(attended, self.dropout)
        return x + functional.dropout(self.back(functional.relu(self.hidden(self.second(x)))), self.dropout)


class Decoder(nn.Module):
    """Embedding, sinusoids, layers, logits."""

    def __init__(self, words: int, width: int, heads: int, layers: int, length: int, dropout: float) -> None:
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(words, width), dropout
        self.layers = nn.ModuleList(Layer(width, heads, 4 * width, dropout) for _ in range(layers))
        self.norm, self.logits = nn.LayerNorm(width), nn.Linear(width, words)
        angles = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
        self.places = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        self.mask = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits of every position."""
        x = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim) + self.places
        x = functional.dropout(x, self.dropout)
        for layer in self.layers:
            x = layer(x, self.mask)
        return self.logits(self.norm(x))


def main() -> None:
    words, width, heads, layers, batch, length = map(int, sys.argv[1:7])
    torch.manual_seed(0)
    model = Decoder(words, width, heads, layers, length, float(sys.argv[7]))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    ids, targets = torch.randint(0, words, (2, batch, length))
    for _ in sys.stdin:
        started = time.perf_counter()
        optimizer.zero_grad()
        functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(time.perf_counter() - started, flush=True)


if __name__ == "__main__":
    main()
