"""The gradient of a view, and the difference of two."""

from __future__ import annotations

import numpy as np

from tui_transformer.engine.gradient import gradients
from tui_transformer.model import Model
from tui_transformer.views.step_view import Labels, difference_of, gradient_of, view_of

VALUE, MASKED = "encoder.0.self_attention.value", "decoder.0.self_attention.masked"


def test_a_gradient_is_seen_as_its_step_head_by_head():
    trace = Model.load("encoder").trace("the waves crashed")
    values = gradients(trace, [[1, 2, 3]]).values
    for name, head in ((VALUE, 3), ("embedding.output", 0), ("encoder.0.feed_forward.hidden.weight", 0)):
        view = view_of(trace, name, Labels(), head=head)
        seen = gradient_of(view, trace.program.axes(name), values[name])
        whole = values[name][head] if values[name].ndim == 3 else values[name]
        assert np.array_equal(seen.window(range(1, 3), range(1)), whole[1:3, :1])
        assert seen.title == f"∂loss/∂{name}"
        assert (seen.kind, seen.shape, seen.name) == ("diverging", view.shape, name)


def test_a_difference_covers_what_both_have_and_names_labels_that_differ():
    first, second = (Model.load("encoder").trace(text) for text in ("the waves crashed", "the shore"))
    labels = [Labels({"tokens": words}) for words in (("the", "waves", "crashed"), ("the", "shore"))]
    views = [view_of(trace, VALUE, names) for trace, names in zip((first, second), labels, strict=True)]
    seen = difference_of(*views)
    assert seen.shape == (2, 1)
    assert [seen.rows.label(i) for i in range(2)] == ["the", "waves/shore"]
    wanted = first[VALUE][0, :2].astype(float) - second[VALUE][0]
    assert np.array_equal(seen.window(range(2), range(1)), wanted)


def test_the_difference_of_two_masked_cells_is_0():
    trace = Model.load("decoder").trace("the waves crashed")
    view = view_of(trace, MASKED, Labels())
    assert not difference_of(view, view).window(range(3), range(3)).any()
