"""The words nearest to a word, or to a sum of words."""
