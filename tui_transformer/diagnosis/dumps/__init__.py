"""Files of arrays that people write, by format; each reader raises InputError for a file that is damaged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

from tui_transformer.diagnosis.dumps.dump import Dump, Tensor, Values
from tui_transformer.diagnosis.dumps.formats import (
    RAW,
    is_dump_folder,
    npy_tensor,
    read_folder,
    read_npz,
    read_raw,
    read_safetensors,
)
from tui_transformer.diagnosis.dumps.log import log_of, text_lines
from tui_transformer.diagnosis.dumps.tools import callback_log, is_callback_log, read_debugger
from tui_transformer.errors import InputError
from tui_transformer.files import check_regular, is_folder
from tui_transformer.text.files import shown_path

BEGIN = 2_000
"""Lines of a text in which the log of a callback is looked for."""

PICKLED = frozenset({".pt", ".pth", ".pkl", ".pickle", ".bin", ".ckpt", ".joblib"})

READERS: Mapping[str, Callable[[Path], Dump]] = {
    ".npz": read_npz,
    ".npy": lambda path: Dump(path, {path.stem: npy_tensor(path)}),
    ".safetensors": read_safetensors,
    ".json": read_debugger,
    **dict.fromkeys(RAW, read_raw),
}
"""By the ending of the file; anything else is a text."""


def open_dump(path: Path) -> Dump:
    """The arrays of a file or folder, whatever its format.

    Raises:
        InputError: There is no such file, or its format is not known, or it is damaged.
    """
    if is_folder(path):
        return read_folder(path)
    check_regular(path)
    if path.suffix in PICKLED and not (path.suffix in RAW and not _is_pickled(path)):
        raise InputError(
            f"{shown_path(path)}: reading it can run code, so it is not read: where you trust it, convert it with two "
            "lines of Python: `import torch; from safetensors.torch import save_file` and "
            f"`save_file({{k: v.clone().contiguous() for k, v in torch.load({path.name!r}, map_location='cpu', "
            f"weights_only=True).items()}}, {f'{path.stem}.safetensors'!r})`"
        )
    if reader := READERS.get(path.suffix.lower()):
        return reader(path)
    if is_callback_log(line.text for line in islice(text_lines(path), BEGIN)):
        return callback_log(path, (line.text for line in text_lines(path)))
    return log_of(path, text_lines(path))  # matrices under headings


def _is_pickled(path: Path) -> bool:
    """True if a file begins as pickle or PyTorch write it, and not with a number."""
    try:
        with path.open("rb") as file:
            begin = file.read(4)
    except OSError:
        return False
    return begin[:2] == b"PK" or (begin[:1] == b"\x80" and begin[1:2] <= b"\x05" and begin[2:3] in b"}](ctX\x8a\x95")


__all__ = ["Dump", "Tensor", "Values", "is_dump_folder", "open_dump"]
