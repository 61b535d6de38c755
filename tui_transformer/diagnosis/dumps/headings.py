"""Headings of a printed log: the layer, the head and the part of a layer that they name, and how long these count."""

from __future__ import annotations

import re
from functools import lru_cache

from tui_transformer.diagnosis.naming import words
from tui_transformer.records import dataclass, replace

LONGEST = 120
"""Letters of a heading."""

LONGEST_LINE = 1 << 10
"""Letters of a line in which layer, head and what else a heading says are looked for."""

LAYER = re.compile(
    r"\b(?:(?P<stack>encoder|decoder|enc|dec)(?:'s)?[\s_.:-]*)?(?:transformer[\s_.:-]*)?(?:layer|block)s?[\s_#.:=\[(-]*"
    r"(?P<number>\d+)(?:\s*(?:/|of)\s*\d+)?[\])]?|\b(?P<alone>encoder|decoder)[\s_#.:\[(-]*(?P<count>\d+)[\])]?",
    re.I,
)
NO_LAYER = re.compile(r"(?:ffn|ff|mlp|linear|dense|hidden|fc|feed[\s_-]*forward|norm)[\s_.:-]*$", re.I)
"""What is called a layer behind these is one of the feed-forward network."""

HEAD = re.compile(r"(?<![A-Za-z])heads?[\s_#.:=\[(-]*(\d+)(?:\s*(?:/|of)\s*\d+)?[\])]?", re.I)
SHORT = re.compile(r"\bL(?P<number>\d+)[\s_.:-]*(?:H(?P<head>\d+)\b)?", re.I)
"""L0H1, L0 H1."""

ORDINAL = re.compile(
    r"\b(\d+)(?:st|nd|rd|th)\s+(layer|block|head)\b|\b(first|second|third)\s+(layer|block|head)\b", re.I
)
ORDINALS = {"first": 1, "second": 2, "third": 3}
SENTENCE = re.compile(
    r"(?:(?:input|test|batch)[\s_]*)?(?:sentence|example|sample|sequence|seq|prompt|batch(?:[\s_](?:item|element|index))?"
    r"|test(?:[\s_]case)?|case|input)[\s_#.:=\[(-]*(\d+)(?:\s*(?:/|of)\s*\d+)?[\])]?",
    re.I,
)
OF_BATCH = re.compile(
    r"(?:^|[\s,;(\[-])\s*(?:batch(?:[\s_](?:item|element|index))?|sentence|sample|example)[\s_#.:=]*(\d+)[)\]]?$", re.I
)
"""Of a heading that says a layer or a step first."""

SIZES = re.compile(r"[(\[{<]\s*\d+(?:\s*[x×X,*]\s*\d+)+\s*,?\s*[)\]}>]|\b\d+\s*[x×]\s*\d+(?:\s*[x×]\s*\d+)*\b")
"""Sizes of a matrix in its heading: (4x16)."""

ONE_SIZE = re.compile(r"\(\s*\d+\s*,\s*\)")
PATH = re.compile(r"[\w/\[\]]+(?:\.[\w/\[\]]+)+|[A-Za-z]\w*\[\d+\]")
DIGIT = re.compile(r"\d")
RULES = re.compile(r"[-=#*_~+]{2,}")
ENDS = " \t-=:#*_.,;()[]{}<>|~+>"


@dataclass(frozen=True, slots=True)
class Heading:
    """What stands above a matrix, and what headings before it say of it.

    Attributes:
        text: Its words besides layer and head.
        stack: "encoder" or "decoder", where that is said.
        layer: The number of the layer, as it is printed; "" where none is said.
        own: The heading itself says the layer.
        part: The part of the layer that an earlier heading named.
        head: The number of the head.
        sentence: The number of the sentence.
        number: It comes so many times with the same layer and head.
        path: All of it, where it is the path of a module and no words.
    """

    text: str
    stack: str = ""
    layer: str = ""
    own: bool = False
    part: str = ""
    head: str = ""
    sentence: str = ""
    number: int = 1
    path: str = ""

    @property
    def key(self) -> Heading:
        """The heading without how often it came."""
        return replace(self, number=1, own=False, text=self.text.lower())

    @property
    def name(self) -> str:
        """The heading as it is shown."""
        layer = f"{self.stack} layer {self.layer}".strip() if self.layer else ""
        said = (layer, self.part, self.text, f"head {self.head}" if self.head else "")
        name = " ".join(filter(None, said))[:LONGEST]
        return f"{name} ({self.number})" if self.number > 1 else name

    def renamed(self, line: str) -> Heading:
        """The same under other words."""
        return replace(self, text=_numbers_of(line)[0])

    def readings(self, layer: str = "", head: str = "") -> list[str]:
        """Names that it may stand for, those first that say the most.

        Args:
            layer: The layer to be taken where it says none.
            head: The head.
        """
        layer, head = self.layer or layer, self.head or head
        where = f"{self.stack} layer {layer}".strip() if layer else self.stack
        layers = [where] if self.own or (layer and not self.layer) else [where, self.stack, ""]
        parts = [self.part, ""] if self.part else [""]
        heads = [f"head {head}", ""] if head else [""]
        names = (" ".join(filter(None, (a, b, self.text, c))) for a in layers for b in parts for c in heads)
        return list(dict.fromkeys(([self.path] if self.path else []) + list(names)))


