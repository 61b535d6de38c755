"""Names and axes: what is taken for which step, in which shape, and that it is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from dumping import IDS, REFERENCES, blamed, computed, dump_of, dumped, merged, model_of, rows
from refusing import refuses

from tui_transformer.diagnosis import Diagnosis, Input, diagnose
from tui_transformer.diagnosis.diagnose import input_of
from tui_transformer.diagnosis.dumps import open_dump
from tui_transformer.diagnosis.dumps.dump import FLOAT32, Dump, Tensor, Values
from tui_transformer.diagnosis.naming import names_for, read_map
from tui_transformer.errors import InputError
from tui_transformer.model import Model

AT = "encoder.0.self_attention"
QUERY, SCORES = f"{AT}.query", f"{AT}.scores"


def with_shape(step: str, change: Callable[[np.ndarray], np.ndarray], fault: str = "") -> Diagnosis:
    arrays = computed("post", fault)
    return diagnose(dumped(arrays | {step: change(arrays[step])}), model_of("post"))


OTHERWISE: list[tuple[str, Callable[[np.ndarray], np.ndarray], str]] = [
    (QUERY, lambda x: x[None], ""),
    (QUERY, merged, "tokens × heads × d_k"),
    (QUERY, lambda x: merged(x)[None], "tokens × heads × d_k"),
    (QUERY, lambda x: x.transpose(1, 0, 2)[None], "tokens × heads × d_k"),
    (QUERY, lambda x: x.T, "transposed"),
    (QUERY, lambda x: x.reshape(x.shape[::-1]), "fastest axis first"),
    (SCORES, lambda x: x.transpose(1, 0, 2), "queries × heads × keys"),
    (f"{AT}.output", lambda x: x.T, "transposed"),
    (f"{AT}.concat", lambda x: x.reshape(7, 2, 8), ""),
    (f"{AT}.output", lambda x: x[:, None, :], ""),
]


def test_an_array_in_another_order_is_recognised_and_that_is_said() -> None:
    for step, change, said in OTHERWISE:
        diagnosis = with_shape(step, change)
        assert diagnosis.first is None, (step, said, diagnosis.first)
        assert len(diagnosis.steps) == len(computed("post"))
        assert any(said in each and step in each for each in diagnosis.assumed) if said else not diagnosis.assumed
    assert blamed(with_shape(f"{AT}.scaled", lambda x: x[None], "scale-d_k").first).cause == "scale-d_k"


def test_scores_may_be_those_after_masking_and_numbers_stand_for_infinity() -> None:
    arrays = computed("pre")
    at = "decoder.0.self_attention"
    del arrays[f"{at}.scaled"]
    later = np.where(np.isneginf(arrays[f"{at}.masked"]), -1e9, arrays[f"{at}.masked"])
    diagnosis = diagnose(dumped(arrays | {f"{at}.scores": later}), model_of("pre"))
    assert diagnosis.first is None
    assert any("masked, not scores" in each for each in diagnosis.assumed)
    assert any("−1e9 stands for −∞" in each for each in diagnosis.assumed)
    masked = f"{at}.masked"
    for number in (-1e4, -1e9, float(np.finfo(np.float32).min)):
        hidden = np.where(np.isneginf(arrays[masked]), number, arrays[masked])
        assert diagnose(dumped(computed("pre") | {masked: hidden}), model_of("pre")).first is None


def test_several_sentences_are_compared_together() -> None:
    model = model_of("post")
    rows = [[1, 2, 3, 4], [5, 6, 7, 1]]
    trace = model.trace(ids=rows)
    arrays = {name: np.array(trace[name]) for name in trace.names}
    assert diagnose(dumped(arrays, input_ids=rows), model).first is None
    wrong = arrays[QUERY].copy()
    wrong[1, 0, 2, 3] += 1
    first = blamed(diagnose(dumped(arrays | {QUERY: wrong}, input_ids=rows), model).first)
    assert (first.step, first.index) == (QUERY, (1, 0, 2, 3))


def test_the_first_axis_may_count_layers_and_fused_matrices_are_taken_apart(tmp_path: Path) -> None:
    arrays = computed("post")
    states = [arrays["embedding.output"], arrays["encoder.0.output"], arrays["encoder.1.output"]]
    diagnosis = diagnose(dumped({"hidden_states": np.stack(states)[:, None]}), model_of("post"))
    assert [each.theirs for each in diagnosis.steps] == ["hidden_states[0]", "hidden_states[1]", "hidden_states[2]"]
    assert diagnosis.first is None
    # fused matrices
    model = Model.load(REFERENCES / "gpt2")
    trace = model.trace(ids=IDS)
    at = "decoder.0.self_attention"
    fused = np.concatenate([merged(trace[f"{at}.{name}"]) for name in ("query", "key", "value")], axis=-1)
    diagnosis = diagnose(dumped({"transformer.h.0.attn.c_attn": fused[None]}), model)
    assert [each.step for each in diagnosis.steps] == [f"{at}.query", f"{at}.key", f"{at}.value"]
    assert diagnosis.first is None
    wrong = fused.copy()
    wrong[:, -1] += 1
    first = blamed(diagnose(dumped({"h.0.attn.c_attn": wrong}), model).first)
    assert first.step == f"{at}.value"


def test_rows_of_ggml_are_recognised_in_its_order_of_axes_and_that_of_gguf_files() -> None:
    model = model_of("llama")
    query = np.array(model.trace(ids=IDS)["decoder.0.self_attention.query"])  # heads × tokens × d_k
    flat = np.ascontiguousarray(query.transpose(1, 0, 2))  # in memory as ggml has it: {d_k, heads, tokens}
    tensor = Tensor("Qcur-0", flat.shape[::-1], lambda: Values(flat.reshape(flat.shape[::-1]), FLOAT32), True)
    given = dumped({}).tensors | {"Qcur-0": tensor}
    assert diagnose(Dump(Path("a"), given), model, names="ggml").first is None
    # columns i and i + d_k/2 side by side
    half = query.shape[-1] // 2
    paired = np.stack([query[..., :half], query[..., half:]], -1).reshape(query.shape)
    diagnosis = diagnose(dumped({"Qcur-0": merged(paired)}), model)
    assert diagnosis.first is None
    assert any("GGUF" in each for each in diagnosis.assumed)


CALLED = {
    "Q": QUERY,
    "layer 1 Q": "encoder.1.self_attention.query",
    "Attention scores (7x7)": SCORES,
    "Layer 1: attention weights (softmax)": "encoder.1.self_attention.weights",
    "scaled scores": f"{AT}.scaled",
    "Positional encoding": "embedding.positions",
    "Add & Norm 2": "encoder.0.feed_forward.norm",
    "Encoder layer 1 output": "encoder.1.feed_forward.norm",
    "ReLU output": "encoder.0.feed_forward.activation",
    "logits": "output.logits",
    "encoder_0_self_attention_scores": SCORES,
    "value/encoder.0.self_attention.scores": SCORES,
    "encoder.layers.1.linear1": "encoder.1.feed_forward.hidden",
    "layers.0.self_attn": f"{AT}.output",
    "hidden_states.1": "encoder.0.feed_forward.norm",
    "attentions[1]": "encoder.1.self_attention.weights",
}
"""Each of one step alone."""
NAMED = {
    "embedding.tokens": "tok_emb; wte; Word embeddings; embedded",
    "embedding.positions": "pos_enc; wpe; PE; positional_encodings; pos_emb",
    "embedding.output": "x0; Embedding + PE; emb_with_pos; Final embedding; encoder_input",
    "encoder.1.self_attention.query": "l1_q; layers[1].attn.W_q; enc1.q; layer 1 Q projection; Q1; linears.0 layer 1",
    "encoder.1.self_attention.scores": "Layer 1: Attention scores (QK^T); layers.1.attn_logits; scores_1",
    "encoder.1.self_attention.scaled": "layer 1 QK^T / sqrt(d_k); layers.1.attn.scaled_scores",
    "encoder.1.self_attention.masked": "layer 1 masked scores; layers.1.attn.after_mask",
    "encoder.1.self_attention.weights": "attn_weights_1; layer1_attn_probs; layer 1 softmax(QK^T/sqrt(dk)); A1",
    "encoder.1.self_attention.output": "layers.1.attn.wo; layer_1_multihead_output; mha_1; layers.1.self_attn.o_proj",
    "encoder.1.self_attention.norm": "layers.1.norm1; layer1_addnorm1; Layer 1 Add & Norm 1; layer1.ln1",
    "encoder.1.feed_forward.hidden": "l1_ffn1; layers.1.mlp.fc1; layer 1 FFN linear 1; layer1.ff.0; l1 ffn layer 1",
    "encoder.1.feed_forward.activation": "layer1_relu; layers.1.activation; layer 1 after ReLU; layers.1.mlp.act",
    "encoder.1.feed_forward.output": "layers.1.mlp; l1_ffn2; layer1.ff.3; layers.1.ffn.w2; layers.1.mlp.down",
    "encoder.1.feed_forward.norm": "layer_1; layer1_out; enc_out_1; layers.1.norm2; encoder_layer_1",
    "output.logits": "logits before softmax; lm_head; fc_out; generator.proj",
    "output.probabilities": "y_hat; final softmax; output_probs",
}


def test_names_of_every_habit_are_understood_and_what_is_no_step_is_taken_for_none() -> None:
    model = model_of("post")
    names = names_for(model, model.program(7))
    assert {name: [target.steps[0] for target in names.find(name)] for name in CALLED} == {
        name: [step] for name, step in CALLED.items()
    }
    habits = {name.strip(): step for step, many in NAMED.items() for name in many.split(";")}
    steps = {name: {step for target in names.find(name) for step in target.steps} for name in habits}
    assert {name: wanted for name, wanted in habits.items() if wanted not in steps[name]} == {}
    for name in ("scores gradient", "my favourite matrix", "time", "", "layer 9 Q", "42"):
        assert names.find(name) == ()


def test_what_a_name_leaves_open_its_shape_and_its_values_say() -> None:
    arrays, at = computed("post"), "encoder.1"
    parts = {
        "ffn_1": arrays[f"{at}.feed_forward.output"],
        "l1_attn": arrays[f"{at}.self_attention.weights"],
        "x1": arrays["encoder.0.output"],
        "output": arrays["output.logits"],
    }
    diagnosis = diagnose(dumped(parts), model_of("post"))
    assert {each.theirs: each.step for each in diagnosis.steps} == {
        "ffn_1": f"{at}.feed_forward.output",
        "l1_attn": f"{at}.self_attention.weights",
        "x1": "encoder.0.feed_forward.norm",
        "output": "output.logits",
    }
    assert diagnosis.first is None


def test_names_are_those_of_the_sublayers_of_a_model() -> None:
    # norms of a decoder beside an encoder are counted by their sublayers
    model = Model.load("encoder-decoder", layers=1, decoder_layers=1)
    names = names_for(model, model.program(3, 2))
    wanted = ("decoder.0.self_attention.norm", "decoder.0.cross_attention.norm", "decoder.0.feed_forward.norm")
    assert [names.find(f"decoder layer 0 norm {i}")[0].steps[0] for i in (1, 2, 3)] == list(wanted)
    assert names.find("dec_layer_0_cross_attn_q")[0].steps == ("decoder.0.cross_attention.query",)
    assert names.find("memory")[0].steps == ("encoder.0.feed_forward.norm",)
    # names of the first program of Llama
    model = model_of("llama")
    names = names_for(model, model.program(3))
    for name, step in (("w1", "gate"), ("w2", "output"), ("w3", "hidden")):
        assert names.find(f"layers.1.feed_forward.{name}")[0].steps[0] == f"decoder.1.feed_forward.{step}"
    assert names.find("layers.0.attention_norm")[0].steps[0] == "decoder.0.self_attention.norm"
    assert "decoder.0.self_attention.norm" not in names.find("layers.0.attention")[0].steps


def test_heads_that_are_printed_alone_are_put_together(tmp_path: Path) -> None:
    arrays = computed("post", "scale-missing")
    parts = {f"head {i} {name}": arrays[f"{AT}.{name}"][i] for i in range(2) for name in ("scores", "scaled")}
    diagnosis = diagnose(dumped(parts), model_of("post"))
    assert [each.step for each in diagnosis.steps] == [SCORES, f"{AT}.scaled"]
    assert diagnosis.first is not None
    assert diagnosis.first.cause == "scale-missing"
    # a heading that comes once a layer and head
    heads = [rows(matrix) for i in range(2) for matrix in computed("post")[f"encoder.{i}.self_attention.scores"]]
    dump = dump_of("".join(f"Scores:\n{head}" for head in heads), tmp_path)
    diagnosis = diagnose(dump, model_of("post"), Input(np.array([IDS])))
    assert [each.step for each in diagnosis.steps] == [SCORES, "encoder.1.self_attention.scores"]
    assert diagnosis.first is None


def test_a_log_with_sizes_and_heads_in_its_headings_is_read_whole(tmp_path: Path) -> None:
    arrays = computed("post", "scale-d_model")
    text = ""
    for layer in range(2):
        at = f"encoder.{layer}.self_attention"
        text += f"##### Encoder layer {layer} #####\n"
        for head in range(2):
            for name, said in (("scores", "QK^T"), ("scaled", "scaled scores"), ("weights", "attention weights")):
                inner = rows(arrays[f"{at}.{name}"][head]).strip().replace(" ", ", ").replace("\n", "]\n[")
                text += f"=== Head {head} {said} (7x7) ===\n[[{inner}]]\n\n"
        text += f"--- Concatenated heads (7x16) ---\n{rows(arrays[f'{at}.concat'])}\n"
    diagnosis = diagnose(dump_of(text, tmp_path), model_of("post"), Input(np.array([IDS])))
    parts = ("scores", "scaled", "weights", "concat")
    assert [each.step for each in diagnosis.steps] == [
        f"encoder.{i}.self_attention.{part}" for i in (0, 1) for part in parts
    ]
    assert diagnosis.unmatched == ()
    assert diagnosis.first is not None
    assert (diagnosis.first.step, diagnosis.first.cause) == (f"{AT}.scaled", "scale-d_model")


def test_own_names_are_said_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    path.write_text(f"# mine\nmy_first = {QUERY}\nmy_second = {SCORES}  # of all heads\n")
    arrays = computed("post")
    dump = dumped({"my_first": arrays[QUERY], "my_second": arrays[SCORES], "my_third": arrays[QUERY]})
    diagnosis = diagnose(dump, model_of("post"), own=read_map(path))
    assert [each.theirs for each in diagnosis.steps] == ["my_first", "my_second"]
    assert diagnosis.unmatched == ("my_third: no step of this name",)
    for text in ("my_first", "a = \n", '{"a": 3}'):
        path = tmp_path / ("names.json" if text.startswith("{") else "names.txt")
        path.write_text(text)
        refuses("names", lambda path=path: read_map(path))


def test_what_does_not_fit_or_is_not_there_is_said() -> None:
    arrays = computed("post")
    diagnosis = diagnose(dumped(arrays | {QUERY: np.zeros((3, 5))}), model_of("post"))
    assert any("3 × 5 does not fit 2 × 7 × 8" in each for each in diagnosis.unmatched)
    assert diagnosis.first is not None
    assert diagnosis.first.step == QUERY
    refuses("--text, or --ids", lambda: input_of(Dump(Path("a.npz"), {}), model_of("post")))
    with pytest.raises(InputError, match=r"it has qq_scoors; the model has embedding.*nearest: .*--map"):
        diagnose(dumped({"qq_scoors": np.zeros((2, 2))}), model_of("post"))


@pytest.mark.parametrize(
    "family", ["bert", "gpt2", "gpt_neox", "llama", "qwen2", "qwen3", "t5", "bart", "marian", "roberta", "distilbert"]
)
def test_published_values_of_every_family_agree(family: str) -> None:
    folder = REFERENCES / family
    diagnosis = diagnose(open_dump(folder / "expected.npz"), Model.load(folder))
    assert diagnosis.first is None, diagnosis.first
    assert len(diagnosis.steps) >= 5


@pytest.mark.parametrize("added", ["key", "key − query", "nothing"])
def test_distances_before_the_mask_may_be_those_of_keys_that_it_hides(added: str) -> None:
    model = Model.load(REFERENCES / "bloom")
    trace = model.trace(ids=IDS)
    at, places = "decoder.0.self_attention", np.arange(len(IDS))
    scaled = np.array(trace[f"{at}.scaled"], np.float64)
    slopes = 2.0 ** (-8 * np.arange(1, len(scaled) + 1) / len(scaled))
    row = {"key": 0, "key − query": places}.get(added, places) * np.ones(len(IDS))
    distances = (places[None, :] - row[:, None]) * (added != "nothing")
    biased = scaled + slopes[:, None, None] * distances
    diagnosis = diagnose(dumped({f"{at}.scaled": scaled, f"{at}.biased": biased}), model)
    if added == "nothing":
        assert blamed(diagnosis.first).cause == "relative-missing"
    else:
        assert diagnosis.first is None, diagnosis.first
        assert any("scores that the mask hides are not compared" in line for line in diagnosis.assumed)
