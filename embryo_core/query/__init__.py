"""Questions to the checkpoints of a run: a text with [MASK], a tracked word, every layer; attention in a text."""

from embryo_core.query.answers import SEPARATOR, TOGETHER, Answers, Lead
from embryo_core.query.asking import Refinement, ask, ask_layers
from embryo_core.query.beam import BEAM_WIDTH
from embryo_core.query.examples import find_examples, read_questions
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
from embryo_core.query.report import command, commands, spell_rank
from embryo_core.query.sentence import attend, attend_over_steps
from embryo_core.query.sweep import pausing

__all__ = [
    "BEAM_WIDTH",
    "EXAMPLE",
    "MAX_CHARACTERS",
    "MAX_MASKS",
    "SEPARATOR",
    "TOGETHER",
    "Answers",
    "Lead",
    "Question",
    "Refinement",
    "ask",
    "ask_layers",
    "attend",
    "attend_over_steps",
    "check_text",
    "command",
    "commands",
    "count_masks",
    "find_examples",
    "pausing",
    "read_question",
    "read_questions",
    "readable",
    "spell_rank",
]
