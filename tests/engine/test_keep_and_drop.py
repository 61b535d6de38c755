"""Values dropped for a budget come back equal, in windows or blocks, and memory stays bounded."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest
from comparing import assert_same, cut, random_region
from reference import in_float64, peak

from tui_transformer.engine import parts
from tui_transformer.engine.axis import whole
from tui_transformer.engine.backend import POOL
from tui_transformer.engine.ops import Linear, Softmax, Unembed
from tui_transformer.engine.parts import BLOCK_CELLS, PROJECTIONS, RESIDUAL, keep_plan
from tui_transformer.engine.trace import Trace
from tui_transformer.errors import InputError
from tui_transformer.machine import available_memory, readable
from tui_transformer.model import Model
from tui_transformer.views.step_view import extremes

IDS = [2, 5, 3, 6, 4, 7, 1]
SIZES = {"layers": 3, "heads": 4, "d_ff": 12, "causal": True}
NO_WINDOWS = 12
CONTEXT = ("weights", "context")
"""The level that keeps all but what comes back in windows."""
LENGTH, WIDTH, HEADS, INNER = 256, 128, 4, 256
LOGITS, PROBABILITIES = "output.logits", "output.probabilities"
FAMILIES = ["bart", "bert", "gpt2", "llama", "marian", "qwen3", "t5", "vanilla-decoder"]
WORDS, TOKENS, COLUMNS = 20_000, 128, 8


@pytest.fixture(scope="module")
def model() -> Model:
    return in_float64("encoder", **SIZES)


def in_blocks(trace: Trace) -> Trace:
    """Blocks of three rows of seven keys, so that four heads of 7 × 7 are computed in twelve blocks."""
    return replace(trace, block=3 * len(IDS))


def budgets(model: Model) -> list[int]:
    """Nothing, each level of dropping with a byte less than the next, and everything."""
    program = model.program(len(IDS))
    layers = [program.step(f"encoder.{i}.output") for i in range(SIZES["layers"])]
    levels = [
        layers[2:],
        layers[::2],
        layers,
        [step for step in program.steps if step in layers or step.name.rpartition(".")[2] in PROJECTIONS],
        [step for step in program.steps if step.name.rpartition(".")[2] in RESIDUAL],
        [step for step in program.steps if not step.windowed],
        [step for step in program.steps if not step.square],
        [step for step in program.steps if step.square or not step.windowed],
        program.steps,
    ]
    sizes = [program.step_cells(steps) * model.backend.dtype.itemsize for steps in levels]
    return sorted({0, *sizes, *(size - 1 for size in sizes)})


def test_the_levels_of_dropping(model):
    program = model.program(len(IDS))
    kept = [keep_plan(program, 8, budget) for budget in budgets(model)]
    assert [len(plan.names) for plan in kept] == sorted(len(plan.names) for plan in kept)
    assert all(plan.bytes <= budget for plan, budget in zip(kept, budgets(model), strict=True))
    assert kept[0].names == frozenset()
    assert len({plan.names for plan in kept}) == 10
    assert [plan.everything for plan in kept] == [False] * (len(kept) - 1) + [True]


@pytest.mark.parametrize("level", range(19))
def test_what_is_dropped_equals_what_is_kept_and_a_run_keeps_exactly_what_the_plan_says(model, level):
    kept, dropped, trace = (
        model.trace(ids=IDS),
        *(in_blocks(model.trace(ids=IDS, budget=budgets(model)[level])) for _ in range(2)),
    )
    assert_same(dropped, kept)
    trace.compute()
    assert trace.held == trace.plan.names
    assert trace.held_bytes <= max(trace.plan.bytes, trace.budget)


@pytest.mark.parametrize("budget", [0, 1])
def test_windows_of_dropped_steps_are_slices(model, budget):
    kept, dropped = model.trace(ids=IDS), in_blocks(model.trace(ids=IDS, budget=budget and budgets(model)[NO_WINDOWS]))
    rng = np.random.default_rng(2)
    for name in kept:
        region = random_region(rng, kept.program.shape(name))
        part = cut(kept[name], region)
        np.testing.assert_allclose(dropped.window(name, region), part, rtol=1e-12, atol=1e-14, err_msg=name)


def test_explanations_of_dropped_steps_are_as_kept(model):
    kept, dropped = model.trace(ids=IDS), in_blocks(model.trace(ids=IDS, budget=0))
    for name in kept:
        index = tuple(size // 2 for size in kept.program.shape(name))
        wanted, again = kept.explain_cell(name, index), dropped.explain_cell(name, index)
        assert again.recomputed == pytest.approx(wanted.recomputed, rel=1e-12, abs=1e-14), name
        assert again.stored == pytest.approx(wanted.stored, rel=1e-12, abs=1e-14), name


def test_batches_and_two_sequences_in_blocks_equal_the_whole(model):
    model = in_float64("encoder-decoder", pad_id=1, **SIZES)
    given = {"ids": [IDS, [4, 1] * 3 + [1]], "decoder_ids": [[0, 3, 2, 5, 7, 7], [2, 6, 1, 3, 1, 1]]}
    assert_same(in_blocks(model.trace(**given, budget=0)), model.trace(**given))
    # three sentences
    rows = [IDS, IDS[::-1], [3] * len(IDS)]
    assert_same(replace(model.trace(ids=rows, budget=0), block=40), model.trace(ids=rows))


@pytest.fixture
def runs(monkeypatch) -> Counter[str]:
    """How often each kind of operation runs."""
    counted: Counter[str] = Counter()

    def counting(kind, forward):
        def count(self, *args, **options):
            counted[kind] += 1
            return forward(self, *args, **options)

        return count

    for kind in {type(step.op) for step in Model.load("encoder", device="cpu").program(1).steps}:
        monkeypatch.setattr(kind, "forward", counting(kind.__name__, kind.forward))
    return counted


def test_block_by_block_nothing_is_computed_twice_and_costs_the_same(model, runs):
    in_blocks(model.trace(ids=IDS, budget=0))["output.probabilities"]
    blocks = SIZES["layers"] * SIZES["heads"] * math.ceil(len(IDS) / 3)
    assert runs["Project"] == 3 * SIZES["layers"]
    words = math.ceil(len(IDS) / 2)  # blocks of two rows of eight words
    assert runs["Linear"] == 3 * SIZES["layers"] + words
    assert {runs[kind] for kind in ("Scores", "Scale", "Mask", "Context")} == {blocks}
    assert runs["Softmax"] == blocks + words
    traces = (in_blocks(model.trace(ids=IDS, budget=budget)) for budget in budgets(model))
    assert len({trace.pending(["output.probabilities"]) for trace in traces}) == 1


def test_a_window_of_a_dropped_step_computes_its_sources_once(model, runs):
    trace = in_blocks(model.trace(ids=IDS, budget=0))
    trace.window("encoder.0.self_attention.weights", (range(1), range(2), range(3)))
    assert (runs["Embed"], runs["Project"], runs["Scores"], runs["Softmax"]) == (1, 2, 1, 1)


@pytest.mark.parametrize(("level", "projections"), [(0, 8), (4, 5), (6, 2), (8, 0)])
def test_a_window_is_computed_from_the_nearest_layer_that_is_kept(model, runs, level, projections):
    trace = model.trace(ids=IDS, budget=budgets(model)[level])
    trace.compute()
    runs.clear()
    trace.window("encoder.2.self_attention.weights", (range(1), range(2), range(3)))
    assert runs["Project"] == projections
    assert runs["Embed"] == (level == 0)


def test_the_last_layer_of_both_stacks_is_kept_longest_and_a_trace_estimated_before_it_is_computed(model):
    program = Model.load("encoder-decoder", device="cpu", decoder_layers=3, **SIZES).program(4, 2)
    last = [program.step(f"{stack}.2.output") for stack in ("encoder", "decoder")]
    assert keep_plan(program, 8, 8 * program.step_cells(last)).names == {step.name for step in last}
    trace = model.trace(ids=IDS)
    assert trace.plan.total == sum(trace[name].nbytes for name in trace.program.by_name)


@pytest.mark.parametrize("read", ["window", "explain", "blocks"])
def test_what_windows_are_made_from_is_there_until_another_step_needs_something_else(model, runs, read):
    trace, (weights, context) = model.trace(ids=IDS, budget=0), (f"encoder.1.self_attention.{n}" for n in CONTEXT)
    reads = {
        "window": lambda name: trace.window(name, (range(1), range(2), range(3))),
        "explain": lambda name: trace.explain(name, row=1),
        "blocks": lambda name: list(trace.blocks(name)),
    }
    reads[read](weights)
    assert trace.pending(["encoder.1.self_attention.query"]) == 0
    runs.clear()
    reads[read](weights)
    assert not runs["Project"]
    assert trace.held == frozenset()
    runs.clear()
    reads[read](context)
    assert runs["Project"] == 4  # of layer 0, and the values of layer 1
    trace.window("encoder.2.output", (range(1), range(1)))
    assert trace.pending(["encoder.1.self_attention.query"]) > 0


def test_running_through_does_not_make_dropped_steps_whole(model, runs):
    trace = in_blocks(model.trace(ids=IDS, budget=budgets(model)[NO_WINDOWS]))
    trace.compute()
    assert trace.held == trace.plan.names
    assert runs["Scores"] == SIZES["layers"] * SIZES["heads"] * math.ceil(len(IDS) / 3)


def peak_of(layers: int) -> int:
    """The most memory that a run with nothing kept takes, beyond the weights."""
    POOL.clear()
    model = Model.load("encoder", device="cpu", layers=layers, d_model=WIDTH, heads=HEADS, d_ff=INNER)
    ids = [i % 7 + 1 for i in range(LENGTH)]
    for name, axes in model.program(LENGTH).weights.items():
        model.weights.get(name, tuple(axis.size for axis in axes))

    def run() -> None:
        trace = model.trace(ids=ids, budget=0)
        trace.arrays(("output.logits",))
        assert trace.held == frozenset()

    return peak(run)


def test_memory_without_keeping_is_that_of_one_layer_however_many_there_are():
    one_layer = 6 * LENGTH * WIDTH + HEADS * LENGTH * LENGTH + LENGTH * INNER  # one array of queries × keys, no second
    small = 1 << 19  # Python's own objects: steps, names, counters
    assert peak_of(6) <= 4 * one_layer + small
    few, many = (peak_of(layers) for layers in (2, 8))
    assert many <= few + (1 << 17)


def test_idle_memory_is_given_back_before_more_is_refused_and_sizes_are_readable(monkeypatch):
    POOL.clear()
    POOL.empty((1 << 20,), np.dtype(np.uint8))
    monkeypatch.setattr(parts, "available_memory", lambda: 100 - sum(size * count for size, count in POOL.idle.items()))
    parts.check_memory(80, "a test needs", "use less")
    assert not POOL.idle
    assert available_memory() > 1 << 20
    for size, text in ((0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (512 << 20, "512 MiB"), (3 << 40, "3.0 TiB")):
        assert readable(size) == text


@pytest.mark.parametrize(("batch", "blocks"), [(1, 1), (2, SIZES["heads"])])
def test_what_fits_at_once_for_one_sentence_is_made_in_blocks_for_two(model, runs, batch, blocks):
    trace = replace(model.trace(ids=[IDS] * batch, budget=0), block=SIZES["heads"] * len(IDS) ** 2)
    assert trace["encoder.0.self_attention.context"].size
    assert runs["Scores"] == blocks


WRITING_OVER = {
    "encoder": ("encoder", {"layers": 2}),
    "decoder": ("decoder", {"norm": "pre", "activation": "gelu", "bias": True}),
}


@pytest.mark.parametrize("name", WRITING_OVER)
def test_no_operation_writes_over_it(name):
    kind, sizes = WRITING_OVER[name]
    model = Model.load(kind, device="cpu", d_model=12, heads=3, d_ff=20, **sizes)
    whole_trace = model.trace(ids=IDS)
    overwriting = [step for step in whole_trace.program.steps if step.op.overwrites]
    assert len(overwriting) > 3
    for step in overwriting:
        source, trace = step.inputs[0], model.trace(ids=IDS, budget=0)
        region = whole(trace.program.shape(source))
        trace.window(source, region)  # the source is there until another window needs something else
        assert np.array_equal(trace[step.name], whole_trace[step.name]), step.name
        assert np.array_equal(trace.window(source, region), whole_trace[source]), step.name


# A large vocabulary: logits and probabilities come back in windows, and are never whole
def kept_and_dropped(model: Model, block: int = BLOCK_CELLS) -> tuple[Trace, Trace]:
    """Kept whole, and dropped and made in blocks."""
    given = {"ids": IDS, "decoder_ids": [2, 3, 4] if model.has_decoder else None}
    return model.trace(**given), replace(model.trace(**given, budget=0), block=block)


@pytest.fixture
def shapes_run(monkeypatch) -> list[tuple[int, ...]]:
    """The shapes of what is computed with a vocabulary axis."""
    shapes: list[tuple[int, ...]] = []

    def spying(forward):
        def spy(self, *args, **options):
            result = forward(self, *args, **options)
            shapes.append(result.shape[1:])
            return result

        return spy

    for kind in (Linear, Softmax, Unembed):
        monkeypatch.setattr(kind, "forward", spying(kind.forward))
    return shapes


def large(**more: object) -> Model:
    return Model.load(
        "decoder", device="cpu", vocab_size=WORDS, d_model=COLUMNS, heads=1, d_ff=8, max_length=TOKENS, **more
    )


@pytest.mark.parametrize("block", [1, 50, 400])
@pytest.mark.parametrize("family", FAMILIES)
def test_windows_of_logits_and_probabilities_are_slices(family, block):
    kept, dropped = kept_and_dropped(in_float64(family), block)
    for name in (LOGITS, PROBABILITIES):
        rows, columns = kept.program.shape(name)
        for region in ((range(rows - 1, rows), range(columns)), (range(1, 3), range(4, 11)), (range(1), range(2, 3))):
            part = cut(kept[name], region)
            np.testing.assert_allclose(dropped.window(name, region), part, rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(dropped[name], kept[name], rtol=1e-11, atol=1e-14)
        assert dropped.explain(name, row=1, column=5).stored == pytest.approx(kept[name][1, 5], rel=1e-11)


@pytest.mark.parametrize("name", [LOGITS, PROBABILITIES])
def test_blocks_cover_the_step_and_are_no_larger_than_a_block(name):
    kept, dropped = kept_and_dropped(in_float64("decoder"))
    dropped = replace(dropped, block=3 * kept.program.shape(name)[1])
    seen = np.full(kept.program.shape(name), np.nan)
    for (rows, columns), values in dropped.blocks(name):
        assert values.size <= dropped.block
        assert not values.flags.writeable
        seen[rows.start : rows.stop, columns.start : columns.stop] = values
    np.testing.assert_allclose(seen, kept[name], rtol=1e-12)


def test_blocks_compute_what_they_are_made_from_once_and_a_column_of_logits_only_its_own(shapes_run):
    trace = replace(Model.load("decoder", device="cpu").trace(ids=IDS, budget=0), block=8)
    seen = []
    list(trace.blocks(LOGITS, before=lambda step: seen.append(step.name)))
    assert max(Counter(seen).values()) > 1, "before every block of a step"
    steps = [name for name, _ in groupby(seen)]
    assert len(set(steps)) == len(steps)
    assert LOGITS not in seen
    large().trace(ids=[1] * TOKENS, budget=0).window(LOGITS, (range(4), range(7, 9)))
    assert (4, 2) in shapes_run
    assert not any(WORDS in shape for shape in shapes_run)


@pytest.mark.parametrize("name", [LOGITS, PROBABILITIES])
def test_the_last_row_is_computed_without_the_others(name, shapes_run):
    trace = large().trace(ids=[1] * TOKENS, budget=1 << 16)
    row = trace.window(name, (range(TOKENS - 1, TOKENS), range(WORDS)))
    assert row.shape == (1, WORDS)
    assert {shape for shape in shapes_run if WORDS in shape} == {(1, WORDS)}


@pytest.mark.parametrize(
    "action",
    [
        lambda trace: trace.window(PROBABILITIES, (range(TOKENS - 1, TOKENS), range(WORDS))),
        lambda trace: trace.explain(PROBABILITIES, row=3, column=5),
        lambda trace: trace.compute(),
        lambda trace: trace.compute([LOGITS]),
        lambda trace: extremes(trace, LOGITS),
        lambda trace: [None for _ in trace.blocks(PROBABILITIES)],
    ],
    ids=["window", "explain", "compute", "compute logits", "extremes", "blocks"],
)
def test_no_more_than_a_few_rows_are_ever_there(action):
    POOL.clear()
    trace = replace(large(tie_output=True).trace(ids=[1] * TOKENS, budget=1 << 18), block=4 * WORDS)
    trace.window(LOGITS, (range(1), range(1)))  # weights and residual stream are there
    assert peak(lambda: action(trace)) < TOKENS * WORDS * 4 / 2


def test_a_large_vocabulary_is_not_refused_for_its_logits(monkeypatch):
    monkeypatch.setattr(parts, "available_memory", lambda: TOKENS * WORDS * 2)
    assert not large().trace(ids=[1] * TOKENS, budget=0).plan.names
    monkeypatch.setattr(parts, "available_memory", lambda: 4 * TOKENS * COLUMNS)
    with pytest.raises(InputError, match="of memory"):
        large().trace(ids=[1] * TOKENS, budget=0)


def test_a_weight_that_is_a_step_is_not_written_over_where_that_step_is_dropped():
    model = in_float64("deberta-v2")
    wanted = model.trace(ids=IDS).to_dict()
    dropped = model.trace(ids=IDS, budget=0)
    for _ in range(2):
        assert_same(dropped, wanted)
    assert_same(model.trace(ids=IDS), wanted)


def test_what_another_thread_has_read_is_not_written_over(model):
    name, region = "encoder.0.feed_forward.hidden", (range(7), range(12))
    wanted, dropped = model.trace(ids=IDS)[name], model.trace(ids=IDS, budget=0)
    read = dropped.window(name, region)  # what follows is computed from it
    dropped.arrays(["encoder.2.output"], before=lambda _: dropped.window("embedding.output", (range(1), range(1))))
    np.testing.assert_array_equal(read, wanted)
