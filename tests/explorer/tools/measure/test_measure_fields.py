"""The words of a metric are those that the model writes, where it reads others."""

from __future__ import annotations

import pytest
from reference import REFERENCES

from tui_transformer.errors import InputError
from tui_transformer.explorer.tools.measure import METRIC, TOKENS, read
from tui_transformer.model import Model
from tui_transformer.model.options import ModelOptions, Reading
from tui_transformer.session.open_session import session_of


def test_a_token_that_is_read_and_never_written_is_no_word_of_a_metric():
    folder = str(REFERENCES / "marian-two-vocabularies")
    session = session_of(Model.load(folder), Reading(ids=(3, 5, 7)), ModelOptions(folder))
    values = {METRIC: "logit", TOKENS: str(session.model.target_size - 1)}
    assert read(session, values).tokens == (18,)
    with pytest.raises(InputError, match="no token 20: IDs go from 0 to 18"):
        read(session, values | {TOKENS: "20"})
