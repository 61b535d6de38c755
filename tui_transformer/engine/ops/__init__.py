"""The operations, one file each: forward, backward, the part that a window needs, the terms of a cell."""

from tui_transformer.engine.ops.add import Add
from tui_transformer.engine.ops.base import Op
from tui_transformer.engine.ops.clamped import ClampedGate, ClampedSwish
from tui_transformer.engine.ops.context import Context
from tui_transformer.engine.ops.disentangled import Disentangle, DistanceScores
from tui_transformer.engine.ops.distance_bias import DistanceBias
from tui_transformer.engine.ops.dropout import Dropout
from tui_transformer.engine.ops.embed import Embed
from tui_transformer.engine.ops.expert_weights import ExpertWeights
from tui_transformer.engine.ops.extend import Extend
from tui_transformer.engine.ops.gate import Gate
from tui_transformer.engine.ops.gelu import Gelu
from tui_transformer.engine.ops.gelu_tanh import GeluTanh
from tui_transformer.engine.ops.given import Given
from tui_transformer.engine.ops.layer_norm import LayerNorm
from tui_transformer.engine.ops.linear import Linear
from tui_transformer.engine.ops.mask import Mask
from tui_transformer.engine.ops.merge_heads import MergeHeads
from tui_transformer.engine.ops.norm_of_sum import NormOfSum
from tui_transformer.engine.ops.norms_of_heads import LayerNormByHead, RmsNormOfHeads
from tui_transformer.engine.ops.of_expert import OfExpert
from tui_transformer.engine.ops.parameter import Parameter
from tui_transformer.engine.ops.pool import Pool
from tui_transformer.engine.ops.project import Project
from tui_transformer.engine.ops.quick_gelu import QuickGelu
from tui_transformer.engine.ops.relative_bias import RelativeBias
from tui_transformer.engine.ops.relu import Relu
from tui_transformer.engine.ops.relu_squared import ReluSquared
from tui_transformer.engine.ops.rms_norm import RmsNorm
from tui_transformer.engine.ops.rotate import Rotate
from tui_transformer.engine.ops.scale import Scale
from tui_transformer.engine.ops.scores import Scores
from tui_transformer.engine.ops.side_by_side import SideBySide
from tui_transformer.engine.ops.sigmoid import Sigmoid
from tui_transformer.engine.ops.silu import Silu
from tui_transformer.engine.ops.sinusoid import Sinusoid
from tui_transformer.engine.ops.soft_cap import SoftCap
from tui_transformer.engine.ops.softmax import Softmax
from tui_transformer.engine.ops.softmax_with_sink import SoftmaxWithSink
from tui_transformer.engine.ops.tanh import Tanh
from tui_transformer.engine.ops.unembed import Unembed
from tui_transformer.engine.ops.unit_length import UnitLength
from tui_transformer.engine.ops.weighted_experts import WeightedExperts

__all__ = [
    "Add",
    "ClampedGate",
    "ClampedSwish",
    "Context",
    "Disentangle",
    "DistanceBias",
    "DistanceScores",
    "Dropout",
    "Embed",
    "ExpertWeights",
    "Extend",
    "Gate",
    "Gelu",
    "GeluTanh",
    "Given",
    "LayerNorm",
    "LayerNormByHead",
    "Linear",
    "Mask",
    "MergeHeads",
    "NormOfSum",
    "OfExpert",
    "Op",
    "Parameter",
    "Pool",
    "Project",
    "QuickGelu",
    "RelativeBias",
    "Relu",
    "ReluSquared",
    "RmsNorm",
    "RmsNormOfHeads",
    "Rotate",
    "Scale",
    "Scores",
    "SideBySide",
    "Sigmoid",
    "Silu",
    "Sinusoid",
    "SoftCap",
    "Softmax",
    "SoftmaxWithSink",
    "Tanh",
    "Unembed",
    "UnitLength",
    "WeightedExperts",
]
