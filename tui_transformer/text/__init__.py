"""Words to numbers and back: vocabularies, tokenizers, and text that is safe to show."""
