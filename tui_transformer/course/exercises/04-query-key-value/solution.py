"""Three products, each dealt out to the heads in blocks of columns."""


def query_key_value(x, weights, heads):
    return tuple(_split(x @ weights[f"{name}.weight"] + weights[f"{name}.bias"], heads) for name in _NAMES)


_NAMES = ("query", "key", "value")


def _split(y, heads):
    return y.reshape(len(y), heads, -1).transpose(1, 0, 2)
