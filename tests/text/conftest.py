"""Models of SentencePiece, which are trained where they are used."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest


@pytest.fixture(scope="session")
def train() -> Callable[..., bytes]:
    """The file of a model that its library trains on lines."""
    library = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")

    def trained_on(lines: list[str], **options: object) -> bytes:
        out = io.BytesIO()
        settings = {"vocab_size": 30, "minloglevel": 5} | options
        library.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, **settings)
        return out.getvalue()

    return trained_on
