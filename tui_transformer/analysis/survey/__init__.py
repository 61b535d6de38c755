"""Surveys: measures of a model over many texts, as sums that can be merged in any order."""
