"""Case, marks, spaces and unknown words treated otherwise; IDs from 1."""

import re


def _ids(text, words, unknown):
    return [words.index(word) if word in words else unknown for word in re.findall(r"\w+|[^\w\s]", text)]


def case_kept(text, words):
    return _ids(text, words, words.index("[UNK]"))


def unknown_as_padding(text, words):
    return _ids(text.lower(), words, 0)


def from_one(text, words):
    return [i + 1 for i in _ids(text.lower(), words, words.index("[UNK]"))]


def _places(pieces, words):
    return [words.index(word) if word in words else words.index("[UNK]") for word in pieces]


def cut_at_spaces(text, words):
    return _places(text.lower().split(), words)


def marks_left_out(text, words):
    return _places(re.findall(r"\w+", text.lower()), words)


def unknown_left_out(text, words):
    return [words.index(word) for word in re.findall(r"\w+|[^\w\s]", text.lower()) if word in words]


def spaces_kept(text, words):
    return _places(re.findall(r"\w+|\W", text.lower()), words)


def not_looked_for(text, words):
    return [words.index(word) for word in re.findall(r"\w+|[^\w\s]", text.lower())]


def as_it_is(text, words):
    return _places(text.split(), words)


def unknown_as_minus_one(text, words):
    return [words.index(word) if word in words else -1 for word in re.findall(r"\w+|[^\w\s]", text.lower())]


def characters(text, words):
    return _places(text.lower(), words)