@dataclass
class Scopes:
    """What the headings so far say of those that follow.

    Attributes:
        section: The last heading, where no matrix stood under it.
        whole: A heading under which sentences alone are named, each above its own matrix.
    """

    stack: str = ""
    layer: str = ""
    part: str = ""
    head: str = ""
    sentence: str = ""
    section: Heading | None = None
    whole: Heading | None = None

    def read(self, line: str) -> Heading:
        """A heading; what it says of others counts from here on.

        A layer counts for all that follow, a head or a part of a layer where no matrix stands under their own heading.
        Names of the model's level, as logits and the last norm, end all of these.
        """
        above = self.section
        self._enter()
        line = line[:LONGEST_LINE]
        text = ONE_SIZE.sub(" ", SIZES.sub(" ", _digits(line))) if DIGIT.search(line) else _digits(line)
        sentence = SENTENCE.match(text.strip(ENDS))
        if sentence:
            self.sentence = sentence[1]
            text = text.strip(ENDS)[sentence.end() :]
        text, stack, number, own_head = _numbers_of(text)
        if not sentence and (last := OF_BATCH.search(text)):
            self.sentence, text = last[1], _without_ends(text[: last.start()])
        if number:
            self.stack = words.STACKS.get(stack.lower(), self.stack)
            self.layer, self.part, self.head = number, "", ""
        phrase = words.phrase_of(text)
        if not number and words.of_model(phrase):
            self.layer = self.part = self.head = ""
        if not words.OF_LAYER.isdisjoint(phrase.split()):
            self.head = ""
        if not words.AFTER_PART.isdisjoint(phrase.split()) or words.part_of_layer(phrase):
            self.part = ""
        head, path = own_head or self.head, _without_ends(line)
        path = path if PATH.fullmatch(path) else ""
        heading = Heading(text, self.stack, self.layer, bool(number), self.part, head, self.sentence, path=path)
        self.section = heading
        if not (sentence and not text and not number and not own_head):
            self.whole = None
            return heading
        self.whole = above if above is not None and above.text else self.whole
        return heading if self.whole is None else replace(self.whole, sentence=self.sentence)

    def filled(self) -> None:
        """A matrix stands under the last heading: it is none of a section."""
        self.section = None

    def _enter(self) -> None:
        """The section that the last heading began, where no matrix stood under it."""
        section, self.section = self.section, None
        if section is None:
            return
        phrase = words.phrase_of(section.text)
        self.head = section.head
        if phrase in words.STACKS:
            self.stack, self.layer, self.part = words.STACKS[phrase], "", ""
        elif part := words.part_of_layer(phrase):
            self.part, self.head = part, ""
        elif phrase in words.BEGINNING or (phrase in words.RESULTS and not section.own):
            self.layer = self.part = self.head = ""


def says(line: str) -> bool:
    """True if a line may be more than the name of the one matrix below it: a quick look, for most lines are not."""
    line = line[:LONGEST_LINE]
    if not words.saying().isdisjoint(words.words_of(line)):
        return True
    if DIGIT.search(line) is None:
        return False
    small = line.lower()
    return any(each in small for each in words.COUNTED) or SHORT.search(line) is not None


def is_sentence(line: str) -> bool:
    """True if a line says the number of a sentence, and nothing else."""
    return SENTENCE.fullmatch(line[:LONGEST].strip().strip(ENDS)) is not None


@lru_cache(maxsize=16)
def is_named(line: str) -> bool:
    """True if a line has words for a step, a layer or a head."""
    if not says(line[:LONGEST]):
        return False
    text, _, layer, head = _numbers_of(line[:LONGEST])
    text = OF_BATCH.sub("", text)
    return bool(layer or head) or words.is_spoken(words.phrase_of(text))


def _numbers_of(text: str) -> tuple[str, str, str, str]:
    """A heading without its numbers; the stack, the layer and the head that it says."""
    if not DIGIT.search(text):
        return _without_ends(text), "", "", ""
    head, layer, short = HEAD.search(text), LAYER.search(text), SHORT.search(text)
    stack = number = ""
    if layer and not NO_LAYER.search(text[: layer.start()]):
        stack, number = layer["stack"] or layer["alone"] or "", layer["number"] or layer["count"]
        text = text.replace(layer[0], " ", 1)
    elif short:
        number, text = short["number"], text.replace(short[0], " ", 1)
    own = head[1] if head else (short["head"] or "") if short else ""
    text = text.replace(head[0], " ", 1) if head else text
    return _without_ends(text), stack, _count(number), _count(own)


def _count(number: str) -> str:
    return str(int(number[:9])) if number else ""


def _digits(line: str) -> str:
    """A heading in which layers and heads are counted in digits."""

    def counted(match: re.Match[str]) -> str:
        number = int(match[1][:9]) if match[1] else ORDINALS[match[3].lower()]
        return f"{match[2] or match[4]} {number}"

    return ORDINAL.sub(counted, line)


def _without_ends(text: str) -> str:
    return RULES.sub(" ", " ".join(text.split())).strip(ENDS)[:LONGEST].strip()
