"""Passes of transformers and TransformerLens, one for every line that comes in: `torch_passes.py WHAT NUMBERS…`.

Imports nothing of this project, so that it runs wherever the two are installed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

from benchmarks.sides import serve

LAYERS, HEADS = 12, 12
WORDS = 7, 8
END = "<|endoftext|>"


def decoder(tokens: int) -> Callable[[], object]:
    """GPT-2 as transformers runs it eagerly, with attentions and hidden states."""
    model = GPT2LMHeadModel(GPT2Config(attn_implementation="eager")).eval()
    ids = torch.arange(100, 100 + tokens)[None]
    return lambda: checked(model(ids, output_attentions=True, output_hidden_states=True), LAYERS)


def encoder(width: int, heads: int, inner: int, layers: int, tokens: int) -> Callable[[], object]:
    """BERT as transformers runs it eagerly, with attentions and hidden states."""
    config = BertConfig(
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=inner,
        num_hidden_layers=layers,
        attn_implementation="eager",
    )
    model = BertModel(config, add_pooling_layer=False).eval()
    ids = torch.arange(tokens)[None] % 100
    return lambda: checked(model(ids, output_attentions=True, output_hidden_states=True), layers)


def checked(outputs: Any, layers: int) -> object:
    """The outputs of a pass in which everything was recorded."""
    if len(outputs.attentions) != layers or len(outputs.hidden_states) != layers + 1:
        raise SystemExit("not everything was recorded")
    return outputs


def bridge() -> Any:
    """GPT-2 in TransformerLens."""
    from tokenizers import Tokenizer, models
    from transformer_lens.model_bridge import TransformerBridge
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    model = GPT2LMHeadModel(GPT2Config(attn_implementation="eager")).eval()
    with tempfile.TemporaryDirectory() as folder:  # it reads a tokenizer again, from where it was
        words = Tokenizer(models.WordLevel({END: 0}, END))
        tokens = dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), END)
        PreTrainedTokenizerFast(tokenizer_object=words, **tokens).save_pretrained(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        return TransformerBridge.boot_transformers("gpt2", hf_model=model, tokenizer=tokenizer)


def lens(tokens: int) -> Callable[[], object]:
    """`run_with_cache` of GPT-2."""
    model, ids = bridge(), torch.arange(100, 100 + tokens)[None]
    return lambda: model.run_with_cache(ids)


def ablate(tokens: int) -> Callable[[], object]:
    """The divergence of the token after the last with every head set to 0, one run each."""
    model, ids = bridge(), torch.arange(100, 100 + tokens)[None]

    def divergence(before: torch.Tensor, hook: str, head: int) -> float:
        after = model.run_with_hooks(ids, fwd_hooks=[(hook, partial(zero, head=head))])[0, -1].log_softmax(-1)
        return float((before.exp() * (before - after)).sum())

    def run() -> object:
        before = model(ids)[0, -1].log_softmax(-1)
        hooks = [f"blocks.{layer}.attn.hook_z" for layer in range(LAYERS)]
        return [divergence(before, hook, head) for hook in hooks for head in range(HEADS)]

    return run


def zero(values: torch.Tensor, hook: object, head: int) -> torch.Tensor:
    """A head that says nothing."""
    del hook
    values = values.clone()
    heads = values.view(*values.shape[:2], HEADS, -1)
    heads[:, :, head] = 0.0
    return values


def patch(tokens: int) -> Callable[[], object]:
    """A difference of two logits with every head patched from another sentence, as the library's own loop does it."""
    from transformer_lens.patching import get_act_patch_attn_head_out_all_pos

    model, ids, other = bridge(), torch.arange(100, 100 + tokens)[None], torch.arange(500, 500 + tokens)[None]

    def run() -> object:
        _, cached = model.run_with_cache(other)
        return get_act_patch_attn_head_out_all_pos(model, ids, cached, difference)

    return run


def difference(logits: torch.Tensor) -> torch.Tensor:
    """Of two words after the last token."""
    return logits[0, -1, WORDS[0]] - logits[0, -1, WORDS[1]]


def on_gpu(places: int) -> Callable[[int], object]:
    """GPT-2 as transformers runs it eagerly on a GPU, with attentions and hidden states, for so many tokens."""
    config = GPT2Config(attn_implementation="eager", n_positions=places)
    model = GPT2LMHeadModel(config).eval().to("cuda")

    def run(tokens: int) -> object:
        ids = torch.arange(100, 100 + tokens, device="cuda")[None]
        outputs = checked(model(ids, output_attentions=True, output_hidden_states=True), LAYERS)
        torch.cuda.synchronize()
        return outputs

    return run


def token_on_gpu(places: int) -> Callable[[int], object]:
    """One more token behind so many others, whose keys and values are kept on a GPU."""
    model = GPT2LMHeadModel(GPT2Config(n_positions=places)).eval().to("cuda")
    begun, cache, token = 0, None, None

    def run(tokens: int) -> object:
        nonlocal begun, cache, token
        if begun != tokens:
            begun, cache, token = tokens, None, torch.arange(100, 100 + tokens, device="cuda")[None]
        outputs = model(token, past_key_values=cache, use_cache=True)
        cache, token = outputs.past_key_values, outputs.logits[:, -1:].argmax(-1)
        return token.item()

    return run


PASSES: Mapping[str, Callable[..., Callable[..., object]]] = {
    "on_gpu": on_gpu,
    "token_on_gpu": token_on_gpu,
    "decoder": decoder,
    "encoder": encoder,
    "lens": lens,
    "ablate": ablate,
    "patch": patch,
}

if __name__ == "__main__":
    torch.manual_seed(0)
    with torch.inference_mode():
        serve(PASSES[sys.argv[1]](*map(int, sys.argv[2:])))
