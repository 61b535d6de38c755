"""GGUF files give what the checkpoint gives that they were written from; damaged ones one line."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from reference import REFERENCES, in_float64, reconfigured, with_settings
from refusing import refuses
from safetensors.numpy import load_file, save_file

from tui_transformer.generation.rules import defaults_of
from tui_transformer.gguf_file import GgufFile, read_gguf
from tui_transformer.model import Model
from tui_transformer.model.gguf.model import ARCHITECTURES
from tui_transformer.model.local_models import find_model, local_models

gguf = pytest.importorskip("gguf")
from gguf_files import finish, write_gguf  # noqa: E402 - needs the library

DECODERS = (
    "llama", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "phi3", "phi", "gpt2", "olmo2", "olmo3", "smollm3",
    "granite", "starcoder2", "stablelm", "cohere", "falcon", "bloom", "gpt_neox", "mixtral", "qwen2_moe", "qwen3_moe",
    "olmoe", "gpt_oss", "cohere2", "seed_oss", "exaone4", "ernie4_5", "t5",
    "arcee", "nemotron", "glm4", "gpt_bigcode",
)  # fmt: skip
IDS = [5, 9, 2, 7, 11, 3]


def as_llama_cpp_has_it(family: str, folder: Path) -> Path:
    """The checkpoint with what a GGUF file cannot say: Gemma's scale of scores, which layers SmolLM3 turns."""
    config = json.loads((REFERENCES / family / "config.json").read_text())
    changes = {"query_pre_attn_scalar": config.get("head_dim"), "no_rope_layers": None}
    changes |= {"relative_attention_max_distance": 128}
    return with_settings(folder, family, **{key: value for key, value in changes.items() if key in config})


@pytest.mark.parametrize("family", DECODERS)
def test_a_gguf_file_gives_the_logits_of_the_checkpoint(family, tmp_path):
    check_same(write_gguf(tmp_path / "m.gguf", family), as_llama_cpp_has_it(family, tmp_path / "own"), IDS)


def check_same(file: Path, folder: Path, ids: list[int]) -> None:
    """The file has the weights, and gives the logits, of the checkpoint."""
    read, own = (in_float64(where) for where in (file, folder))
    assert read.program(3).weights == own.program(3).weights
    trace, wanted = (model.trace(ids=ids) for model in (read, own))
    np.testing.assert_allclose(trace[trace.program.logits], wanted[wanted.program.logits], atol=2e-6)


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "modernbert", "nomic_bert"])
def test_a_gguf_file_of_an_encoder_gives_its_states(family, tmp_path):
    read = in_float64(write_gguf(tmp_path / "m.gguf", family)).trace(ids=IDS)
    own = in_float64(family).trace(ids=IDS)
    last = [name for name in read.names if name.endswith(".output") and name.count(".") == 2][-1]
    np.testing.assert_allclose(read[last], own[last], atol=1e-9)


def test_the_encoder_of_a_t5_alone_gives_its_states(tmp_path):
    folder = as_llama_cpp_has_it("t5", tmp_path / "own")
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").chmod(0o644)
    kept = {name: each for name, each in tensors.items() if not name.startswith(("decoder", "lm_head"))}
    save_file(kept, folder / "model.safetensors")
    own = in_float64(folder).trace(ids=IDS)
    reconfigured(folder, model_type="t5encoder")
    read = in_float64(write_gguf(tmp_path / "m.gguf", folder)).trace(ids=IDS)
    assert not read.program.logits
    np.testing.assert_allclose(read["encoder.norm"], own["encoder.norm"], atol=2e-6)


def test_text_is_cut_as_by_the_checkpoints_own_tokenizer(tmp_path):
    text = "The cat's 42 mice sat  on\n\nthe mat, didn't they?"
    read, own = Model.load(write_gguf(tmp_path / "m.gguf", "llama")), Model.load(REFERENCES / "llama")
    assert [token.id for token in read.encode(text).tokens] == [token.id for token in own.encode(text).tokens]


