"""Values mixed in each head, the heads side by side, times W^O."""


def heads(weights, value, matrix, bias):
    context = weights @ value
    concat = context.transpose(1, 0, 2).reshape(context.shape[1], -1)
    return concat @ matrix + bias
