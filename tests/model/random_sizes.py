"""Checkpoints of random sizes and options, here and in transformers: both compute the same, or it is refused by name.

`python tests/model/random_sizes.py [--cases N] [--seed S] [FAMILY …]` says what differs and what is refused; it needs
transformers and torch, and makes both compute in float64 throughout.
"""

from __future__ import annotations

import argparse
import inspect
import json
import logging
import os
import random
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from random_cases import ENCODERS, FAMILIES, Case, drawn

from tui_transformer.errors import InputError
from tui_transformer.model import Model

os.environ |= {"TRANSFORMERS_VERBOSITY": "critical", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_OFFLINE": "1"}

CLOSE = 1e-9
PATIENCE = 60
"""Seconds for one case."""

FLOAT32_INSIDE = {"falcon": "sdpa"}
"""How transformers computes attention where it is not "eager", which adds Falcon's distances twice."""


# What both compute


def theirs(case: Case, folder: Path) -> dict[str, Any]:
    """The arrays of transformers, whose checkpoint is written into a folder."""
    import torch
    import transformers

    in_float64(torch)
    raw = dict(case.raw)
    config = transformers.AutoConfig.for_model(raw.pop("model_type"), **raw)
    config._attn_implementation = FLOAT32_INSIDE.get(case.family, "eager")
    config._experts_implementation = "eager"
    config.dtype = torch.float64
    torch.manual_seed(0)
    model = getattr(transformers, case.name)(config).double().eval()
    biases = [(name, buffer) for name, buffer in model.named_buffers() if "final_logits_bias" in name]
    for name, weight in (*model.named_parameters(), *biases):
        if not _is_sinusoid(case, name):
            weight.data.normal_(0, 0.3)
            if any(part in name.lower() for part in ("norm", "ln_")) and not case.family.startswith("gemma"):
                weight.data.add_(1.0)
    model.tie_weights()
    given = {name: torch.tensor(ids) for name, ids in case.inputs.items()}
    if "position_ids" in inspect.signature(model.forward).parameters and "attention_mask" in given and _counts(case):
        places = given["attention_mask"].cumsum(-1) - 1
        given["position_ids"] = places.masked_fill(given["attention_mask"] == 0, 0)
    with torch.no_grad():
        output = model(**given, output_hidden_states=True)
    model.save_pretrained(folder)
    keys = ("logits", "start_logits", "end_logits", "last_hidden_state")
    arrays = {key: output[key].numpy() for key in keys if key in output and output[key] is not None}
    hidden = output.get("encoder_hidden_states") or output.get("hidden_states") or ()
    return arrays | {f"hidden_{place}": states.numpy() for place, states in enumerate(hidden[:-1])}


def _is_sinusoid(case: Case, name: str) -> bool:
    """Positions that are computed and not read."""
    computed = case.family in ("m2m_100", "marian", "pegasus") or case.raw.get("sinusoidal_pos_embds") is True
    return computed and ("embed_positions" in name or "position_embeddings" in name)


def _counts(case: Case) -> bool:
    """Generation counts places from the first token that is no padding: so does the program here."""
    return "d_model" not in case.raw and case.family not in ENCODERS


UNUSED = {
    *("lm_head.bias", "cls.predictions.bias", "predictions.bias"),
    *("model.shared.weight", "shared.weight", "encoder.LayerNorm.weight", "encoder.LayerNorm.bias"),
    *("deberta.encoder.LayerNorm.weight", "deberta.encoder.LayerNorm.bias"),
}
"""Tensors that transformers writes and does not read either."""


def in_float64(torch: Any) -> None:
    """Make torch compute in float64 what models compute in float32 whatever their precision."""
    torch.set_default_dtype(torch.float64)
    torch.float32 = torch.float = torch.float64
    torch.FloatTensor = torch.DoubleTensor
    torch.Tensor.float = torch.Tensor.bfloat16 = lambda self, *_, **__: self.double()


def problem(case: Case) -> str:
    """The mistake of a case; "" for none, and beginning with "refused" where it is refused here."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            wanted = theirs(case, folder)
        except Exception as error:  # noqa: BLE001 - whatever transformers says
            return f"not made: {type(error).__name__}: {str(error).splitlines()[:1]}"
        said = []
        for raw in (None, case.raw):  # as transformers writes it, then as it was given
            if raw is not None:
                (folder / "config.json").write_text(json.dumps(raw), encoding="utf-8")
            try:
                far = _far(case, folder, wanted)
            except InputError as refused:
                said.append(f"refused: {str(refused).partition(': ')[2]}")
                continue
            worst = max(far.values(), default=float("nan"))
            if not worst <= CLOSE:
                which = "as given" if raw else "as written"
                said.append(f"{which} differs: " + ", ".join(f"{key} {each:.2g}" for key, each in far.items()))
        return "; ".join(dict.fromkeys(said))


def _far(case: Case, folder: Path, wanted: dict[str, Any]) -> dict[str, float]:
    """The largest difference of every array, of tokens that are no padding."""
    model = Model.load(folder, device="cpu", dtype="float64")
    ids, target, mask = (case.inputs.get(key) for key in ("input_ids", "decoder_input_ids", "attention_mask"))
    real = None if mask is None else mask == 1
    ids, target, mask = (None if each is None else each.tolist() for each in (ids, target, mask))
    trace = model.trace(ids=ids, mask=mask, decoder_ids=target)
    program = trace.program
    far = {}
    for key, array in wanted.items():
        step = _step(key, program)
        ours = trace[step]
        if key in ("start_logits", "end_logits"):
            ours = ours[..., ("start_logits", "end_logits").index(key)]
        if key == "logits" and ours.ndim == array.ndim + 1:
            ours = ours.squeeze(-1)
        if ours.shape != array.shape:
            far[key] = float("inf")
            continue
        if (
            real is not None
            and array.ndim > 1
            and array.shape[:2] == real.shape
            and (target is None or key != "logits")
        ):
            ours, array = ours[real], array[real]
        far[key] = float(np.abs(ours - array).max(initial=0.0) / max(1.0, np.abs(array).max(initial=0.0)))
    if set(model.unread) - UNUSED and "pooler" not in str(model.unread):
        far[f"unread {model.unread[0]}"] = float("inf")
    return far


def _step(key: str, program: Any) -> str:
    stack = (
        "decoder" if "decoder.0.output" in program.aliases and "encoder.0.output" not in program.aliases else "encoder"
    )
    if key in ("logits", "start_logits", "end_logits"):
        return program.logits if program.logits in program.by_name else "output.logits"
    if key == "last_hidden_state":
        last = [name for name in program.aliases if name.startswith(f"{stack}.") and name.endswith(".output")][-1]
        ends = [name for name in (f"{stack}.projected", f"{stack}.norm") if name in program.by_name]
        return ends[0] if ends else last
    place = int(key.rpartition("_")[2])
    return "embedding.output" if place == 0 else f"{stack}.{place - 1}.output"


def cases(family: str, count: int, seed: int) -> Iterator[tuple[Case, str]]:
    """Random cases of a family, and what is wrong with each."""
    for number in range(count):
        case = drawn(family, random.Random(f"{family} {seed} {number}"))  # noqa: S311 - drawn again alike
        signal.alarm(PATIENCE)
        yield case, problem(case)
        signal.alarm(0)


def main() -> int:
    """Print what differs; 1 where something does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    wrong = 0
    for family in asked.families or FAMILIES:
        good = refused = 0
        for case, said in cases(family, asked.cases, asked.seed):
            good += not said
            refused += said.startswith("refused")
            if said:
                wrong += not said.startswith("refused")
                sys.stdout.write(f"{said}\n    {case}\n")
        sys.stdout.write(f"{family}: {good} alike, {refused} refused, of {asked.cases}\n")
        sys.stdout.flush()
    return 1 if wrong else 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    sys.exit(main())
