"""Live questions to one checkpoint of a run or to all: cloze answers, traces, tracked words, the lens, attention."""

from embryo_core.query.beam import (
    BEAM_WIDTH,
    SEPARATOR,
    Answer,
    Reply,
    answer,
    ask,
    joint_log_probability,
    log_softmax,
    logsumexp,
    spell_rank,
    top_k,
)
from embryo_core.query.examples import find_examples, read_questions
from embryo_core.query.lens import Lens, lens
from embryo_core.query.pieces import pausing
from embryo_core.query.question import (
    EXAMPLE,
    MAX_CHARACTERS,
    MAX_MASKS,
    Question,
    check_text,
    find_mask,
    normalise_masks,
    read_question,
    readable,
)
from embryo_core.query.sentence import SentenceAttention, SentenceHistory, attend, attend_over_steps, read_sentence
from embryo_core.query.sweep import Sweep, sweep
from embryo_core.query.trace import AnswerHistory, Candidate, Trace, leads, trace
from embryo_core.query.track import Track, read_word, track

__all__ = [
    "BEAM_WIDTH",
    "EXAMPLE",
    "MAX_CHARACTERS",
    "MAX_MASKS",
    "SEPARATOR",
    "Answer",
    "AnswerHistory",
    "Candidate",
    "Lens",
    "Question",
    "Reply",
    "SentenceAttention",
    "SentenceHistory",
    "Sweep",
    "Trace",
    "Track",
    "answer",
    "ask",
    "attend",
    "attend_over_steps",
    "check_text",
    "find_examples",
    "find_mask",
    "joint_log_probability",
    "leads",
    "lens",
    "log_softmax",
    "logsumexp",
    "normalise_masks",
    "pausing",
    "read_question",
    "read_questions",
    "read_sentence",
    "read_word",
    "readable",
    "spell_rank",
    "sweep",
    "top_k",
    "trace",
    "track",
]
