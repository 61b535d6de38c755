"""Upper case kept; unknown words as padding; IDs from 1."""

import re


def _ids(text, words, unknown):
    return [words.index(word) if word in words else unknown for word in re.findall(r"\w+|[^\w\s]", text)]


def case_kept(text, words):
    return _ids(text, words, words.index("[UNK]"))


def unknown_as_padding(text, words):
    return _ids(text.lower(), words, 0)


def from_one(text, words):
    return [i + 1 for i in _ids(text.lower(), words, words.index("[UNK]"))]
