"""Mistakes that people make, a file a subject: changes of the program, tried between what agrees and what does not."""

from tui_transformer.diagnosis.causes.activations import activated_otherwise, gated_wrongly
from tui_transformer.diagnosis.causes.cap import uncapped
from tui_transformer.diagnosis.causes.cause import Cause, Causes
from tui_transformer.diagnosis.causes.cross import read_from_elsewhere
from tui_transformer.diagnosis.causes.embedding import embedded_wrongly
from tui_transformer.diagnosis.causes.experts import routed_wrongly
from tui_transformer.diagnosis.causes.heads import averaged_wrongly, shared_wrongly, split_wrongly
from tui_transformer.diagnosis.causes.indices import read_by_wrong_indices
from tui_transformer.diagnosis.causes.loss import shifted_wrongly
from tui_transformer.diagnosis.causes.mask import masked_wrongly
from tui_transformer.diagnosis.causes.norm_place import placed_wrongly
from tui_transformer.diagnosis.causes.norms import normalised_otherwise
from tui_transformer.diagnosis.causes.positions import encoded_wrongly
from tui_transformer.diagnosis.causes.relative import distances_counted_wrongly
from tui_transformer.diagnosis.causes.residual import added_wrongly, centred
from tui_transformer.diagnosis.causes.rotary import rotated_wrongly
from tui_transformer.diagnosis.causes.scale import scaled_wrongly
from tui_transformer.diagnosis.causes.softmax import normalised_wrongly
from tui_transformer.diagnosis.causes.weights import biased_wrongly, exchanged, one_layer_short, read_wrongly

CAUSES: tuple[Causes, ...] = (
    scaled_wrongly,
    masked_wrongly,
    normalised_wrongly,
    biased_wrongly,
    read_wrongly,
    split_wrongly,
    shared_wrongly,
    averaged_wrongly,
    read_by_wrong_indices,
    read_from_elsewhere,
    rotated_wrongly,
    encoded_wrongly,
    embedded_wrongly,
    normalised_otherwise,
    placed_wrongly,
    one_layer_short,
    added_wrongly,
    activated_otherwise,
    gated_wrongly,
    uncapped,
    distances_counted_wrongly,
    routed_wrongly,
    shifted_wrongly,
    exchanged,
    centred,
)
"""In the order in which they are tried; of several that fit alike, the first is named."""

__all__ = ["CAUSES", "Cause", "Causes"]
