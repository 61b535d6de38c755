"""Characters as tokens: every code point of a text is one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tui_transformer.text.encoding import Encoding, Token, check_length, encoded
from tui_transformer.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class CharacterTokenizer:
    """Single characters (Unicode code points), as written; special words count where they are written in full."""

    vocabulary: Vocabulary

    def encode(self, text: str, *, max_tokens: int | None = None, cut: bool = False) -> Encoding:
        """Split a text into characters; see `Tokenizer.encode`."""
        check_length(text)
        return encoded(text, self._pattern.finditer(text), self._token, max_tokens=max_tokens, cut=cut)

    def decode(self, ids: Sequence[int]) -> str:
        """The characters beside each other."""
        return "".join(map(self.vocabulary.word, ids))

    def _token(self, match: re.Match[str]) -> Token:
        character, words = match[0], self.vocabulary
        token_id = words.ids.get(character)
        if token_id is None:
            return Token(words.ids[words.specials.unknown], character, *match.span(), unknown=True)
        return Token(token_id, character, *match.span(), special=len(character) > 1)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        special = sorted(self.vocabulary.special_words, key=len, reverse=True)
        return re.compile("|".join([*map(re.escape, special), "."]), re.DOTALL)
