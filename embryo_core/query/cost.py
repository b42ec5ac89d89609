"""The cost of a question, estimated before it is asked, in core-seconds: parameters times pieces times passes.

The cost orders the queue of questions and is compared with a server's budget. Each function estimates the seconds of
one checkpoint and raises the errors of its question, QueryError and CheckpointError. Seconds are roughly those of the
machine in docs/benchmarks.md with the models in memory; on another machine, all questions differ by the same factor.
"""

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint
from embryo_core.query.continuation import CONTINUATION_LENGTH
from embryo_core.query.question import Question, parse
from embryo_core.query.sentence import read_sentence
from embryo_core.runs import Architecture
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run

CHECKPOINT_SECONDS = 5e-4  # seconds for each checkpoint, however small its model is
PARAMETERS_PER_SECOND = 3e10  # parameters applied to one piece, in a second
MASK_PASSES = 18  # passes for each mask after the first: ten rows of a beam, and answers that lead at other steps
PIECE_PASSES = 11  # passes for each piece of a tracked word after the first: the word itself, and ten rows of a beam
CONTINUED_PIECE_PASSES = 2  # the same for a text that is continued, whose states are cached
LAYERS_PASSES = 2  # passes for the answers of all layers
ATTENTION_PASSES = 1.5  # passes for the attention of all heads


def ask_seconds(run: Run, question: Question) -> float:
    """Estimate the core-seconds of `query.ask` at one checkpoint."""
    later_masks = len(question.masks) - 1
    if question.word:
        passes = 1 + later_masks * (CONTINUED_PIECE_PASSES if question.continues else PIECE_PASSES)
    else:
        passes = CONTINUATION_LENGTH if question.continues else 1 + later_masks * MASK_PASSES
    architecture = _architecture(run)
    question.check_length(architecture.max_position_embeddings)
    return _seconds(architecture, max(len(question.ids), question.masks[-1]), passes)


def ask_layers_seconds(run: Run, text: str) -> float:
    """Estimate the core-seconds of `query.ask_layers` at one checkpoint."""
    question, architecture = parse(run, text), _architecture(run)
    question.check_length(architecture.max_position_embeddings)
    return _seconds(architecture, len(question.ids), LAYERS_PASSES)


def attend_seconds(run: Run, text: str) -> float:
    """Estimate the core-seconds of `query.attend`, or of `query.attend_over_steps` at one checkpoint."""
    architecture = _architecture(run)
    length = len(read_sentence(text, load_tokenizer(run), architecture.max_position_embeddings))
    return _seconds(architecture, length, ATTENTION_PASSES)


def _seconds(architecture: Architecture, length: int, passes: float) -> float:
    """Estimate the seconds of passes that apply all layers to a text and the head to one of its pieces."""
    passes_of_layer = architecture.num_hidden_layers / architecture.group_count  # of each that has own weights
    layers = architecture.layer_parameters * passes_of_layer
    head = architecture.vocab_size * architecture.hidden_size
    return CHECKPOINT_SECONDS + passes * (length * layers + head) / PARAMETERS_PER_SECOND


def _architecture(run: Run) -> Architecture:
    """Return the sizes of a run's models, from the last checkpoint that can be read. Raises CheckpointError."""
    for checkpoint in reversed(runs.loadable_checkpoints(run)):
        try:
            return runs.read_config(checkpoint, Architecture)
        except BrokenCheckpoint as error:
            reason = error
    raise reason
