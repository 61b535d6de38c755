"""How several vocabularies cut the sentence."""
