"""The studies of LIBRARY.md by hand, with TransformerLens and PyTorch: `torch_studies.py MODELS STUDY [serve]`.

Writes the numbers of a study as JSON, or (`serve`) makes it once for every line that comes in. Imports nothing of this
project, so that it runs wherever the two are installed; MODELS is the folder of the models that come with it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformer_lens import HookedTransformer, HookedTransformerConfig

from benchmarks.sides import serve

Hook = tuple[str, Callable[..., torch.Tensor]]
Metric = Callable[[torch.Tensor], float]
Cache = Mapping[str, torch.Tensor]

MODELS = Path(sys.argv[1])


# What every study needs: a model that the libraries do not know, its words, and path patching


def load(name: str, dtype: torch.dtype = torch.float32) -> HookedTransformer:
    """A decoder with norms before its sublayers, its weights taken over one by one."""
    config = json.loads((MODELS / name / "config.json").read_text())
    weights = {key: each.to(dtype) for key, each in load_file(MODELS / name / "model.safetensors").items()}
    heads, width, layers = config["heads"], config["d_model"], config["layers"]
    size = width // heads
    model = HookedTransformer(
        HookedTransformerConfig(
            n_layers=layers,
            d_model=width,
            n_ctx=config["max_length"],
            d_head=size,
            n_heads=heads,
            d_mlp=config["d_ff"],
            d_vocab=config["vocab_size"],
            act_fn=config["activation"],
            normalization_type="LN",
            eps=config["norm_epsilon"],
            device="cpu",
            dtype=dtype,
        )
    )
    state = {
        "embed.W_E": weights["embedding.tokens.weight"] * width**0.5,
        "pos_embed.W_pos": weights.get("embedding.positions.weight", waves(config["max_length"], width).to(dtype)),
        "ln_final.w": weights["decoder.norm.weight"],
        "ln_final.b": weights["decoder.norm.bias"],
        "unembed.W_U": weights.get("output.logits.weight", weights["embedding.tokens.weight"].T),
        "unembed.b_U": weights.get("output.logits.bias", torch.zeros(config["vocab_size"])),
    }
    for layer in range(layers):
        own, block = f"decoder.{layer}", f"blocks.{layer}"
        for letter, part in (("Q", "query"), ("K", "key"), ("V", "value")):
            matrix = weights[f"{own}.self_attention.{part}.weight"]
            state[f"{block}.attn.W_{letter}"] = matrix.reshape(width, heads, size).permute(1, 0, 2)
            state[f"{block}.attn.b_{letter}"] = weights[f"{own}.self_attention.{part}.bias"].reshape(heads, size)
        state[f"{block}.attn.W_O"] = weights[f"{own}.self_attention.output.weight"].reshape(heads, size, width)
        state[f"{block}.attn.b_O"] = weights[f"{own}.self_attention.output.bias"]
        state[f"{block}.mlp.W_in"] = weights[f"{own}.feed_forward.hidden.weight"]
        state[f"{block}.mlp.b_in"] = weights[f"{own}.feed_forward.hidden.bias"]
        state[f"{block}.mlp.W_out"] = weights[f"{own}.feed_forward.output.weight"]
        state[f"{block}.mlp.b_out"] = weights[f"{own}.feed_forward.output.bias"]
        for norm, sublayer in (("ln1", "self_attention"), ("ln2", "feed_forward")):
            state[f"{block}.{norm}.w"] = weights[f"{own}.{sublayer}.norm.weight"]
            state[f"{block}.{norm}.b"] = weights[f"{own}.{sublayer}.norm.bias"]
    model.load_state_dict(state, strict=False)  # masks are made by the library
    return model


def waves(length: int, width: int) -> torch.Tensor:
    """The sinusoids of Vaswani et al. 2017."""
    angles = torch.arange(length)[:, None] / 10_000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    return torch.stack((angles.sin(), angles.cos()), -1).reshape(length, width)


def tokenizer_of(name: str) -> Tokenizer:
    return Tokenizer.from_file(str(MODELS / name / "tokenizer.json"))


def tokens_of(tokenizer: Tokenizer, text: str) -> torch.Tensor:
    return torch.tensor([tokenizer.encode(text).ids])


def replaced(values: torch.Tensor, hook: Any, by: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """All of a hook point."""
    del values
    return by[hook.name]


def head_replaced(values: torch.Tensor, hook: Any, by: Mapping[str, torch.Tensor], head: int) -> torch.Tensor:
    """One head of a hook point."""
    values = values.clone()
    values[:, :, head] = by[hook.name][:, :, head]
    return values


Sender = tuple[str, int | None]
"""A hook point and, where it has heads, a head."""


def senders_of(model: HookedTransformer, kinds: Sequence[str], layers: int) -> Iterator[Sender]:
    """Of the layers below one."""
    if "embedding" in kinds:
        yield "hook_embed", None
    if "head" in kinds:
        yield from (
            (f"blocks.{layer}.attn.hook_z", head) for layer in range(layers) for head in range(model.cfg.n_heads)
        )
    if "feed_forward" in kinds:
        yield from ((f"blocks.{layer}.hook_mlp_out", None) for layer in range(layers))


def patched_paths(
    model: HookedTransformer,
    own: torch.Tensor,
    other: torch.Tensor,
    senders: Sequence[Sender],
    receivers: Sequence[tuple[str, int]],
    metric: Metric,
) -> Iterator[float]:
    """The metric with each path alone: all heads and feed-forward layers are frozen but the sender."""
    _, clean = model.run_with_cache(own)
    _, moved = model.run_with_cache(other)
    frozen: list[Hook] = [
        (name, partial(replaced, by=clean))
        for layer in range(model.cfg.n_layers)
        for name in (f"blocks.{layer}.attn.hook_z", f"blocks.{layer}.hook_mlp_out")
    ]
    wanted = {name for name, _ in receivers}
    for sender, head in senders:
        change = partial(replaced, by=moved) if head is None else partial(head_replaced, by=moved, head=head)
        model.reset_hooks()
        for name, hook in [each for each in frozen if head is not None or each[0] != sender]:
            model.add_hook(name, hook)
        model.add_hook(sender, change)
        _, reached = model.run_with_cache(own, names_filter=lambda name: name in wanted)
        model.reset_hooks()
        for receiver, reading in receivers:
            if layer_of(receiver) > layer_of(sender):
                hook = partial(head_replaced, by=reached, head=reading)
                yield metric(model.run_with_hooks(own, fwd_hooks=[(receiver, hook)]))


def layer_of(name: str) -> int:
    return int(name.split(".")[1]) if name.startswith("blocks.") else -1


# The studies


def induction() -> list[float]:
    """Which way `copy` finds what comes next."""
    model, rng = load("copy"), np.random.default_rng(0)
    half = rng.permutation(np.arange(5, 20))[:8].tolist()
    own = torch.tensor([[*half, *half[:4]]])
    other = torch.tensor([[*half[:3], 25, *half[4:], *half[:4]]])

    def metric(logits: torch.Tensor) -> float:
        return float(logits[0, -1].log_softmax(-1)[half[4]])

    logits, cache = model.run_with_cache(own)
    numbers = [metric(logits), metric(model(other))]
    for layer in range(model.cfg.n_layers):
        numbers += cache[f"blocks.{layer}.attn.hook_pattern"][0, :, -1, 4].tolist()
    senders = list(senders_of(model, ("embedding", "head"), 1))
    receivers = [
        (f"blocks.{layer}.attn.hook_{letter}", head)
        for letter in "qkv"
        for layer in range(model.cfg.n_layers)
        for head in range(model.cfg.n_heads)
    ]
    return [*numbers, *patched_paths(model, own, other, senders, receivers, metric)]


def name() -> list[float]:
    """Which head of `story` writes the name of a girl, and what it reads."""
    model, tokenizer = load("story"), tokenizer_of("story")
    text = "Once there was a small girl called {}, who lived by the sea with a duck. One day"
    own, other = (tokens_of(tokenizer, text.format(who)) for who in ("Anna", "Nora"))
    anna, nora = (tokenizer.encode(f" {who}").ids[-1] for who in ("Anna", "Nora"))

    def metric(logits: torch.Tensor) -> float:
        return float(logits[0, -1, anna] - logits[0, -1, nora])

    logits, cache = model.run_with_cache(own)
    changed, moved = model.run_with_cache(other)
    numbers = [metric(logits), metric(changed)]
    for layer, head in product(range(model.cfg.n_layers), range(model.cfg.n_heads)):
        hook = partial(head_replaced, by=moved, head=head)
        numbers.append(metric(model.run_with_hooks(own, fwd_hooks=[(f"blocks.{layer}.attn.hook_z", hook)])))
    numbers += cache["blocks.2.attn.hook_pattern"][0, 0, -1].tolist()
    senders = list(senders_of(model, ("embedding", "head", "feed_forward"), 2))
    receivers = [(f"blocks.2.attn.hook_{letter}", 0) for letter in "qv"]
    return [*numbers, *patched_paths(model, own, other, senders, receivers, metric)]


def position() -> list[float]:
    """Ridge regression of the position from the rows of `story`, R² on texts that nothing was fitted to."""
    model, tokenizer = load("story"), tokenizer_of("story")
    text = "Once there was a {} {} called {}, who lived by the {} with a duck. One day {} found a hat."
    words = product(("small", "quiet"), ("boy", "girl"), ("Tom", "Mira", "Anna"), ("sea", "road"))
    texts = [text.format(kind, who, name, place, name) for kind, who, name, place in words]
    hooks = ["hook_embed", *(f"blocks.{layer}.{at}" for layer, at in STREAM)]
    rows: dict[str, list[torch.Tensor]] = {hook: [] for hook in hooks}
    numbers: list[int] = []
    places: list[int] = []
    for number, each in enumerate(texts):
        ids = tokens_of(tokenizer, each)
        _, cache = model.run_with_cache(ids, names_filter=lambda name: name in rows)
        for hook in hooks:
            rows[hook].append(cache[hook][0])
        numbers += [number] * ids.shape[1]
        places += range(ids.shape[1])
    held = np.random.default_rng(0).permutation(len(texts))[: round(HELD_OUT * len(texts))]
    out = torch.tensor(np.isin(numbers, held))
    y = torch.tensor(places, dtype=torch.float64)
    return [ridge_score(torch.cat(rows[hook]).double(), y, out) for hook in hooks]


STREAM = ((0, "hook_resid_pre"), (0, "hook_resid_post"), (1, "hook_resid_post"), (2, "hook_resid_post"))
HELD_OUT, PENALTY = 0.25, 0.01


def ridge_score(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> float:
    """R² of the rows that are held out."""
    mean, centre = x[~out].mean(0), y[~out].mean()
    rows = x[~out] - mean
    ridge = PENALTY * rows.square().mean() * torch.eye(x.shape[1], dtype=x.dtype)
    weights = torch.linalg.solve(rows.T @ rows / len(rows) + ridge, rows.T @ (y[~out] - centre) / len(rows))
    left = y[out] - centre - (x[out] - mean) @ weights
    return float(1 - left.square().sum() / (y[out] - centre).square().sum())


def feature() -> list[float]:
    """The features at the place where an animal is to be named, and what is written where one is stronger."""
    model, tokenizer = load("story"), tokenizer_of("story")
    weights = load_file(MODELS / "story" / "features" / "sae_weights.safetensors")
    most = json.loads((MODELS / "story" / "features" / "cfg.json").read_text())["k"]
    ids = tokens_of(tokenizer, "Once there was a small girl called Mira, who lived by the sea with a")
    at = "blocks.1.hook_resid_post"

    def encode(x: torch.Tensor) -> torch.Tensor:
        before = ((x - weights["b_dec"]) @ weights["W_enc"] + weights["b_enc"]).relu()
        values, places = before.topk(most, dim=-1)
        return torch.zeros_like(before).scatter(-1, places, values)

    def steered(values: torch.Tensor, hook: Any, feature: int, by: float) -> torch.Tensor:
        del hook
        active = encode(values)[..., feature]
        return values + ((by - 1) * active)[..., None] * weights["W_dec"][feature]

    _, cache = model.run_with_cache(ids)
    active, numbers = encode(cache[at][0, -1]), []
    for which in active.topk(3).indices.tolist():
        written = active[which] * weights["W_dec"][which]
        logits = (written - written.mean()) / cache["ln_final.hook_scale"][0, -1] * model.ln_final.w @ model.W_U
        logits = logits - logits.mean()
        numbers += [which, float(active[which]), *map(float, logits.sort(descending=True).values[:4])]
    for which, by in ((94, 1.0), (94, 0.0), (94, 3.0), (327, 3.0)):
        logits = model.run_with_hooks(ids, fwd_hooks=[(at, partial(steered, feature=which, by=by))])
        numbers.append(int(logits[0, -1].argmax()))
    return numbers


def graph() -> list[float]:
    """Direct effects on the logit of a name, on what leads to it, and on a feature, patterns and norms held."""
    model, tokenizer = load("story", torch.float64), tokenizer_of("story")
    weights = load_file(MODELS / "story" / "features" / "sae_weights.safetensors")
    sae = {name: each.double() for name, each in weights.items()}
    most = json.loads((MODELS / "story" / "features" / "cfg.json").read_text())["k"]
    ids = tokens_of(tokenizer, "Once there was a small girl called Anna, who lived by the sea with a duck. One day")
    leaves: dict[tuple[str, int], torch.Tensor] = {}
    read: dict[str, torch.Tensor] = {}

    def leaf(kind: str, layer: int, values: torch.Tensor) -> torch.Tensor:
        leaves[kind, layer] = values.detach().requires_grad_()
        return leaves[kind, layer]

    def held(values: torch.Tensor, hook: Any) -> torch.Tensor:
        del hook
        return values.detach()

    def embedded(values: torch.Tensor, hook: Any) -> torch.Tensor:
        del hook
        return leaf("embedding", -1, values)

    def fed_forward(values: torch.Tensor, hook: Any) -> torch.Tensor:
        read[hook.name] = values[0]
        return leaf("feed_forward", hook.layer(), values)

    def encoded(values: torch.Tensor, hook: Any) -> torch.Tensor:
        read["features"] = ((values - sae["b_dec"]) @ sae["W_enc"] + sae["b_enc"])[0]
        strongest = read["features"].relu().topk(most, dim=-1)
        features = torch.zeros_like(read["features"]).scatter(-1, strongest.indices, strongest.values)
        error = values[0] - features @ sae["W_dec"] - sae["b_dec"]
        written = leaf("feature", hook.layer(), features) @ sae["W_dec"] + sae["b_dec"]
        return (written + leaf("error", hook.layer(), error))[None]

    layers = range(model.cfg.n_layers)
    norms = [f"blocks.{layer}.{norm}.hook_scale" for layer in layers for norm in ("ln1", "ln2")]
    patterns = [f"blocks.{layer}.attn.hook_pattern" for layer in layers]
    hooks: list[Hook] = [(name, held) for name in (*norms, *patterns, "ln_final.hook_scale")]
    hooks += [(f"blocks.{layer}.hook_mlp_out", fed_forward) for layer in layers]
    hooks += [("blocks.0.hook_resid_pre", embedded), ("blocks.1.hook_resid_post", encoded)]
    with torch.enable_grad():
        logits = model.run_with_hooks(ids, fwd_hooks=hooks)[0, -1]
        nodes = [(*key, *place) for key in sorted(leaves) for place in sizes(leaves[key], key[0]).nonzero().tolist()]
        targets = [logits[logits.argmax()] - logits.mean()]
        for kind, layer, *place in nodes:
            if kind == "feature":
                targets.append(read["features"][place[0], place[1]])
            elif kind == "feed_forward":
                row = read[f"blocks.{layer}.hook_mlp_out"][place[0]]
                targets.append(row @ (row / row.norm()).detach())
        rows = []
        for target in targets:
            slopes = torch.autograd.grad(target, [*leaves.values()], retain_graph=True, allow_unused=True)
            effects = {
                key: torch.zeros_like(each) if slope is None else each.detach() * slope
                for (key, each), slope in zip(leaves.items(), slopes, strict=True)
            }
            row = [
                (each if key[0] == "feature" else each.squeeze(0).sum(-1))[sizes(leaves[key], key[0]) != 0]
                for key, each in sorted(effects.items())
            ]
            rows.append(torch.cat(row))
    edges = torch.stack(rows)
    reading = [i for i, (kind, *_) in enumerate(nodes) if kind in ("feature", "feed_forward")]
    shares = edges.abs() / edges.abs().sum(1, keepdim=True).clamp(min=1e-300)
    into = torch.zeros(len(nodes), len(nodes), dtype=edges.dtype)
    into[reading] = shares[1:]
    influence, now = torch.zeros_like(shares[0]), shares[0]
    while now.any():
        influence += now
        now = now @ into
    tokens, errors = (torch.tensor([node[0] == kind for node in nodes]) for kind in ("embedding", "error"))
    replacement = influence[tokens].sum() / influence[tokens | errors].sum()
    probability = logits.softmax(-1).max().detach()
    reached = torch.cat((probability[None], probability * influence))
    explained = 1 - torch.cat((shares[:1, errors].sum(1), into[:, errors].sum(1)))
    numbers = [float(replacement), float((explained * reached).sum() / reached.sum())]
    for node in (None, ("feed_forward", 2, ids.shape[1] - 1), ("feature", 1, 12, 347)):
        row = edges[0 if node is None else 1 + reading.index(nodes.index(node))]
        numbers += [each for each in row.tolist() if each]
    return numbers


def sizes(values: torch.Tensor, kind: str) -> torch.Tensor:
    """Of every node how much there is of it: of a feature its value, of a row its length."""
    return values.detach().squeeze(0) if kind == "feature" else values.detach().squeeze(0).norm(dim=-1)


STUDIES: Mapping[str, Callable[[], list[float]]] = {
    "induction": induction,
    "name": name,
    "position": position,
    "feature": feature,
    "graph": graph,
}

if __name__ == "__main__":
    with torch.no_grad():
        study = STUDIES[sys.argv[2]]
        if sys.argv[3:] == ["serve"]:
            serve(study)
        else:
            print(json.dumps(study()))
