"""Not multiplied; divided; a row too far; a row too early; columns for rows."""

import numpy as np


def unscaled(ids, table):
    return table[ids]


def divided(ids, table):
    return table[ids] / np.sqrt(table.shape[1])


def next_row(ids, table):
    return table[ids + 1] * np.sqrt(table.shape[1])


def row_before(ids, table):
    return table[ids - 1] * np.sqrt(table.shape[1])


def columns(ids, table):
    return table[:, ids] * np.sqrt(table.shape[1])
