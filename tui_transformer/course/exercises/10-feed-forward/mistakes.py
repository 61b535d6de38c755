"""Other activations, or none; the bias after it, or none; x added."""

import numpy as np
from solution import feed_forward


def _activated(function):
    """The right layers, with another function between them."""

    def feed_forward(x, weights):
        hidden = function(x @ weights["hidden.weight"] + weights["hidden.bias"])
        return hidden @ weights["output.weight"] + weights["output.bias"]

    return feed_forward


linear = _activated(lambda hidden: hidden)
silu = _activated(lambda hidden: hidden / (1 + np.exp(-hidden)))
absolute = _activated(np.abs)
negative_kept = _activated(lambda hidden: np.minimum(hidden, 0))


def no_bias(x, weights):
    return np.maximum(x @ weights["hidden.weight"], 0) @ weights["output.weight"]


def bias_after(x, weights):
    hidden = np.maximum(x @ weights["hidden.weight"], 0) + weights["hidden.bias"]
    return hidden @ weights["output.weight"] + weights["output.bias"]


def added(x, weights):
    return x + feed_forward(x, weights)
