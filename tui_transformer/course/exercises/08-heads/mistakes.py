"""Heads joined by a reshape alone, dealt like cards, or summed; the matrix transposed; the bias elsewhere."""


def _joined(context, axes=(1, 0, 2)):
    return context.transpose(axes).reshape(context.shape[1], -1)


def without_swap(weights, value, matrix, bias):
    return _joined(weights @ value, (0, 1, 2)) @ matrix + bias


def dealt(weights, value, matrix, bias):
    return _joined(weights @ value, (1, 2, 0)) @ matrix + bias


def transposed(weights, value, matrix, bias):
    return _joined(weights @ value) @ matrix.T + bias


def no_bias(weights, value, matrix, bias):
    return _joined(weights @ value) @ matrix


def bias_first(weights, value, matrix, bias):
    return (_joined(weights @ value) + bias) @ matrix


def summed(weights, value, matrix, bias):
    return (weights @ value).sum(axis=0) @ matrix + bias
