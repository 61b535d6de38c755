"""Heads from a reshape alone, or dealt like cards; matrices, biases and weights taken otherwise; Q scaled."""

from solution import _NAMES, _split, query_key_value


def _of_each(made):
    """Q, K and V, each made of x, a matrix, a bias and the number of heads."""

    def three(x, weights, heads):
        return tuple(made(x, weights[f"{name}.weight"], weights[f"{name}.bias"], heads) for name in _NAMES)

    return three


without_swap = _of_each(lambda x, matrix, bias, heads: (x @ matrix + bias).reshape(heads, len(x), -1))
dealt = _of_each(lambda x, matrix, bias, heads: (x @ matrix + bias).reshape(len(x), -1, heads).transpose(2, 0, 1))
widths_for_heads = _of_each(
    lambda x, matrix, bias, heads: (x @ matrix + bias).reshape(len(x), -1, heads).transpose(1, 0, 2)
)
transposed = _of_each(lambda x, matrix, bias, heads: _split(x @ matrix.T + bias, heads))
no_bias = _of_each(lambda x, matrix, _, heads: _split(x @ matrix, heads))
bias_twice = _of_each(lambda x, matrix, bias, heads: _split(x @ matrix + 2 * bias, heads))
minus_bias = _of_each(lambda x, matrix, bias, heads: _split(x @ matrix - bias, heads))


def key_for_query(x, weights, heads):
    query, key, value = query_key_value(x, weights, heads)
    return key, query, value


def divided_already(x, weights, heads):
    query, key, value = query_key_value(x, weights, heads)
    return query / query.shape[-1] ** 0.5, key, value
