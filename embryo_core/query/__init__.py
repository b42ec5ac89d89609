"""Questions to the checkpoints of a run: fill or continue a text, track a word, read layers, or compute attention."""

from embryo_core.query.answers import SEPARATOR, TOGETHER, Answers, Lead
from embryo_core.query.asking import Refinement, ask, ask_layers
from embryo_core.query.beam import BEAM_WIDTH
from embryo_core.query.continuation import CONTINUATION_LENGTH, end_tokens
from embryo_core.query.examples import find_examples, read_questions
from embryo_core.query.question import (
    EXAMPLE,
    MAX_CHARACTERS,
    MAX_MASKS,
    START,
    Question,
    before_mask,
    check_text,
    count_masks,
    parse,
    read_question,
    reword,
)
from embryo_core.query.report import command, commands, spell_rank
from embryo_core.query.sentence import attend, attend_over_steps
from embryo_core.query.sweep import pausing
