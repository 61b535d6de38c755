"""A dictionary of features, read from the files that each library writes.

Read as SAELens 6.54, sparsify 1.3, circuit-tracer 0.5 and Gemma Scope write them; nothing is unpickled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tui_transformer.engine.backend import Host
from tui_transformer.engine.program import Program
from tui_transformer.errors import InputError, UsageError
from tui_transformer.features.layer import NORMALISATIONS, Dictionary, Layer, Part
from tui_transformer.features.steps import PlacedFeatures, spots
from tui_transformer.files import check_regular, expanded, is_file, is_folder, is_there, read_json
from tui_transformer.model.checks import is_whole, shown
from tui_transformer.model.other_files import open_npz
from tui_transformer.model.tensors import Tensors, open_file
from tui_transformer.records import dataclass, replace

if TYPE_CHECKING:
    from tui_transformer.model.model import Model

SAELENS, SPARSIFY, GEMMA_SCOPE, SETTINGS = "sae_weights.safetensors", "sae.safetensors", "params.npz", "cfg.json"
LAYER = re.compile(r"layer_(\d+)\.safetensors")
CROSS = re.compile(r"W_(enc|dec)_(\d+)\.safetensors")
LARGEST_SETTINGS = 1 << 20
MOST_LAYERS = 1_000
KNOWN = f"{SAELENS} or {SPARSIFY} with {SETTINGS}, {GEMMA_SCOPE}, layer_N.safetensors, or W_enc_N and W_dec_N"

DECODER = {"decoder": "W_dec", "decoder_bias": "b_dec"}
BIASED = {**DECODER, "encoder_bias": "b_enc"}
JUMPING = {**BIASED, "threshold": "threshold"}

ARCHITECTURES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "standard": ("relu", BIASED),
    "jumprelu": ("jump_relu", JUMPING),
    "topk": ("top_k", BIASED),
    "gated": ("gated", {**DECODER, "gate_bias": "b_gate", "scale": "r_mag", "magnitude_bias": "b_mag"}),
    "transcoder": ("relu", BIASED),
    "skip_transcoder": ("relu", {**BIASED, "skip": "W_skip"}),
    "jumprelu_transcoder": ("jump_relu", JUMPING),
    "jumprelu_skip_transcoder": ("jump_relu", {**JUMPING, "skip": "W_skip"}),
}
"""Of SAELens: the activation and the tensors beside W_enc."""


@dataclass(frozen=True, eq=False)
class Features(Dictionary):
    """A dictionary of features, its weights read as they are needed."""

    @staticmethod
    def load(path: str | Path) -> Features:
        """Open a dictionary; only the headers of its files are read.

        Args:
            path: A folder as SAELens, Gemma Scope, sparsify or circuit-tracer write it, or its file of weights.

        Raises:
            InputError: It is none of these, damaged, or of a kind that is not read, which is named.
        """
        place = expanded(path)
        if is_folder(place):
            return _of_folder(place)
        if not is_there(place):
            raise InputError(f"{place}: no such file or folder: give a dictionary of features")
        check_regular(place)
        if place.name in FOLDERS:
            return FOLDERS[place.name](place.parent)
        if place.suffix == ".npz":
            return _gemma_scope(place)
        if CROSS.fullmatch(place.name):
            return _cross_layer(place.parent)
        if place.suffix == ".safetensors":
            return _transcoder(place)
        raise InputError(f"{place}: no dictionary of features is stored so: {KNOWN}")

    @staticmethod
    def of(model: Model) -> Features:
        """The dictionary that comes with a model, as one does with `story`.

        Raises:
            InputError: None does.
        """
        path = own_dictionary(model.folder)
        if path is None:
            raise InputError(f"no dictionary of features comes with {model.name}: name the file of one")
        return Features.load(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return Features.load, (self.path,)

    def __repr__(self) -> str:
        layers = f"{len(self.layers)} layers × " if self.is_cross else ""
        return f"<Features {self.path.name}: {layers}{self.count:,} features of {self.width} numbers>"

    def placed(self, program: Program, at: str | None, into: str | None, *, replaces: bool) -> PlacedFeatures:
        """The dictionary at steps of a model: see `Model.with_features`."""
        return PlacedFeatures(self, spots(self, program, at, into), replaces)

    def encode(self, x: Host) -> Host:
        """The features of activations, in float64 or float32 as these are.

        Args:
            x: … × d; of a cross-layer transcoder layers × … × d.

        Returns:
            … × features.

        Raises:
            UsageError: They are of another width, or of another number of layers.
        """
        parts = self._by_layer(x, self.width, "activations")
        found = [layer.encode(each) for layer, each in zip(self.layers, parts, strict=True)]
        return self._joined(found, x.shape)

    def decode(self, features: Host, x: Host | None = None) -> Host:
        """What features write: the activations again, or of a transcoder what a layer makes of them.

        Args:
            features: … × features; of a cross-layer transcoder layers × … × features.
            x: What was read, where there is a skip connection or a normalisation.

        Raises:
            UsageError: They are not as many, or `x` is needed and missing.
        """
        parts = self._by_layer(features, self.count, "features")
        read = [None] * len(self.layers) if x is None else self._by_layer(x, self.width, "activations")
        out = [layer.decode(each, seen) for layer, each, seen in zip(self.layers, parts, read, strict=True)]
        for place, (layer, each) in enumerate(zip(self.layers, parts, strict=True)):
            for later, decoder in enumerate(layer.writes, place + 1):
                out[later] += layer.written(each, decoder.cells, decoder.shape[1])
        return self._joined(out, features.shape)

    def _by_layer(self, given: Host, width: int, what: str) -> list[Host]:
        """Rows for every layer, in a precision that can be computed with."""
        array = np.asarray(given)
        array = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
        if not array.ndim or array.shape[-1] != width:
            raise UsageError(f"{what} of {self.path.name} have {width:,} numbers each, not {array.shape[-1:]}")
        if not self.is_cross:
            return [array.reshape(-1, width)]
        if array.ndim < 2 or len(array) != len(self.layers):
            raise UsageError(f"{self.path.name} reads {len(self.layers)} layers: give {what} as layers × … × {width:,}")
        return [each.reshape(-1, width) for each in array]

    def _joined(self, parts: list[Host], shape: tuple[int, ...]) -> Host:
        whole = np.stack(parts) if self.is_cross else parts[0]
        return whole.reshape(*shape[:-1], parts[0].shape[-1])


def _of_folder(folder: Path) -> Features:
    for name, read in FOLDERS.items():
        if is_file(folder / name):
            return read(folder)
    names = sorted(each.name for each in folder.iterdir())
    if any(map(CROSS.fullmatch, names)):
        return _cross_layer(folder)
    layers = [name for name in names if LAYER.fullmatch(name)]
    if len(layers) == 1:
        return _transcoder(folder / layers[0])
    if layers:
        raise InputError(f"{folder}: {len(layers)} layers, such as {layers[0]}: give the file of one")
    raise InputError(f"{folder}: no dictionary of features: {KNOWN}")


def _saelens(folder: Path) -> Features:
    path, tensors = folder / SETTINGS, replace(open_file(folder / SAELENS), settings=SETTINGS)
    settings = read_json(path, LARGEST_SETTINGS)
    kind = settings.get("architecture", "standard")
    if not isinstance(kind, str) or kind not in ARCHITECTURES:
        raise InputError(f"{path}: the architecture {shown(kind)} is not read: {', '.join(ARCHITECTURES)} are")
    activation, names = ARCHITECTURES[kind]
    normalise = settings.get("normalize_activations", "none")
    if normalise == "expected_average_only_in":  # SAELens does this while it trains alone
        normalise = "none"
    _one_of(path, "normalize_activations", normalise, NORMALISATIONS)
    _one_of(path, "reshape_activations", settings.get("reshape_activations", "none"), ("none", "hook_z"))
    layer = Layer(
        {**_parts(tensors, names), "encoder": Part(tensors, "W_enc", turned=True)},
        activation,
        k=_count(path, settings, "k") if activation == "top_k" else 0,
        centred=_flag(path, settings, "apply_b_dec_to_input"),
        normalise=normalise,
        by_norm=_flag(path, settings, "rescale_acts_by_decoder_norm"),
    )
    told = settings.get("metadata")
    hooks = [(told if isinstance(told, dict) else settings).get(name) for name in ("hook_name", "hook_name_out")]
    hook, hook_out = (each if isinstance(each, str) else "" for each in hooks)
    return replace(_made(folder, (layer,)), hook=hook, hook_out=hook_out, transcodes="transcoder" in kind)


def _sparsify(folder: Path) -> Features:
    path, tensors = folder / SETTINGS, replace(open_file(folder / SPARSIFY), settings=SETTINGS)
    settings = read_json(path, LARGEST_SETTINGS)
    activations = {"topk": "top_k", "groupmax": "group_max"}
    activation = settings.get("activation", "topk")
    _one_of(path, "activation", activation, activations)
    names = {**DECODER, "encoder": "encoder.weight", "encoder_bias": "encoder.bias"}
    if _flag(path, settings, "skip_connection"):
        names["skip"] = "W_skip"
    layer = Layer(
        _parts(tensors, names),
        activations[activation],
        k=_count(path, settings, "k"),
        centred=not _flag(path, settings, "transcode"),
    )
    if layer.activation == "group_max" and layer.count % layer.k:
        raise InputError(f"{path}: {layer.count} features are not {layer.k} groups of as many: copy it again")
    return replace(_made(folder, (layer,)), transcodes=not layer.centred)


def _gemma_scope(path: Path) -> Features:
    tensors = replace(open_npz(path), settings="")
    layer = Layer({**_parts(tensors, JUMPING), "encoder": Part(tensors, "W_enc", turned=True)}, "jump_relu")
    return _made(path, (layer,))


def _transcoder(path: Path) -> Features:
    """A layer of circuit-tracer: JumpReLU where there are thresholds, else ReLU."""
    names = {**BIASED, "encoder": "W_enc", "threshold": "activation_function.threshold", "skip": "W_skip"}
    parts = _parts(_alone(path), names, ("threshold", "skip"))
    layer = Layer(parts, "jump" if "threshold" in parts else "relu")
    return replace(_made(path, (layer,)), transcodes=True)


def _alone(path: Path) -> Tensors:
    """The tensors of a file that has no settings beside it."""
    return replace(open_file(path), settings="")


def _cross_layer(folder: Path) -> Features:
    """A cross-layer transcoder: the decoder of a layer has rows for that layer and each behind it."""
    matches = [match for each in folder.iterdir() if (match := CROSS.fullmatch(each.name))]
    found = sorted(int(match[2]) for match in matches if match[1] == "enc")
    if found != list(range(len(found))) or not 0 < len(found) <= MOST_LAYERS:
        raise InputError(f"{folder}: W_enc_N.safetensors of the layers {found[:8]}: there have to be all from 0 on")
    layers = []
    for number in found:
        encoder, decoder = (_alone(folder / f"W_{part}_{number}.safetensors") for part in ("enc", "dec"))
        names = {"encoder": "W_enc", "encoder_bias": "b_enc", "decoder_bias": "b_dec", "threshold": "threshold"}
        own = _parts(encoder, {part: f"{name}_{number}" for part, name in names.items()}, ("encoder_bias", "threshold"))
        name, behind = f"W_dec_{number}", len(found) - number
        shape = decoder.find(name).shape
        if len(shape) != 3 or shape[1] != behind:
            raise InputError(f"{decoder.path}: {name} has the shape {shape} and should have rows for {behind} layers")
        first, *writes = (Part(decoder, name, place=place) for place in range(behind))
        activation = "jump" if "threshold" in own else "relu"
        layers.append(Layer({**own, "decoder": first}, activation, writes=tuple(writes)))
    return replace(_made(folder, tuple(layers)), transcodes=True, is_cross=True)


FOLDERS: Mapping[str, Callable[[Path], Features]] = {
    SAELENS: _saelens,
    SPARSIFY: _sparsify,
    GEMMA_SCOPE: lambda folder: _gemma_scope(folder / GEMMA_SCOPE),
}
"""Files by which a folder is known."""


def _parts(tensors: Tensors, names: Mapping[str, str], optional: Sequence[str] = ()) -> dict[str, Part]:
    wanted = (part for part, name in names.items() if part not in optional or name in tensors.names)
    return {part: Part(tensors, names[part]) for part in wanted}


def _made(path: Path, layers: tuple[Layer, ...]) -> Features:
    """A dictionary whose weights fit each other."""
    for layer in layers:
        if len(layer.parts["encoder"].shape) != 2:
            raise InputError(f"{path}: the encoder is no matrix: copy it again")
        count, out = layer.count, layer.parts["decoder"].shape[-1]
        wanted = {"encoder_bias": (count,), "decoder": (count, out), "decoder_bias": (out,), "skip": (out, layer.width)}
        for name, part in layer.parts.items():
            shape = wanted.get(name, (count,))
            if name != "encoder" and part.shape != shape:
                raise InputError(
                    f"{path}: {part.name} has the shape {part.shape} and should have {shape}: copy it again"
                )
        if layer.k > count:
            raise InputError(f"{path}: k is {layer.k}, and there are {count} features: copy {SETTINGS} again")
    if len({(layer.count, layer.width) for layer in layers}) > 1:
        raise InputError(f"{path}: the layers are of several sizes: copy it again")
    return Features(path, layers)


def _one_of(path: Path, name: str, value: object, known: Iterable[str]) -> None:
    if value not in (known := list(known)):
        raise InputError(f"{path}: {name} = {shown(value)} is not computed: {', '.join(known)} are")


def _flag(path: Path, settings: Mapping[str, Any], name: str) -> bool:
    value = settings.get(name, False)
    if not isinstance(value, bool):
        raise InputError(f"{path}: {name} is {shown(value)}, and should be true or false")
    return value


def _count(path: Path, settings: Mapping[str, Any], name: str) -> int:
    value = settings.get(name)
    if not is_whole(value, 1):
        raise InputError(f"{path}: {name} is {shown(value)}, and should be a number from 1 on")
    return value


OWN = "features"
"""The folder of a dictionary that comes with a model, in the model's own."""


def own_dictionary(folder: Path | None) -> Path | None:
    """The dictionary that lies in the folder of a model; None where there is none."""
    path = None if folder is None else folder / OWN
    return path if path is not None and is_folder(path) else None
