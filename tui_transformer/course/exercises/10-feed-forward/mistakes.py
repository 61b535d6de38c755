"""Other activations, or none; the bias after it, or none; x added."""

import numpy as np


def _hidden(x, weights):
    return x @ weights["hidden.weight"] + weights["hidden.bias"]


def _output(hidden, weights):
    return hidden @ weights["output.weight"] + weights["output.bias"]


def linear(x, weights):
    return _output(_hidden(x, weights), weights)


def silu(x, weights):
    hidden = _hidden(x, weights)
    return _output(hidden / (1 + np.exp(-hidden)), weights)


def no_bias(x, weights):
    return np.maximum(x @ weights["hidden.weight"], 0) @ weights["output.weight"]


def absolute(x, weights):
    return _output(np.abs(_hidden(x, weights)), weights)


def bias_after(x, weights):
    return _output(np.maximum(x @ weights["hidden.weight"], 0) + weights["hidden.bias"], weights)


def added(x, weights):
    return x + _output(np.maximum(_hidden(x, weights), 0), weights)


def negative_kept(x, weights):
    return _output(np.minimum(_hidden(x, weights), 0), weights)