def test_a_cut_file_is_named_in_one_line_wherever_it_was_cut(tmp_path):
    whole = write_gguf(tmp_path / "m.gguf", "llama").read_bytes()
    path = tmp_path / "cut.gguf"
    for size in [4, 5, 11, 20, 23, 24, 40, *range(50, len(whole) - 1, len(whole) // 40)]:
        path.write_bytes(whole[:size])
        refuses(r"cut\.gguf", lambda: Model.load(path).trace(ids=IDS).compute())


RNG = np.random.default_rng(3)
TABLE = {"factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 10000.0}
NEW_FALCON = {"new_decoder_architecture": True, "multi_query": False}
FUSED = {"transformer.h.{}.self_attention.query_key_value.weight": (64, 32)}
BIASED = {"self_attn.q": 32, "self_attn.k": 16, "self_attn.v": 16, "self_attn.o": 32}
BIASED |= {"mlp.gate": 96, "mlp.up": 96, "mlp.down": 32}
HEADS = (("q", 4), ("k", 2))
LINEAR = {"rope_type": "linear", "factor": 4.0, "rope_theta": 500.0}
KINDS = {
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
}
PART = {"rope_type": "default", "partial_rotary_factor": 0.75, "rope_theta": 1e4}
WHOLE = PART | {"partial_rotary_factor": 1.0}
OTHERWISE = {
    "falcon, new, two norms": (
        "falcon",
        NEW_FALCON,
        FUSED
        | {f"transformer.h.{{}}.{norm}.{end}": (32,) for norm in ("ln_attn", "ln_mlp") for end in ("weight", "bias")},
    ),
    "falcon, new, one norm": ("falcon", NEW_FALCON | {"num_ln_in_parallel_attn": 1}, FUSED),
    "stablelm, norms of heads": (
        "stablelm",
        {"qk_layernorm": True},
        {
            f"model.layers.{{}}.self_attn.{which}_layernorm.norms.{head}.weight": (8,)
            for which, heads in HEADS
            for head in range(heads)
        },
    ),
    "cohere, norms of heads": (
        "cohere",
        {"use_qk_norm": True},
        {f"model.layers.{{}}.self_attn.{which}_norm.weight": (heads, 8) for which, heads in HEADS},
    ),
    "llama, biases": (
        "llama",
        {"attention_bias": True, "mlp_bias": True},
        {f"model.layers.{{}}.{part}_proj.bias": (rows,) for part, rows in BIASED.items()},
    ),
    "llama, linear": ("llama", {"rope_parameters": LINEAR}, {}),
    "qwen3, yarn": ("qwen3", {"rope_parameters": {"rope_type": "yarn", **TABLE}}, {}),
    "gemma3, linear": ("gemma3", {"rope_parameters": KINDS}, {}),
    "phi3, part of a head": ("phi3", {"rope_parameters": PART}, {}),
    **{
        f"{family}, whole heads": (family, {"rope_parameters": WHOLE}, {}) for family in ("gpt_neox", "phi", "stablelm")
    },
}
"""Families, settings and tensors of every layer."""


@pytest.mark.parametrize("case", OTHERWISE)
def test_a_gguf_file_with_other_options_gives_the_logits_of_the_checkpoint(case, tmp_path):
    family, changes, tensors = OTHERWISE[case]
    folder = as_llama_cpp_has_it(family, tmp_path / family)
    reconfigured(folder, **changes)
    stored = load_file(folder / "model.safetensors")
    if any("ln_attn" in name for name in tensors):
        stored = {name: tensor for name, tensor in stored.items() if "input_layernorm" not in name}
    for name, shape in tensors.items():
        stored |= {name.format(i): RNG.normal(size=shape).astype("f4") for i in (0, 1)}
    save_file(stored, folder / "model.safetensors")
    check_same(write_gguf(tmp_path / "m.gguf", folder), folder, IDS * 4)


@pytest.mark.parametrize("family", ["gemma", "mixtral", "qwen2", "starcoder2"])
def test_heads_of_keys_and_their_width_are_the_usual_ones_where_the_file_does_not_say_them(family, tmp_path):
    folder = as_llama_cpp_has_it(family, tmp_path / family)
    heads, width = (
        json.loads((folder / "config.json").read_text())[key] for key in ("num_attention_heads", "hidden_size")
    )
    stored = load_file(folder / "model.safetensors")
    for name, tensor in stored.items():
        if "self_attn" in name and ("k_proj" in name or "v_proj" in name):
            stored[name] = RNG.normal(size=(width, *tensor.shape[1:])).astype("f4")
    save_file(stored, folder / "model.safetensors")
    reconfigured(folder, num_key_value_heads=heads, head_dim=width // heads)
    unsaid = ("attention.head_count_kv", "attention.key_length", "rope.dimension_count")
    check_same(write_gguf(tmp_path / "m.gguf", folder, left=unsaid), folder, IDS)


@pytest.mark.parametrize(
    ("entries", "factor"),
    [
        ({"rope.scaling.factor": 4.0}, 4.0),
        ({"rope.scale_linear": 4.0}, 4.0),
        ({"rope.scaling.type": "none", "rope.scaling.factor": 4.0}, None),
        ({"rope.scaling.type": "linear"}, None),
        ({"rope.scaling.type": "linear", "rope.scaling.factor": 0.0, "rope.scale_linear": 4.0}, None),
    ],
)
def test_positions_are_scaled_evenly_where_the_file_says_how_much_and_not_how(entries, factor, tmp_path):
    folder = as_llama_cpp_has_it("llama", tmp_path / "llama")
    file = write_gguf(tmp_path / "m.gguf", folder, **entries)
    theta = json.loads((folder / "config.json").read_text())["rope_parameters"]["rope_theta"]
    scaled = {"rope_type": "linear", "factor": factor} if factor else {"rope_type": "default"}
    check_same(file, reconfigured(folder, rope_parameters={"rope_theta": theta, **scaled}), IDS * 4)


def test_a_list_of_divisors_for_short_and_for_long_sentences_is_read(tmp_path):
    short, long = [1.0, 2.0, 1.5, 3.0], [4.0, 1.0, 8.0, 2.0]
    entries = {"rope.scaling.original_context_length": 16, "rope.scaling.attn_factor": 1.25}
    path = write_gguf(
        tmp_path / "m.gguf",
        "phi3",
        tensors={"rope_factors_short.weight": short, "rope_factors_long.weight": long},
        **entries,
    )
    rope = Model.load(path).config.rope_parameters
    assert (rope.rope_type, rope.short_factor, rope.long_factor) == ("longrope", tuple(short), tuple(long))
    assert (rope.original_max_position_embeddings, rope.attention_factor) == (16, 1.25)


@pytest.mark.parametrize(
    ("family", "tensors", "entries", "named"),
    [
        ("llama", {"blk.0.attn_q.bias": [0.0] * 32}, {}, r"blk|q_proj\.bias"),
        ("llama", {"blk.1.attn_sinks.weight": [0.0] * 4}, {}, r"blk\.1\.attn_sinks\.weight is not read"),
        ("qwen2", {}, {"rope.scaling.type": "longrope"}, "longrope"),
        ("qwen2", {}, {"rope.dimension_count": 4}, "4 of 8 columns"),
        ("qwen2", {}, {"attention.causal": False}, "is_causal"),
        ("llama", {}, {"expert_count": 4, "expert_used_count": 2}, "block_sparse_moe.gate.weight is missing"),
        ("falcon", {}, {"attention.head_count_kv": 3}, r"attn_qkv|does not fit|divisible"),
        ("llama", {}, {"feed_forward_length": 95}, "is 32 × 96.*, but its metadata say 32 × 95|96 × 32.* metadata say"),
        ("llama", {}, {"attention.head_count": True}, "have True for llama.attention.head_count, which is no size"),
        ("llama", {}, {"rope.freq_base": [1, 2]}, r"have \[1, 2\] for rope.freq_base"),
        ("llama", {}, {"rope.scaling.type": [1, 2]}, r"scaled by '\[1, 2\]' are not read"),
    ],
)
def test_what_would_be_computed_otherwise_is_refused_by_name(family, tensors, entries, named, tmp_path):
    path = write_gguf(tmp_path / "m.gguf", family, tensors=tensors, **entries)
    refuses(named, lambda: Model.load(path))


@pytest.mark.parametrize(
    ("version", "says"),
    [(b"\0\0\0\3", "its numbers are big-endian: get or make the file"), (b"\1\0\0\0", "GGUF is 1: get or make it as")],
)
def test_a_file_that_no_copy_makes_readable_is_not_to_be_copied(version, says, tmp_path):
    path = write_gguf(tmp_path / "m.gguf", "llama")
    path.write_bytes(b"GGUF" + version + path.read_bytes()[8:])
    assert "copy it again" not in refuses(says, lambda: Model.load(path))


def test_what_is_not_read_is_refused_by_name_and_of_two_files_in_a_folder_both(tmp_path):
    path = write_gguf(tmp_path / "a.gguf", "llama")
    assert Model.load(tmp_path).config == Model.load(path).config
    shutil.copy(path, tmp_path / "b.gguf")
    refuses(r"2 GGUF files.*a\.gguf", lambda: Model.load(tmp_path))
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "rwkv")
    finish(writer)
    refuses("rwkv", lambda: Model.load(path))
    (tmp_path / "text.gguf").write_text("no weights")
    refuses(r"text\.gguf", lambda: Model.load(tmp_path / "text.gguf"))


def test_models_of_ollama_and_llama_cpp_are_found(tmp_path, monkeypatch):
    store, cache, digest = tmp_path / "ollama", tmp_path / "llama", "ab" * 32
    blob = store / "blobs" / f"sha256-{digest}"
    manifest = store / "manifests" / "a.registry" / "library" / "tiny" / "latest"
    for folder in (blob.parent, manifest.parent, cache):
        folder.mkdir(parents=True)
    write_gguf(tmp_path / "m.gguf", "llama").rename(blob)
    shutil.copy(blob, cache / "small-Q4.gguf")
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"}
    manifest.write_text(json.dumps({"layers": [{"mediaType": "x", "digest": f"sha256:{0:064}"}, layer]}))
    (manifest.parent / "broken").write_text("{")
    (manifest.parent / "outside").write_text(json.dumps({"layers": [layer | {"digest": "sha256:../../x"}]}))
    monkeypatch.setenv("OLLAMA_MODELS", str(store))
    monkeypatch.setenv("LLAMA_CACHE", str(cache))
    listed = {(each.name, each.source) for each in local_models()}
    assert {("tiny:latest", "ollama"), ("small-Q4", "llama.cpp")} <= listed
    assert not any("outside" in name or "broken" in name for name, _ in listed)
    assert find_model("tiny").folder == blob
    assert Model.load("small-Q4").config == Model.load("tiny:latest").config


def test_only_tokens_that_are_looked_up_are_read_of_a_table_and_generation_stops_at_the_end(tmp_path):
    defaults = defaults_of(Model.load(write_gguf(tmp_path / "m.gguf", "llama")))
    assert defaults.settings.greedy
    path = write_gguf(tmp_path / "m.gguf", "llama")
    start = read_gguf(path).tensors["token_embd.weight"].start
    data = bytearray(path.read_bytes())
    data[start : start + 4] = np.array([np.nan], "<f4").tobytes()
    path.write_bytes(data)
    weights = Model.load(path).weights.file
    assert np.isfinite(weights.part("embedding.tokens.weight", np.array([1, 2]))).all()
    refuses("NaN", lambda: weights.part("embedding.tokens.weight", np.array([0])))


def test_a_gemma_with_eyes_from_ollama_is_read_without_them(tmp_path):
    entries = {"rope.local.freq_base": 10000.0, "rope.global.freq_base": 1e6, "vision.block_count": 2}
    path = write_gguf(
        tmp_path / "m.gguf",
        "gemma3",
        tensors={"v.blk.0.attn_q.weight": [0.0] * 4, "mm.input_projection.weight": [1.0] * 4},
        left=("rope.freq_base", "rope.freq_base_swa"),
        **entries,
    )
    read, own = Model.load(path), Model.load(as_llama_cpp_has_it("gemma3", tmp_path / "own"))
    assert read.config.rope_parameters == own.config.rope_parameters
    assert read.program(3).weights == own.program(3).weights


def test_gpt_oss_from_ollama_gives_the_logits_of_the_checkpoint(tmp_path):
    path, own = tmp_path / "m.gguf", in_float64("gpt_oss").trace(ids=IDS)
    read = gguf.GGUFReader(write_gguf(path, "gpt_oss"))
    tensors = {each.name: np.array(each.data) for each in read.tensors}
    writer = gguf.GGUFWriter(tmp_path / "ollama.gguf", "gptoss")
    for key, entry in read.fields.items():
        if key.startswith("gpt-oss.") and "scaling.type" not in key and "pattern" not in key:
            value = entry.contents()
            add = writer.add_float32 if isinstance(value, float) else writer.add_uint32
            add(key.replace("gpt-oss.", "gptoss."), value)
    for i in (0, 1):
        parts = [tensors.pop(f"blk.{i}.attn_{part}.{end}") for end in ("weight", "bias") for part in "qkv"]
        tensors |= {
            f"blk.{i}.attn_qkv.weight": np.concatenate(parts[:3]),
            f"blk.{i}.attn_qkv.bias": np.concatenate(parts[3:]),
        }
        for end in ("weight", "bias"):
            gate, up = (tensors.pop(f"blk.{i}.ffn_{part}_exps.{end}") for part in ("gate", "up"))
            both = np.stack([gate, up], axis=2).reshape(len(gate), 2 * gate.shape[1], *gate.shape[2:])
            tensors[f"blk.{i}.ffn_gate_up_exps.{end}"] = both
            tensors[f"blk.{i}.attn_out.{end}"] = tensors.pop(f"blk.{i}.attn_output.{end}")
        tensors[f"blk.{i}.attn_sinks"] = tensors.pop(f"blk.{i}.attn_sinks.weight")
    for name, tensor in tensors.items():
        writer.add_tensor(name, np.ascontiguousarray(tensor))
    finish(writer)
    trace = in_float64(tmp_path / "ollama.gguf").trace(ids=IDS)
    np.testing.assert_allclose(trace["output.logits"], own["output.logits"], atol=2e-6)


def test_a_model_whose_tensors_overlap_is_not_opened(tmp_path):
    path = tmp_path / "model.gguf"
    data = bytearray(write_gguf(path, "llama").read_bytes())
    file = read_gguf(path)
    (name, first), (after, second), *_ = sorted(file.tensors.items(), key=lambda item: item[1].start)
    at = data.index(after.encode()) + len(after.encode()) + 4 + 8 * len(second.shape) + 4
    assert struct.unpack_from("<Q", data, at) == (second.start - file.begin,)
    struct.pack_into("<Q", data, at, first.start - file.begin)
    path.write_bytes(data)
    refuses(rf"model\.gguf: tensor {name} overlaps tensor {after}", lambda: Model.load(path))


@pytest.mark.parametrize(
    ("settings", "marks"),
    [
        ("gemma3", "wwwwwfwwwwwfww"),
        ("olmo2", "wwwfwwwfwwwfww"),
        ("gpt_oss", "wfwfwfwfwfwfwf"),
        ("cohere2", "wwwfwwwfwwwfww"),
        ("exaone4", "wwwfwwwfwwwfww"),
        ("modern_bert", "fwwfwwfwwfwwfw"),
    ],
)
def test_layers_see_all_keys_where_their_architecture_says_so_and_the_file_nothing(settings, marks):
    file = GgufFile(Path("m.gguf"), {"general.architecture": settings.replace("_", "-")}, {}, 0)
    raw = {"num_hidden_layers": len(marks), "hidden_size": 64, "num_attention_heads": 4, "sliding_window": 3}
    architecture = ARCHITECTURES[file.architecture]
    kinds = architecture.more(file, raw | {"model_type": architecture.model_type})["layer_types"]
    assert kinds == [{"w": "sliding_attention", "f": "full_attention"}[mark] for mark in marks]
