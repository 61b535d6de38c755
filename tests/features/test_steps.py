"""A model with features: its steps give what the library that wrote the dictionary gives, and the model stays itself.

What follows from a changed feature is worked out by hand, x − f W_dec[f], and run through the model without features.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from placing import FED, FOLDERS, HERE, IDS, STREAM, expected, loaded, model, place_of
from reference import reconfigured
from refusing import refuses
from safetensors.numpy import load_file, save_file

from tui_transformer import Features, InputError, Patch, Scale, Set, generate
from tui_transformer.engine import compact
from tui_transformer.engine.gradient import gradients
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import UsageError
from tui_transformer.features import layer, steps
from tui_transformer.features.layer import Part


def at_its_place(name: str, *, replace: bool) -> tuple[Trace, tuple[str, ...], dict[str, np.ndarray]]:
    """A trace in which a dictionary reads its `x`, the steps that it reads, and what is expected."""
    right, features = expected(name), loaded(name)
    at = place_of(features)
    given = right["x"] if features.is_cross else right["x"][None]
    names = tuple(at.format(number) for number in range(len(given)))
    trace = model().with_features(features, at, replace=replace).trace(ids=[1 + i % 7 for i in range(given.shape[1])])
    return trace.edited([Patch.of(*each) for each in zip(names, given, strict=True)]), names, right


@pytest.mark.parametrize("name", FOLDERS)
def test_steps_of_features_are_those_of_the_library_and_every_cell_is_explained(name: str) -> None:
    for replace in (True, False):
        trace, names, right = at_its_place(name, replace=replace)
        for part, wanted in (("features", right["features"]), ("reconstruction", right["output"])):
            found = np.stack([trace[f"{each}.{part}"] for each in names])
            np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=0, atol=1e-9)
    steps = [step for step in trace.program.steps if step.name.startswith(tuple(f"{each}." for each in names))]
    assert {"pre_activations", "encoded", "features", "reconstruction", "error", "change", "output"} <= {
        step.name.rpartition(".")[2] for step in steps
    }
    for step in steps:
        active = np.argwhere(trace[step.name])[:4].tolist()
        for index in ([0, 0], *active):
            explained = trace.explain_cell(step.name, tuple(index))
            assert explained.recomputed == pytest.approx(explained.stored, abs=1e-9), step.name
    # a model with features computes what it does without
    features, plain = loaded(name), model(dtype="float32")
    added = plain.with_features(features, place_of(features).replace("1.f", "0.f"))
    for text in (IDS, [7]):
        one, other = (each.trace(ids=text)["output.logits"] for each in (plain, added))
        assert np.array_equal(one, other)


PLACES = [
    *(("decoder", f"decoder.{each}") for each in ("0.output", "1.output", "1.feed_forward.output")),
    *(("decoder", each) for each in ("embedding.output", "decoder.0.self_attention.concat", "decoder.norm")),
    ("encoder", "encoder.0.output"),
    *(("encoder-decoder", each) for each in ("encoder.1.output", "decoder.0.output", "decoder.0.cross_attention.norm")),
]


WAYS = [(*place, norm) for norm in ("pre", "post") for place in PLACES if (place[1], norm) != ("decoder.norm", "post")]


@pytest.mark.parametrize(("name", "at", "norm"), WAYS)
def test_a_changed_feature_adds_what_it_writes_and_the_error_stays(name: str, at: str, norm: str) -> None:
    features, plain = loaded("saelens-topk"), model(name, norm=norm)
    given = {"ids": IDS, **({"decoder_ids": [2, 4, 6]} if plain.has_decoder else {})}
    trace, before = plain.with_features(features, at).trace(**given), plain.trace(**given)
    assert np.array_equal(trace["output.logits"], before["output.logits"])
    active = trace[f"{at}.features"]
    feature = int(active.sum(axis=0).argmax())
    assert active[:, feature].any()
    edited = trace.edited([Scale(f"{at}.features", 0, columns=feature)])
    row = features.layers[0].parts["decoder"].cells(slice(feature, feature + 1)).astype(np.float64)
    by_hand = before.edited([Patch.of(at, before[at] - active[:, feature : feature + 1] * row)])
    np.testing.assert_allclose(edited["output.logits"], by_hand["output.logits"], rtol=0, atol=1e-10)
    assert np.array_equal(edited[f"{at}.error"], trace[f"{at}.error"])
    without = trace.edited([Set(f"{at}.error", 0.0)])
    replaced = plain.with_features(features, at, replace=True).trace(**given)
    by_hand = before.edited([Patch.of(at, trace[f"{at}.reconstruction"])])
    for each in (without, replaced):
        np.testing.assert_allclose(each["output.logits"], by_hand["output.logits"], rtol=0, atol=1e-10)
    np.testing.assert_allclose(replaced[f"{at}.error"], before[at] - trace[f"{at}.reconstruction"], atol=1e-12)


def test_what_is_changed_before_features_reaches_them_and_what_is_not_kept_comes_back_in_parts() -> None:
    plain = model()
    trace = plain.with_features(loaded("saelens-gated"), STREAM).trace(ids=IDS)
    without = [edit for head in range(2) for edit in [Set("0.self_attention.context", 0.0, heads=head)]]
    edited = trace.edited(without)
    assert not np.array_equal(edited[f"{STREAM}.features"], trace[f"{STREAM}.features"])
    assert np.array_equal(edited["output.logits"], plain.trace(ids=IDS).edited(without)["output.logits"])
    # what is not kept comes back in parts
    added = model().with_features(loaded("sparsify-groupmax"), STREAM)
    whole, dropped = added.trace(ids=IDS), added.trace(ids=IDS, budget=0)
    dropped.block = 64  # cells: a row at a time
    assert not dropped.plan.names
    for part in ("features", "reconstruction", "error"):
        name = f"{STREAM}.{part}"
        pieces = np.concatenate([values for _, values in dropped.blocks(name)])
        np.testing.assert_allclose(pieces, whole[name], atol=1e-12)
    window = dropped.window(f"{STREAM}.features", (range(1, 3), range(40, 60)))
    np.testing.assert_allclose(window, whole[f"{STREAM}.features"][1:3, 40:60], atol=1e-12)


def test_a_text_is_written_on_with_features_and_with_changed_ones() -> None:
    for name, source in (("decoder", []), ("encoder-decoder", [4, 6, 5])):
        plain = model(name)
        for at in ("decoder.0.output", *(("encoder.0.output",) if source else ())):
            added = plain.with_features(loaded("saelens-topk"), at)
            texts = [generate(each, [5, 3], source=source, max_new_tokens=6) for each in (plain, added)]
            assert texts[0] == texts[1]
        edits = [Scale(f"{at}.features", 300.0)]
        assert generate(added, [5, 3], source=source, max_new_tokens=6, edits=edits) != texts[1]


@pytest.mark.parametrize("name", FOLDERS)
def test_of_a_dictionary_that_is_too_large_no_matrix_is_read_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held, names, _ = at_its_place(name, replace=False)
    targets = [1] * held.program.shape("output.logits")[0]
    wanted = gradients(held, targets).values
    monkeypatch.setattr(steps, "MOST_HELD", 32)
    for module in (compact, layer):
        monkeypatch.setattr(module, "BLOCK", 64)
    sizes: list[int] = []
    cells = Part.cells

    def counted(part: Part, *index: Any, **how: Any) -> Any:
        found = cells(part, *index, **how)
        sizes.append(found.size if found.ndim == 2 else 0)
        return found

    monkeypatch.setattr(Part, "cells", counted)
    trace, _, _ = at_its_place(name, replace=False)
    own = [step.name for step in trace.program.steps if step.name.startswith(tuple(f"{each}." for each in names))]
    for step in (*own, trace.program.steps[-1].name):
        np.testing.assert_allclose(trace[step], held[step], rtol=0, atol=1e-12)
    for step in own:
        explained = trace.explain_cell(step, (0,) * len(trace.program.shape(step)))
        assert explained.recomputed == pytest.approx(explained.stored, abs=1e-9), step
    found = gradients(trace, targets).values
    matrices = set(wanted) - set(found)
    assert matrices
    assert all(each.endswith("weight") and each.startswith(names) for each in matrices)
    for each, gradient in found.items():
        np.testing.assert_allclose(gradient, wanted[each], rtol=0, atol=1e-12)
    assert 0 < max(sizes) <= 96  # a line of a cell that is explained; a matrix has 3,072


def test_dictionaries_are_read_when_their_steps_are_and_held_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    cells = Part.cells
    monkeypatch.setattr(Part, "cells", lambda part, *index, **how: read.append(part.name) or cells(part, *index, **how))
    trace = model().with_features(loaded("gemma-scope"), STREAM).trace(ids=IDS)
    _ = trace[STREAM]
    assert read == []
    _ = trace[f"{STREAM}.features"]
    assert sorted(read) == ["W_enc", "b_enc", "threshold"]
    monkeypatch.undo()
    # weights of the model are held once, their own apart
    plain = model()
    first, second = (plain.with_features(loaded(name), STREAM) for name in ("saelens-topk", "saelens-gated"))
    traces = [each.trace(ids=IDS) for each in (first, second)]
    assert traces[0]["0.feed_forward.hidden.weight"] is not None
    weights = [trace.array("0.feed_forward.hidden.weight") for trace in traces]
    assert weights[0] is weights[1]
    name = f"{STREAM}.reconstruction.weight"
    assert not np.array_equal(traces[0][name], traces[1][name])
    assert traces[0][name].shape == (96, 32)


def test_a_setting_is_changed_and_features_stay_where_several_dictionaries_are_at_several_places() -> None:
    plain = model()
    both = plain.with_features(loaded("saelens-topk"), "decoder.0.output").with_features(loaded("gemma-scope"), STREAM)
    trace = both.trace(ids=IDS)
    assert np.array_equal(trace["output.logits"], plain.trace(ids=IDS)["output.logits"])
    edited = trace.edited([Scale("decoder.0.output.features", 0.0)])
    assert not np.array_equal(edited[f"{STREAM}.features"], trace[f"{STREAM}.features"])
    refuses(r"features at decoder\.1\.output already", lambda: both.with_features(loaded("saelens-topk"), "1.output"))
    # a setting of the model is changed
    added = model(dtype="float32").with_features(loaded("saelens-topk"), STREAM)
    trace = added.changed(dtype="float64").trace(ids=IDS)
    assert trace[f"{STREAM}.features"].dtype == np.float64
    refuses(r"reads 32 numbers a token, and decoder\.1\..* has 64", lambda: added.changed(d_model=64))
    refuses("no step is called", lambda: added.changed(layers=1))


@pytest.fixture
def hooked(tmp_path: Path):
    def make(name: str, **settings: object) -> Features:
        folder = Path(shutil.copytree(HERE / name, tmp_path / f"{name}-{len(list(tmp_path.iterdir()))}"))
        reconfigured(folder / "cfg.json", **settings)
        return Features.load(folder)

    return make


HOOKS = {
    "blocks.0.hook_resid_pre": "embedding.output",
    "blocks.1.hook_resid_pre": "decoder.0.output",
    "blocks.1.hook_resid_mid": "decoder.1.self_attention.residual",
    "blocks.1.hook_resid_post": "decoder.1.output",
    "blocks.0.hook_mlp_out": "decoder.0.feed_forward.output",
    "blocks.1.ln2.hook_normalized": "decoder.1.feed_forward.norm",
    "blocks.0.attn.hook_z": "decoder.0.self_attention.concat",
}


def test_a_hook_of_the_file_says_where(hooked) -> None:
    for hook, step in HOOKS.items():
        added = model().with_features(hooked("saelens-standard", metadata={"hook_name": hook}))
        assert f"{step}.features" in added.program(1).by_name


def test_a_transcoder_writes_what_its_file_or_the_feed_forward_layer_says(hooked) -> None:
    hooks = {"hook_name": "blocks.0.hook_resid_mid", "hook_name_out": "blocks.0.hook_mlp_out"}
    program = model().with_features(hooked("saelens-transcoder", metadata=hooks)).program(1)
    at = "decoder.0.self_attention.residual"
    assert program.step(f"{at}.error").inputs[0] == "decoder.0.feed_forward.output"
    program = model().with_features(loaded("sparsify-transcoder-skip"), FED.format(1)).program(1)
    assert program.step(f"{FED.format(1)}.error").inputs[0] == "decoder.1.feed_forward.output"
    assert "decoder.1.feed_forward.norm.output" in program.step("1.feed_forward.residual").inputs
    added = model().with_features(loaded("saelens-transcoder"), "decoder.0.output", into="decoder.1.output")
    assert added.program(1).step("decoder.0.output.error").inputs[0] == "decoder.1.feed_forward.residual"
    with pytest.raises(InputError, match=r"no feed-forward layer reads decoder\.norm: name the step that it writes"):
        model().with_features(loaded("saelens-transcoder"), "decoder.norm")


CROSS = "circuit-tracer-cross-layer"
WRONG = [
    ("saelens-topk", None, None, "does not say where it was trained: name the step, as decoder.8.output"),
    ("saelens-topk", "decoder.9.output", None, "no step is called 'decoder.9.output'"),
    ("saelens-topk", "feed_forward.output", None, "can be decoder.0.feed_forward.output, decoder.1"),
    ("saelens-topk", "tokens", None, "tokens holds whole numbers"),
    ("saelens-topk", "0.feed_forward.hidden", None, "reads 32 numbers a token, and decoder.0.feed_forward.hidden has"),
    ("saelens-topk", "0.self_attention.query", None, "has no row for each token, but 4 heads × 1 × 8"),
    ("saelens-topk", "decoder.1.output", "decoder.0.output", "is computed before decoder.1.output"),
    ("saelens-topk", "decoder.0.output", "output.logits", "writes 32 numbers a token, and output.logits has"),
    (CROSS, "decoder.0.output", None, "reads 2 layers: write {} for the number of the layer"),
    (CROSS, None, None, "reads 2 layers"),
]


def test_what_cannot_be_is_said_plainly() -> None:
    for name, at, into, says in WRONG:
        features = loaded(name)
        refuses(re.escape(says), lambda f=features, at=at, into=into: model().with_features(f, at, into=into))


def test_more_that_cannot_be(hooked, tmp_path: Path) -> None:
    for hook, says in (
        ("blocks.7.hook_resid_post", "decoder.7.output, which this model does not have"),
        ("hook_embed", "was trained at hook_embed: name the step that this is"),
    ):
        refuses(says, lambda hook=hook: model().with_features(hooked("saelens-standard", metadata={"hook_name": hook})))
    with pytest.raises(InputError, match=r"32 numbers a token, and decoder\.0\.output has 64.*it is of another model"):
        model(d_model=64).with_features(loaded("saelens-topk"), "decoder.0.output")
    with pytest.raises(UsageError, match=r"what Features\.load gives"):
        model().with_features(str(HERE / "saelens-topk"), "decoder.0.output")
    with pytest.raises(InputError, match="save the model without them"):
        model().with_features(loaded("saelens-topk"), STREAM).save(tmp_path / "model")


def test_further_forms_of_dictionaries_are_read_and_written(hooked) -> None:
    # compared by what they write
    features = hooked("saelens-topk", rescale_acts_by_decoder_norm=True)
    path = features.path / "sae_weights.safetensors"
    weights = load_file(path)
    weights["W_dec"][7] = 0.0
    save_file(weights, path)
    of_one_length = hooked("saelens-standard", normalize_activations="constant_norm_rescale")
    for each in (Features.load(features.path), of_one_length):
        trace = model().with_features(each, STREAM).trace(ids=IDS)
        found = each.encode(trace[STREAM])
        np.testing.assert_allclose(trace[f"{STREAM}.features"], found, atol=1e-9)
        np.testing.assert_allclose(trace[f"{STREAM}.reconstruction"], each.decode(found, trace[STREAM]), atol=1e-9)
