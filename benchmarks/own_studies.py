"""The studies of LIBRARY.md as they stand there: `own_studies.py STUDY [serve]` writes their numbers, or makes them.

`own_studies.py STUDY exact` writes the numbers of a model in float64.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import tui_transformer
from benchmarks.sides import serve

TITLES: Mapping[str, str] = {
    "induction": "induction by path patching",
    "name": "a name is moved",
    "position": "a probe for position",
    "feature": "a feature found and steered",
    "graph": "an attribution graph read aloud",
}

NUMBERS: Mapping[str, str] = {
    "induction": """[metric.measure(own), metric.measure(other),
        *(weight for each in attentions(own.program) for weight in own[each.name][:, -1, 4].tolist()),
        *(row["value"] for row in found.rows())]""",
    "name": """[metric.measure(own), metric.measure(other),
        *(row["value"] for row in sweep(own, other, "head", metric).rows()),
        *own["2.self_attention.weights"][0, -1].tolist(),
        *(row["value"] for row in found.rows())]""",
    "position": '[each.score for each in probe(rows, rows["0.output"].position, kind="ridge", position="every")]',
    "feature": """[*(number for active, logits in zip(last.features, next(feature_words(trace, [last])))
          for number in (active.feature, active.value, *sorted(logits.tolist(), reverse=True)[:4])),
        *(story.token_id(generate(model, text, max_new_tokens=1,
            edits=[Scale(f"{at}.features", by, columns=feature)]))
          for feature, by in ((94, 1), (94, 0), (94, 3), (327, 3)))]""",
    "graph": """[found.replacement, found.completeness, *(float(weight)
        for whole in [graph(trace)]
        for name in ("logit:output:420@27", "feed_forward:decoder.2.feed_forward@27", "feature:decoder.1.output:347@12")
        for target in [[*map(str, whole.nodes)].index(name)]
        for row in [whole.weights[whole.followed.tolist().index(target)]]
        for *_, weight in sorted((node.kind, node.layer, node.token, node.number or 0, weight)
            for node, weight in zip(whole.nodes, row) if weight))]""",
}
"""What a study found, from the names that it has made, in the order of `torch_studies.py`."""


@cache
def code(study: str) -> str:
    """The first block below the title of a study."""
    page = (Path(tui_transformer.__file__).parent / "LIBRARY.md").read_text(encoding="utf-8")
    return re.search(rf"^## Study: {TITLES[study]}$.*?```python\n(.*?)```", page, re.MULTILINE | re.DOTALL)[1]  # type: ignore[index]


def run(study: str, *, exact: bool = False) -> dict[str, Any]:
    """The names that a study made, with its model in float64 where they are to be exact; what it prints is left out."""
    names, source = dict[str, Any](), code(study)
    if exact:
        source = re.sub(r'(Model\.load\("\w+")\)', r'\1, dtype="float64")', source)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(source, names)  # noqa: S102 - a page of this program
    return names


if __name__ == "__main__":
    if sys.argv[2:] == ["serve"]:
        serve(lambda: run(sys.argv[1]))
    else:
        found = run(sys.argv[1], exact=sys.argv[2:] == ["exact"])
        print(json.dumps(eval(NUMBERS[sys.argv[1]], found)))  # noqa: S307 - the table above
