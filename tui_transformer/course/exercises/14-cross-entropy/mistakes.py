"""Labels shifted otherwise; sums and other means; other logarithms, or none; other measures."""

import numpy as np


def _logs(rows, targets):
    top = rows.max(axis=-1, keepdims=True)
    logs = rows - top - np.log(np.exp(rows - top).sum(axis=-1, keepdims=True))
    return logs[np.arange(len(targets)), targets]


def _of_logs(made):
    """Something else that is made of the log probabilities of the next tokens."""
    return lambda logits, ids: made(_logs(logits[:-1], ids[1:]))


summed = _of_logs(lambda logs: -logs.sum())
not_averaged = _of_logs(lambda logs: -logs)
all_counted = _of_logs(lambda logs: -logs.sum() / (len(logs) + 1))
sign_kept = _of_logs(lambda logs: logs.mean())
in_bits = _of_logs(lambda logs: -logs.mean() / np.log(2))
base_ten = _of_logs(lambda logs: -logs.mean() / np.log(10))
no_logarithm = _of_logs(lambda logs: -np.exp(logs).mean())
log_of_mean = _of_logs(lambda logs: -np.log(np.exp(logs).mean()))
perplexity = _of_logs(lambda logs: np.exp(-logs.mean()))


def not_shifted(logits, ids):
    return -_logs(logits, ids).mean()


def not_shifted_nor_counted(logits, ids):
    return -_logs(logits[:-1], ids[:-1]).mean()


def shifted_back(logits, ids):
    return -_logs(logits[1:], ids[:-1]).mean()


def logits_alone(logits, ids):
    return -logits[np.arange(len(ids) - 1), ids[1:]].mean()


def every_pair(logits, ids):
    return -np.mean([_logs(logits[:-1], np.full(len(ids) - 1, each)).mean() for each in ids[1:]])


def entropy(logits, ids):
    shares = np.exp(logits[:-1] - logits[:-1].max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return -(shares * np.log(shares)).sum(axis=-1).mean()
