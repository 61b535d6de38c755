"""The tuned lens: fitted on texts, beside least squares by another way, and nearer to the answer than the plain one."""

from __future__ import annotations

import numpy as np
import pytest
from reference import REFERENCES

from tui_transformer import InputError, Model, fit_lens, head_lens, logit_lens, words_at
from tui_transformer.analysis.logit_lens import lens_of
from tui_transformer.learning.corpora import lines_of

TEXTS = 60


@pytest.fixture(scope="module")
def story() -> Model:
    return Model.load("story", device="cpu", dtype="float64")


@pytest.fixture(scope="module")
def tuned(story: Model):
    return fit_lens(story.trace(text) for text in lines(TEXTS))


def lines(count: int, first: int = 0) -> list[str]:
    return list(lines_of("story", first + count))[first:]


def test_the_map_is_that_of_ridge_regression(story, tuned):
    traces = [story.trace(text) for text in lines(TEXTS)]
    x, y = (np.concatenate([trace[f"{layer}.output"] for trace in traces]) for layer in (0, 2))
    affine, count = tuned[0], len(x)
    spread = x - x.mean(axis=0)
    ridge = np.sqrt(np.square(spread).sum() / count) * np.eye(x.shape[1])  # √(N λ) with λ = tr S ÷ N
    moved = (y - x) - (y - x).mean(axis=0)
    expected = np.linalg.lstsq(np.vstack([spread, ridge]), np.vstack([moved, np.zeros_like(ridge)]), rcond=None)[0]
    assert affine.tokens == count
    np.testing.assert_allclose(affine.matrix, expected, atol=1e-9)
    np.testing.assert_allclose(affine.shift, (y - x).mean(axis=0), atol=1e-12)
    assert sorted(tuned) == [-1, 0, 1]


def test_on_other_texts_it_is_nearer_to_the_answer_than_the_plain_lens(story, tuned):
    trace = story.trace(lines(1, TEXTS)[0])
    plain, fitted = lens_of(trace.program), lens_of(trace.program, tuned)
    rows = range(plain.tokens)
    for depth in plain.depths[:-1]:
        assert fitted.divergences(trace, depth, rows).mean() < 0.8 * plain.divergences(trace, depth, rows).mean()
    assert fitted.divergences(trace, plain.depths[-1], rows).max() < 1e-9
    spelled = list(logit_lens(trace, 2, tuned=tuned))[1]
    x, affine = trace["0.output"], tuned[0]
    state = x + (x - affine.mean) @ affine.matrix + affine.shift
    norm = (state - state.mean(axis=1, keepdims=True)) / np.sqrt(state.var(axis=1, keepdims=True) + 1e-5)
    logits = (norm * trace["decoder.norm.weight"] + trace["decoder.norm.bias"]) @ trace["embedding.tokens.weight"].T
    assert [word for word, _ in words_at(spelled, -1)] == np.argsort(-logits[-1])[:2].tolist()


@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma2"])
def test_what_the_heads_raise_goes_through_the_map_of_their_layer(name):
    model = Model.load(REFERENCES / name, dtype="float64", device="cpu")
    trace = model.trace(ids=[5, 6, 7, 8])
    maps = fit_lens([trace, model.trace(ids=[[9, 3, 4, 2], [1, 5, 6, 6]])])
    (plain, *_), (fitted, *_) = (list(head_lens(trace, 2, layer=0, tuned=each)) for each in (None, maps))
    assert not np.allclose(plain.logits, fitted.logits)
    nothing = {0: type(maps[0])(maps[0].mean, np.zeros_like(maps[0].matrix), maps[0].shift, 1)}
    (same, *_) = head_lens(trace, 2, layer=0, tuned=nothing)
    np.testing.assert_allclose(same.logits, plain.logits, atol=1e-10)
    last = max(each.attention.layer for each in head_lens(trace, 2))
    ends = [[each.logits for each in head_lens(trace, 2, layer=last, tuned=given)] for given in (None, maps)]
    np.testing.assert_array_equal(*ends)


def test_what_cannot_be_fitted_is_refused(story):
    trace = story.trace("The fox found a")
    with pytest.raises(InputError, match="no sentence to fit"):
        fit_lens([])
    with pytest.raises(InputError, match=r"fit_lens\(\[trace, …\]\)"):
        fit_lens(trace)
    with pytest.raises(InputError, match="no layer 7: layers are 0 to 2"):
        fit_lens([trace], layers=[7])
    with pytest.raises(InputError, match="different widths"):
        fit_lens([trace, Model.load("copy").trace(ids=[5, 6])])
    with pytest.raises(InputError, match="fitted for vectors of 80 columns"):
        list(logit_lens(Model.load(REFERENCES / "gpt2").trace(ids=[5, 6]), tuned=fit_lens([trace])))
    alone = fit_lens([story.trace(ids=[5])], layers=[1])
    assert list(alone) == [1]
    assert not alone[1].matrix.any()
    assert fit_lens([trace], layers=[2]) == {}  # the last has no map
