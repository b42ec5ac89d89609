"""Groups of words that share a score: parts of speech, single Penn tags, bands of frequency (Section 3, Figure 1)."""

PARTS_OF_SPEECH = {  # with their Penn tags
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
SINGLE_TAGS = tuple(  # those of the Penn treebank that are not punctuation
    "CC CD DT EX FW IN JJ JJR JJS LS MD NN NNP NNPS NNS PDT POS PRP PRP$ RB RBR RBS RP SYM TO UH VB VBD VBG VBN VBP "
    "VBZ WDT WP WP$ WRB".split()
)
TAGS = PARTS_OF_SPEECH | {tag: (tag,) for tag in SINGLE_TAGS}  # part of speech or single tag: its Penn tags
BANDS = {  # ranks by frequency in the training corpus, both ends included; 1 is the most frequent word
    "rank 50-99": (50, 99),
    "rank 300-349": (300, 349),
    "rank 1550-1599": (1550, 1599),
}
ALL = "all"  # the group of all cases of a metric: every tagged word, every fact, every example


def band_of(rank: int | None) -> str | None:
    """The band of a word of this rank; None for a rank in no band, and for a word that the corpus does not have."""
    return next((band for band, (low, high) in BANDS.items() if rank is not None and low <= rank <= high), None)
