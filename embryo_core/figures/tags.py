"""The names of Penn part-of-speech tags, for readers who do not know them by heart."""

NAMES = {
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


def named(tag: str) -> str:
    """Return a tag with its name, "VBD, past tense"; other texts as they are."""
    return f"{tag}, {NAMES[tag]}" if tag in NAMES else tag
