r"""How byte-level BPE splits a text before pairs are merged, by the name that a GGUF file gives its pre-tokenizer.

Names and patterns are those of llama.cpp (`llama-vocab.cpp`), where it has shortened a published pattern for its own
engine, the published one. Every pattern splits what the one before it has left: what it finds is a part, and so is
what lies between. `\p{L}` are letters, `\p{N}` numbers, `\p{P}` punctuation, `\p{S}` symbols, `\p{M}` marks.
"""

from __future__ import annotations

from collections.abc import Mapping

from tui_transformer.records import dataclass


@dataclass(frozen=True)
class PreTokenizer:
    """Regular expressions in their order, and what goes with the name of a pre-tokenizer.

    With `whole`, a part that is in the vocabulary is one token, whatever the merges say; with `begins`, a text begins
    with the token for beginnings, unless the file says otherwise; with `marked`, spaces are ▁ as in SentencePiece.
    """

    patterns: tuple[str, ...]
    whole: bool = False
    begins: bool = False
    marked: bool = False


_ENDINGS = r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
AFTER = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_WITH_SLASH = AFTER.replace(r"[\r\n]*", r"[\r\n/]*", 1)
_SPACES = "|".join(rf"\s{{{count}}}(?!\S)" for count in (512, 256, 128, 64, 32, 16, 8, 4)) + r"|\s{1,2}(?!\S)|\s{1}"


def _gpt4(numbers: str, letters: str = r"\p{L}", after: str = AFTER) -> str:
    other = after.replace(r"\p{L}", letters) if letters != r"\p{L}" else after
    word = r"\p{L}+" if letters == r"\p{L}" else rf"[{letters}]+"
    return rf"(?:{_ENDINGS})|[^\r\n\p{{L}}\p{{N}}]?{word}|{numbers}|{other}"


def cased(numbers: str, ending: str) -> str:
    """The pattern of GPT-4o: a word is split where a capital follows a small letter."""
    upper, lower = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    before = r"[^\r\n\p{L}\p{N}]?"
    return rf"{before}{upper}*{lower}+{ending}|{before}{upper}+{lower}*{ending}|{numbers}|{_WITH_SLASH}"


_LATIN = (
    "A-Za-z\xb5\xc0-\xd6\xd8-\xf6\xf8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373"
    "\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481"
    "\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf"
    "\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d"
    "\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4"
    "\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107"
    "\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f"
    "\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
    "\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17"
    "\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb"
    "\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"
)
"""Letters that have a case, as DeepSeek's first tokenizer lists them."""

_EASTERN = "[一-龥ࠀ-一가-퟿]+"
_PUNCTUATED = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"""
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
_WORDS_OF_BLOOM = " ?[^(\\s|.,!?…。，、।۔،)]+"
_CJK = "[一-龥぀-ゟ゠-ヿ]+"
_OF_CASE = rf"(?:{_ENDINGS})?"

_GPT4O = PreTokenizer((cased(r"\p{N}{1,3}", _OF_CASE),))
_BAILING = PreTokenizer(
    (
        r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
        r"\s*[\r\n]|\s+(?!\S)|\s+",
    )
)
_YOUTU = "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+"
_THREES = r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"
_ASIAN = "[一-鿿㐀-䶿豈-\ufaff぀-ゟ゠-ヿ･-ﾟ⼀-\u2fdfเ-\u0e7f\u0e80-\u0effក-\u17ffက-႟ꩠ-ꩿꧠ-\ua9ff가-\ud7afᄀ-ᇿ]+"
_EXAONE = (
    rf"(?:{_ENDINGS})|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
)
_LINES = r"[^\n]+|[\n]+"

_NAMES: Mapping[PreTokenizer, str] = {
    PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]")): "default",
    PreTokenizer((GPT2,)): (
        "gpt-2 gpt2 default-gpt2 phi-2 jina-es jina-de jina-v2-es jina-v2-de jina-v1-en jina-v2-code roberta-bpe "
        "gigachat a.x-4.0 mellum modern-bert exaone4 mpt olmo jais trillion granite-docling"
    ),
    PreTokenizer((r"\p{N}", GPT2)): "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2",
    PreTokenizer(
        (_gpt4(r"\p{N}{1,3}"),), whole=True, begins=True
    ): "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
    PreTokenizer((_gpt4(r"\p{N}{1,3}"),)): "dbrx smaug-bpe chatglm-bpe",
    PreTokenizer((_gpt4(r"\p{N}{1,3}"),), whole=True): "glm4 glm5",
    PreTokenizer((_gpt4(r"\p{N}"),)): "qwen2 deepseek-r1-qwen kormo f2llmv2 stablelm2 hunyuan megrez solar-open grok-2",
    PreTokenizer((_gpt4(r"\p{N}", r"\p{L}\p{M}"),)): "qwen35",
    PreTokenizer((_gpt4(r"\p{N}{1,3}").removesuffix(r"|\s+(?!\S)|\s+") + f"|{_SPACES}",)): "jais-2",
    PreTokenizer(("[\r\n]", rf"\s?[{_LATIN}]+", r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", _EASTERN, r"\p{N}+")): (
        "deepseek-llm"
    ),
    PreTokenizer(("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _EASTERN, r"\p{N}")): "deepseek-coder",
    PreTokenizer((r"\p{N}{1,3}", _CJK, _PUNCTUATED)): "deepseek-v3 hunyuan-dense joyai-llm",
    PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]")): "falcon",
    PreTokenizer((_WORDS_OF_BLOOM,)): "bloom poro-chat gpt3-finnish",
    PreTokenizer((_WORDS_OF_BLOOM, r"\p{N}")): "viking",
    PreTokenizer((cased(r"\p{N}", ""),), whole=True, begins=True): "tekken",
    _GPT4O: "gpt-4o llama4 kanana2 talkie minimax-m2",
    PreTokenizer((r"\d{1,3}(?=(?:\d{3})*\b)", *_GPT4O.patterns)): "tiny_aya cohere2moe",
    PreTokenizer((_YOUTU, cased(r"\p{N}", _OF_CASE)), whole=True): "youtu",
    PreTokenizer((_THREES, _ASIAN, _PUNCTUATED)): "afmoe",
    PreTokenizer((_gpt4(r"\p{N}").removeprefix(f"(?:{_ENDINGS})|"),)): "ufakzeka",
    PreTokenizer((_EXAONE,)): "exaone-moe",
    _BAILING: "bailingmoe bailingmoe2 llada-moe",
    PreTokenizer((_gpt4(r"\p{N}{1}", after=AFTER.replace(r"\p{N}]+[\r\n]*", r"\p{N}\r\n]+", 1)),)): "seed-coder",
    PreTokenizer((r"\p{N}+", r"(?=(\d{3})+(?!\d))")): "superbpe",
    PreTokenizer((_LINES, _gpt4(r"\p{N}"))): "laguna",
    PreTokenizer((_LINES,), begins=True, marked=True): "gemma4 granite-embed-multi-311m",
    PreTokenizer((_LINES,), marked=True): "sarvam-moe",
    PreTokenizer((r"\p{N}{1,3}", _gpt4(r"\p{N}+")), whole=True): "minicpm5",
}
PRE_TOKENIZERS: Mapping[str, PreTokenizer] = {name: each for each, names in _NAMES.items() for name in names.split()}
"""By name."""

PATTERNS = frozenset(pattern for each in _NAMES for pattern in each.patterns if "(?=" not in pattern)
"""Regular expressions that take time in proportion to the text."""
