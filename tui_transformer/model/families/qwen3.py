"""Qwen3 (Yang et al. 2025) in its published checkpoints: every query and key head is normalised before it is turned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from tui_transformer.model.checks import Check, truth
from tui_transformer.model.families.base import Family
from tui_transformer.model.families.llama import NAMES, program, stored
from tui_transformer.model.families.qwen2 import QwenConfig
from tui_transformer.model.layers import ATTENTION_MATRICES, Norm


@dataclass(frozen=True)
class Qwen3Config(QwenConfig):
    """The keys of Qwen3's `config.json` that change what is computed."""

    model_type: ClassVar[str] = "qwen3"
    title: ClassVar[str] = "Qwen3"
    checks: ClassVar[Mapping[str, Check]] = {**QwenConfig.checks, "attention_bias": truth}

    head_dim: int | None = 128
    attention_bias: bool = False

    @property
    def biased(self) -> frozenset[str]:
        """The matrices that have a bias."""
        return ATTENTION_MATRICES if self.attention_bias else frozenset()

    @property
    def head_norm(self) -> Norm:
        """RMS norm over the width of a head."""
        return Norm(self.rms_norm_eps, "rms")


QWEN3 = Family(Qwen3Config.model_type, Qwen3Config.from_json, program, stored, fitted=NAMES.fitted, copies=NAMES.copies)
