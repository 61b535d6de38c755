"""A tokenizer in a process of its own, within limits of time and memory; see `guarded`. It imports nothing of ours.

The first line is the tokenizer as JSON, every other a request; a line answers each.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from typing import Any

LONGEST = 1 << 22
"""Characters that a text may become before it is cut."""


def main() -> None:
    """Answer requests until there are no more."""
    from tokenizers import Tokenizer

    memory = int(sys.argv[1])
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_DATA", memory)
    tokenizer = None
    for line in sys.stdin:
        request = json.loads(line)
        _limit("RLIMIT_CPU", int(time.process_time()) + int(request["seconds"]) + 1)
        try:
            if "file" in request:
                tokenizer = Tokenizer.from_str(request["file"])
                answer: dict[str, Any] = {}
            else:
                answer = _answered(tokenizer, request)
        except BaseException as error:  # noqa: BLE001 - the library panics, which is no Exception
            answer = {"failed": (str(error) or type(error).__name__).splitlines()[0][:200]}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _answered(tokenizer: Any, request: dict[str, Any]) -> dict[str, Any]:
    if "decode" in request:
        return {"text": tokenizer.decode(request["decode"], skip_special_tokens=False)}
    for text in request["encode"]:
        _check_growth(tokenizer.normalizer, text)
    encoding = tokenizer.encode(*request["encode"])
    names = ("ids", "offsets", "special_tokens_mask", "sequence_ids", "type_ids")
    return {name: getattr(encoding, name) for name in names}


def _check_growth(normalizer: Any, text: str) -> None:
    """Apply the parts of a normalizer one after the other as long as the text stays short enough."""
    from tokenizers import normalizers

    for said in [] if normalizer is None else _parts(json.loads(normalizer.__getstate__())):
        pattern = said["pattern"].get("String") if said["type"] == "Replace" else None
        grown = text.count(pattern) * (len(said["content"]) - len(pattern)) if pattern else 0
        if len(text) + grown <= LONGEST:
            part = normalizers.Lowercase()
            part.__setstate__(json.dumps(said).encode())
            text, grown = part.normalize_str(text), 0
        if len(text) + grown > LONGEST:
            raise ValueError(f"its normalizer makes the text longer than {LONGEST:,} characters")


def _parts(said: dict[str, Any]) -> list[dict[str, Any]]:
    if said["type"] != "Sequence":
        return [said]
    return [inner for each in said["normalizers"] for inner in _parts(each)]


def _limit(name: str, most: int) -> None:
    """Limit a resource, where the system can."""
    with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):
        import resource

        kind = getattr(resource, name)
        resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


if __name__ == "__main__":
    main()
