"""The operations, a file a kind: forward, backward, the part that a window needs, the terms of a cell."""

# mypy: implicit-reexport
# ruff: noqa: F401

from tui_transformer.engine.ops.activations import (
    ClampedSwish,
    Gelu,
    GeluTanh,
    QuickGelu,
    Relu,
    ReluSquared,
    Sigmoid,
    Silu,
    SoftCap,
    Tanh,
)
from tui_transformer.engine.ops.attention import Context, Mask, Scores, Softmax, SoftmaxWithSink
from tui_transformer.engine.ops.base import Op
from tui_transformer.engine.ops.elementwise import Add, ClampedGate, Dropout, Gate, Scale, Subtract
from tui_transformer.engine.ops.experts import ExpertWeights, OfExpert, WeightedExperts
from tui_transformer.engine.ops.features import Changed, FromSize, GatedRelu, Jump, JumpRelu, Largest, ToSize
from tui_transformer.engine.ops.lookups import Embed, Extend, Given, MergeHeads, Parameter
from tui_transformer.engine.ops.norms import LayerNorm, LayerNormByHead, NormOfSum, RmsNorm, RmsNormOfHeads
from tui_transformer.engine.ops.pooling import Concat, Pool, UnitLength
from tui_transformer.engine.ops.positions import Rotate, Sinusoid
from tui_transformer.engine.ops.products import Linear, Project, Unembed
from tui_transformer.engine.ops.relative_positions import Disentangle, DistanceBias, DistanceScores, RelativeBias
