"""Every key of a config.json changed in turn, here and in transformers: both compute the same, or it is refused here.

It needs transformers and torch. Where transformers refuses a value, it has to be refused here too, unless it changes
nothing here.
"""

from __future__ import annotations

import copy
import json
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tui_transformer.errors import InputError
from tui_transformer.model import Model

REFERENCES = Path(__file__).parents[1] / "references"
NOT_COMPUTED = frozenset(
    {"architectures", "transformers_version", "dtype", "torch_dtype", "model_type", "_name_or_path"}
)
"""Keys that say what the file is, not what is computed."""

MISSING = object()
ANY = (MISSING, None, "text", [], -1, 0, 1, 0.5, True, False, 1e6)
ACTIVATIONS = ("relu", "silu", "gelu_new", "gelu_pytorch_tanh", "quick_gelu")
PATIENCE = 20
"""Seconds for one computation."""

CLOSE = 1e-5
"""Some families of transformers turn positions in float32."""

ATTENTION = {"falcon": "sdpa"}
"""How transformers computes attention where it is not "eager", which adds Falcon's distances twice."""

Place = tuple[Any, ...]


class HangError(Exception):
    """It takes too long."""


def differences(family: str) -> Iterator[tuple[str, str]]:
    """Every case and what is wrong with it, "" for nothing."""
    folder = REFERENCES / family
    raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    with np.load(folder / "expected.npz") as file:
        given = {name: file[name] for name in ("input_ids", "decoder_input_ids") if name in file}
    with tempfile.TemporaryDirectory() as name:
        copied = Path(name)
        for path in folder.glob("*.safetensors"):
            (copied / path.name).symlink_to(path)
        without: dict[Place, Any] = {}
        for place in places(raw):
            for value in values(at(raw, place), place):
                if place[-1] == "pad_token_id" and value in given["input_ids"].ravel().tolist():
                    continue  # padding is masked here, and there only where a mask is given
                case = f"{'.'.join(map(str, place))} = {'missing' if value is MISSING else json.dumps(value)}"
                yield case, _problem(copied, raw, place, value, given, without)


def places(raw: Any, above: Place = ()) -> Iterator[Place]:
    """Every key, and those of the tables in it."""
    for key, value in raw.items():
        if key in NOT_COMPUTED:
            continue
        yield (*above, key)
        if isinstance(value, dict) and key not in ("id2label", "label2id", "task_specific_params"):
            yield from places(value, (*above, key))


def values(usual: Any, place: Place) -> Iterator[Any]:
    """Values that may stand there instead."""
    others: list[Any] = list(ANY)
    if isinstance(usual, bool):
        pass
    elif isinstance(usual, int | float):
        others += [usual + 1, usual * 2, usual // 2, 10**9]
    elif isinstance(usual, str):
        others += ACTIVATIONS if "act" in place[-1] else ("linear", "dynamic", "yarn", "absolute")
    elif isinstance(usual, list) and usual:
        others += [usual[:-1], usual[::-1], [*usual, usual[0]]]
    for value in others:
        if value is MISSING or value != usual or type(value) is not type(usual):
            yield value


def at(raw: Any, place: Place) -> Any:
    """The value at a place."""
    for key in place:
        raw = raw[key]
    return raw


def changed(raw: Any, place: Place, value: Any) -> Any:
    """The document with another value at a place."""
    raw = copy.deepcopy(raw)
    table = at(raw, place[:-1])
    if value is MISSING:
        table.pop(place[-1])
    else:
        table[place[-1]] = value
    return raw


def _problem(folder: Path, raw: Any, place: Place, value: Any, given: Any, without: dict[Place, Any]) -> str:
    document = changed(raw, place, value)
    (folder / "config.json").write_text(json.dumps(document), encoding="utf-8")
    try:
        ours = _ours(folder, given)
    except InputError as refused:
        return "" if len(str(refused).splitlines()) == 1 else f"several lines: {refused}"
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a mistake
        return f"{type(error).__name__}: {error}"
    try:
        theirs = _theirs(folder, raw["architectures"][0], given)
    except Exception as refused:  # noqa: BLE001 - whatever transformers says
        if "no tensor for lm_head" in str(refused) and ours.shape[-1] != raw["vocab_size"]:
            return ""  # a model without a head, whose last states are shown
        if place not in without:
            (folder / "config.json").write_text(json.dumps(changed(raw, place, MISSING)), encoding="utf-8")
            try:
                without[place] = _ours(folder, given)
            except InputError:
                without[place] = None
        same = without[place] is not None and _far(ours, without[place]) == 0
        said = (str(refused).splitlines() or [type(refused).__name__])[0][:90]
        return "" if same else f"transformers refuses ({said})"
    far = _far(ours, theirs)
    return "" if far <= CLOSE else f"differs by {far:.2g}"


def _far(ours: Any, theirs: Any) -> float:
    """The largest difference, relative to the largest value; NaN in both alike is none."""
    if ours.shape != theirs.shape:
        return float("inf")
    if not np.array_equal(np.isnan(ours), np.isnan(theirs)):
        return float("inf")
    return float(np.nanmax(np.abs(ours - theirs), initial=0.0) / max(1.0, np.nanmax(np.abs(theirs), initial=0.0)))


def _ours(folder: Path, given: Any) -> Any:
    with bounded():
        model = Model.load(folder, device="cpu", dtype="float64")
        target = given.get("decoder_input_ids")
        trace = model.trace(ids=given["input_ids"].tolist(), decoder_ids=None if target is None else target.tolist())
        program = trace.program
        return trace[program.logits if program.logits in program.by_name else program.steps[-1].name]


def _theirs(folder: Path, architecture: str, given: Any) -> Any:
    import torch
    import transformers

    with bounded(), torch.no_grad():
        kind = getattr(transformers, architecture)
        model, info = kind.from_pretrained(
            folder,
            dtype=torch.float64,
            attn_implementation=ATTENTION.get(json.loads((folder / "config.json").read_text())["model_type"], "eager"),
            experts_implementation="eager",
            output_loading_info=True,
            local_files_only=True,
        )
        if info["missing_keys"]:
            raise ValueError(f"no tensor for {sorted(info['missing_keys'])[0]}")
        output = model.eval()(**{name: torch.tensor(np.atleast_2d(ids)) for name, ids in given.items()})
        array = output.logits if "logits" in output else output.last_hidden_state
        return array.squeeze(0).numpy()


@contextmanager
def bounded() -> Iterator[None]:
    """A computation that may not take for ever."""

    def late(*_: Any) -> None:
        raise HangError(f"more than {PATIENCE} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
