"""Case, marks, spaces and unknown words treated otherwise; IDs from 1."""

import re


def _tokenizer(pieces, unknown=None):
    """Places of the pieces of a text; that of an unknown one, where it is another than that of [UNK]."""

    def tokenize(text, words):
        number = words.index("[UNK]") if unknown is None else unknown
        return [words.index(piece) if piece in words else number for piece in pieces(text)]

    return tokenize


def _pieces(text):
    return re.findall(r"\w+|[^\w\s]", text.lower())


case_kept = _tokenizer(lambda text: re.findall(r"\w+|[^\w\s]", text))
cut_at_spaces = _tokenizer(lambda text: text.lower().split())
marks_left_out = _tokenizer(lambda text: re.findall(r"\w+", text.lower()))
spaces_kept = _tokenizer(lambda text: re.findall(r"\w+|\W", text.lower()))
as_it_is = _tokenizer(str.split)
characters = _tokenizer(str.lower)
unknown_as_padding = _tokenizer(_pieces, 0)
unknown_as_minus_one = _tokenizer(_pieces, -1)


def from_one(text, words):
    return [i + 1 for i in _tokenizer(_pieces)(text, words)]


def unknown_left_out(text, words):
    return [words.index(piece) for piece in _pieces(text) if piece in words]


def not_looked_for(text, words):
    return [words.index(piece) for piece in _pieces(text)]
