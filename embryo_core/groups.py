"""Groups of words and facts that share a score: parts of speech, Penn tags, frequency bands, types of relations.

The groups of words are from Section 3 and Figure 1, the relations from Section 6. A treebank without Penn tags is
grouped by the parts of speech of Universal Dependencies (https://universaldependencies.org/u/pos/).
"""

from collections.abc import Mapping, Sequence
from typing import Literal

PARTS_OF_SPEECH = {  # name -> Penn tags
    "conjunction": ("CC",),
    "determiner": ("DT", "PDT"),
    "preposition": ("IN",),
    "adjective": ("JJ", "JJR", "JJS"),
    "adverb": ("RB", "RBR", "RBS"),
    "verb": ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ"),
    "noun": ("NN", "NNS"),
    "proper noun": ("NNP", "NNPS"),
    "pronoun": ("PRP", "PRP$"),
}
PENN_TAG_NAMES = {  # all Penn tags except those of punctuation
    "CC": "conjunction",
    "CD": "number",
    "DT": "determiner",
    "EX": "existential there",
    "FW": "foreign word",
    "IN": "preposition",
    "JJ": "adjective",
    "JJR": "comparative",
    "JJS": "superlative",
    "LS": "list marker",
    "MD": "modal",
    "NN": "singular noun",
    "NNP": "singular proper noun",
    "NNPS": "plural proper noun",
    "NNS": "plural noun",
    "PDT": "predeterminer",
    "POS": "possessive ending",
    "PRP": "personal pronoun",
    "PRP$": "possessive pronoun",
    "RB": "adverb",
    "RBR": "comparative adverb",
    "RBS": "superlative adverb",
    "RP": "particle",
    "SYM": "symbol",
    "TO": "to",
    "UH": "interjection",
    "VB": "base form",
    "VBD": "past tense",
    "VBG": "-ing form",
    "VBN": "past participle",
    "VBP": "present, not third person",
    "VBZ": "third person singular",
    "WDT": "wh-determiner",
    "WP": "wh-pronoun",
    "WP$": "possessive wh-pronoun",
    "WRB": "wh-adverb",
}
UNIVERSAL_TAG_NAMES = {  # all universal tags except punctuation and symbols
    "ADJ": "adjective",
    "ADP": "adposition",
    "ADV": "adverb",
    "AUX": "auxiliary",
    "CCONJ": "coordinating conjunction",
    "DET": "determiner",
    "INTJ": "interjection",
    "NOUN": "noun",
    "NUM": "number",
    "PART": "particle",
    "PRON": "pronoun",
    "PROPN": "proper noun",
    "SCONJ": "subordinating conjunction",
    "VERB": "verb",
    "X": "other",
}
SINGLE_TAGS, UNIVERSAL_TAGS = tuple(PENN_TAG_NAMES), tuple(UNIVERSAL_TAG_NAMES)
PENN_GROUPS = PARTS_OF_SPEECH | {tag: (tag,) for tag in SINGLE_TAGS}  # name of a part of speech or a tag -> Penn tags
UNIVERSAL_GROUPS: dict[str, tuple[str, ...]] = {tag: (tag,) for tag in UNIVERSAL_TAGS}
TAGS = PENN_GROUPS | UNIVERSAL_GROUPS
BANDS = {  # first and last rank by frequency in the training corpus; 1 is the most frequent word
    "rank 50-99": (50, 99),
    "rank 300-349": (300, 349),
    "rank 1550-1599": (1550, 1599),
}
ALL = "all"  # the group of everything: all tagged words, all facts, all examples

RelationType = Literal["1-1", "N-1", "N-M"]

# LAMA's 41 relations of T-REx (Petroni et al., 2019); the paper's Table 8 has the 1-1 and N-1 relations.
_RELATIONS: dict[RelationType, str] = {
    "1-1": "P36 P1376",
    "N-1": "P17 P19 P20 P30 P37 P103 P127 P131 P136 P138 P140 P159 P176 P264 P276 P279 P361 P364 P407 P413 P449 P495 "
    "P740",
    "N-M": "P27 P31 P39 P47 P101 P106 P108 P178 P190 P463 P527 P530 P937 P1001 P1303 P1412",
}
RELATION_TYPES: tuple[RelationType, ...] = tuple(_RELATIONS)
TYPE_OF_RELATION: dict[str, RelationType] = {
    relation: kind for kind, names in _RELATIONS.items() for relation in names.split()
}
RELATION_NAMES = {  # names in Wikidata of the relations in the paper's Table 8
    "P17": "country",
    "P19": "place of birth",
    "P20": "place of death",
    "P30": "continent",
    "P36": "capital",
    "P37": "official language",
    "P103": "native language",
    "P127": "owned by",
    "P131": "administrative territory",
    "P136": "genre",
    "P138": "named after",
    "P140": "religion",
    "P159": "headquarters",
    "P176": "manufacturer",
    "P264": "record label",
    "P276": "location",
    "P279": "subclass of",
    "P361": "part of",
    "P364": "original language of film",
    "P407": "language of work",
    "P413": "position in team",
    "P449": "original network",
    "P495": "country of origin",
    "P740": "place of foundation",
    "P1376": "capital of",
}


def describe_tag(tag: str) -> str:
    """Return a tag with its name, for readers who do not know it: "VBD, past tense"; other texts unchanged."""
    name = PENN_TAG_NAMES.get(tag) or UNIVERSAL_TAG_NAMES.get(tag)
    return f"{tag}, {name}" if name else tag


def band_of(rank: int | None) -> str | None:
    """Return the band that contains a word's rank; None if no band does, or the corpus lacks the word (rank None)."""
    return next((band for band, (low, high) in BANDS.items() if rank is not None and low <= rank <= high), None)


def are_penn(tags: Sequence[str]) -> bool:
    """Return whether nearly all tags are Penn tags; other tag sets share some names, such as NN in German."""
    return _covered(tags, PENN_GROUPS) >= 0.9


def groups_of_tags(tags: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the Penn or the universal groups (name -> tags), whichever cover more of `tags`; {} if less than half."""
    fractions = {_covered(tags, groups): groups for groups in (UNIVERSAL_GROUPS, PENN_GROUPS)}
    return fractions[max(fractions)] if max(fractions) >= 0.5 else {}


def _covered(tags: Sequence[str], groups: Mapping[str, tuple[str, ...]]) -> float:
    """Return the fraction of tags that are in a group; tags of punctuation, which have no letters, are not counted."""
    of_words = [tag for tag in tags if tag.rstrip("$").isalpha()]
    return sum(tag in groups for tag in of_words) / max(1, len(of_words))
