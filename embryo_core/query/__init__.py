"""Live questions to one checkpoint of a run or to all: cloze answers, traces, tracked words, the lens, attention."""

from embryo_core.query.beam import (
    BEAM_WIDTH,
    SEPARATOR,
    Reply,
    answer,
    ask,
    joint_log_probability,
    log_softmax,
    logsumexp,
    spell_rank,
)
from embryo_core.query.chunks import pausing
from embryo_core.query.examples import find_examples, read_questions
from embryo_core.query.lens import lens
from embryo_core.query.question import (
    EXAMPLE,
    MAX_CHARACTERS,
    MAX_MASKS,
    Question,
    check_text,
    count_masks,
    read_question,
    readable,
)
from embryo_core.query.refine import Refinement
from embryo_core.query.sentence import attend, attend_over_steps
from embryo_core.query.sweep import sweep
from embryo_core.query.trace import trace
from embryo_core.query.track import track

__all__ = [
    "BEAM_WIDTH",
    "EXAMPLE",
    "MAX_CHARACTERS",
    "MAX_MASKS",
    "SEPARATOR",
    "Question",
    "Refinement",
    "Reply",
    "answer",
    "ask",
    "attend",
    "attend_over_steps",
    "check_text",
    "count_masks",
    "find_examples",
    "joint_log_probability",
    "lens",
    "log_softmax",
    "logsumexp",
    "pausing",
    "read_question",
    "read_questions",
    "readable",
    "spell_rank",
    "sweep",
    "trace",
    "track",
]
