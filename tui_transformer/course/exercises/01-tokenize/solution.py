"""Words of a text, and their places in the vocabulary."""

import re


def tokenize(text, words):
    unknown = words.index("[UNK]")
    pieces = re.findall(r"\w+|[^\w\s]", text.lower())
    return [words.index(word) if word in words else unknown for word in pieces]
