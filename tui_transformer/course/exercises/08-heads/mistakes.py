"""Heads joined by a reshape alone, dealt like cards, or summed; the matrix transposed; the bias elsewhere."""


def _made(output):
    """Another output, made of what each head brings, the matrix and the bias."""
    return lambda weights, value, matrix, bias: output(weights @ value, matrix, bias)


def _joined(context, axes=(1, 0, 2)):
    return context.transpose(axes).reshape(context.shape[1], -1)


without_swap = _made(lambda context, matrix, bias: _joined(context, (0, 1, 2)) @ matrix + bias)
dealt = _made(lambda context, matrix, bias: _joined(context, (1, 2, 0)) @ matrix + bias)
transposed = _made(lambda context, matrix, bias: _joined(context) @ matrix.T + bias)
no_bias = _made(lambda context, matrix, _: _joined(context) @ matrix)
bias_first = _made(lambda context, matrix, bias: (_joined(context) + bias) @ matrix)
summed = _made(lambda context, matrix, bias: context.sum(axis=0) @ matrix + bias)
