"""Labels shifted otherwise; sums and other means; other logarithms, or none; other measures."""

import numpy as np


def _logs(rows, targets):
    top = rows.max(axis=-1, keepdims=True)
    logs = rows - top - np.log(np.exp(rows - top).sum(axis=-1, keepdims=True))
    return logs[np.arange(len(targets)), targets]


def not_shifted(logits, ids):
    return -_logs(logits, ids).mean()


def summed(logits, ids):
    return -_logs(logits[:-1], ids[1:]).sum()


def in_bits(logits, ids):
    return -_logs(logits[:-1], ids[1:]).mean() / np.log(2)


def sign_kept(logits, ids):
    return _logs(logits[:-1], ids[1:]).mean()


def no_logarithm(logits, ids):
    return -np.exp(_logs(logits[:-1], ids[1:])).mean()


def all_counted(logits, ids):
    return -_logs(logits[:-1], ids[1:]).sum() / len(ids)


def base_ten(logits, ids):
    return -_logs(logits[:-1], ids[1:]).mean() / np.log(10)


def perplexity(logits, ids):
    return np.exp(-_logs(logits[:-1], ids[1:]).mean())


def not_averaged(logits, ids):
    return -_logs(logits[:-1], ids[1:])


def shifted_back(logits, ids):
    return -_logs(logits[1:], ids[:-1]).mean()


def logits_alone(logits, ids):
    return -logits[np.arange(len(ids) - 1), ids[1:]].mean()


def log_of_mean(logits, ids):
    return -np.log(np.exp(_logs(logits[:-1], ids[1:])).mean())


def every_pair(logits, ids):
    return -np.mean([_logs(logits[:-1], np.full(len(ids) - 1, each)).mean() for each in ids[1:]])


def entropy(logits, ids):
    shares = np.exp(logits[:-1] - logits[:-1].max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return -(shares * np.log(shares)).sum(axis=-1).mean()


def not_shifted_nor_counted(logits, ids):
    return -_logs(logits[:-1], ids[:-1]).mean()
