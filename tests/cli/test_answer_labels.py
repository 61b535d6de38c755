"""`answer` of a classifier: its labels, likeliest first."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
from reference import REFERENCES
from safetensors.numpy import load_file, save_file

from tui_transformer.model import Model


def token_classifier(folder: Path) -> Path:
    shutil.copytree(REFERENCES / "bert", folder, dirs_exist_ok=True)
    config = json.loads((folder / "config.json").read_text())
    named = {"architectures": ["BertForTokenClassification"], "id2label": {"0": "name", "1": "place"}}
    (folder / "config.json").write_text(json.dumps(config | named))
    rng = np.random.default_rng(0)
    head = {"classifier.weight": rng.normal(size=(2, 32)), "classifier.bias": rng.normal(size=2)}
    save_file(load_file(folder / "model.safetensors") | head, folder / "model.safetensors")
    return folder


def test_labels_of_every_token_are_listed_likeliest_first(run, tmp_path):
    folder = token_classifier(tmp_path / "model")
    shares = Model.load(folder, device="cpu").trace(ids=[2, 7])["output.probabilities"]
    ended = run("answer", "--model", str(folder), "--ids", "2,7", "--format", "json")
    rows = json.loads(ended.out if hasattr(ended, "out") else ended[1])
    assert [row["label"] for row in rows] == [["name", "place"][i] for line in shares for i in np.argsort(-line)]
    assert rows[0]["probability"] == float(shares[0].max())
