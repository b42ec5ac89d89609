"""The cost of a question, estimated before it is asked, in seconds of one core.

The estimate counts the matrix products of all passes: exactly, if no beam stops before its last row and the rows of a
beam differ in every filled piece. It adds three costs that do not depend on the length of the text: the work on the
logits of each row (sorting, summing exponentials), on each pass, and on each checkpoint. Each function is named after
the question that it estimates and raises the same errors, QueryError and CheckpointError. Seconds are those of the
machine in docs/benchmarks.md with the models in memory; another machine, or a question on several threads, differs by a
factor that is the same for all questions.
"""

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint
from embryo_core.families import DECODERS
from embryo_core.query.beam import BEAM_WIDTH
from embryo_core.query.continuation import CONTINUATION_LENGTH
from embryo_core.query.question import Question, parse
from embryo_core.query.sentence import read_sentence
from embryo_core.runs import Architecture
from embryo_core.runs.architecture import layer_flops
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run

OPERATIONS_PER_SECOND = 7e10  # floating-point operations per second
LOGIT_SECONDS = 1e-8  # seconds per logit: exponentials in float64, top_k, sorting
PASS_SECONDS = 2e-4  # seconds per pass
CHECKPOINT_SECONDS = 3e-4  # seconds per checkpoint
CONTINUATION_PASSES = 4  # of a greedy continuation: fewer if steps have the same one, at most one per piece
RIVALS_PER_CHECKPOINT = 0.4  # joint answers per checkpoint that lead at some step and are outside the beam at another


def ask_seconds(run: Run, question: Question | str, steps: int | None = None) -> float:
    """Estimate the core-seconds of `query.ask` at this number of steps, or at all steps (None)."""
    architecture, checkpoint_count = _architecture(run, steps)
    question = _parse(run, question, architecture)
    masks, length = len(question.masks), max(len(question.ids), question.masks[-1])
    if question.continues and question.word is None:
        layer_operations = architecture.num_hidden_layers * _layer_operations(
            architecture, 1, length + CONTINUATION_LENGTH - 1
        )
        return checkpoint_count * (
            CHECKPOINT_SECONDS
            + CONTINUATION_PASSES
            * (
                PASS_SECONDS
                + layer_operations / OPERATIONS_PER_SECOND
                + _head_seconds(architecture, CONTINUATION_LENGTH)
            )
        )
    if masks == 1:
        return checkpoint_count * (CHECKPOINT_SECONDS + _pass_seconds(architecture, 1, length))
    if question.continues and run.family in DECODERS:  # decoders cache keys and values
        later_seconds = sum(_read_on_seconds(architecture, rows, length) for rows in (1, BEAM_WIDTH))
        return checkpoint_count * (
            CHECKPOINT_SECONDS + _pass_seconds(architecture, 1, length) + (masks - 1) * later_seconds
        )
    seconds = _scoring_seconds(architecture, masks, length, BEAM_WIDTH)
    if question.word:  # passes of the word itself, and of a beam after its first piece
        return checkpoint_count * (CHECKPOINT_SECONDS + masks * _pass_seconds(architecture, 1, length) + seconds)
    seconds += _pass_seconds(architecture, 1, length)
    if checkpoint_count == 1:
        return CHECKPOINT_SECONDS + seconds
    rival_seconds = _scoring_seconds(architecture, masks, length, max(1, int(RIVALS_PER_CHECKPOINT * checkpoint_count)))
    return checkpoint_count * (2 * CHECKPOINT_SECONDS + seconds + rival_seconds)


def ask_layers_seconds(run: Run, question: Question | str, steps: int | None = None) -> float:
    """Estimate the seconds of `query.ask_layers` at this number of steps, or at all steps (None)."""
    architecture, checkpoint_count = _architecture(run, steps)
    length = len(_parse(run, question, architecture).ids)
    pass_count = 2 if run.family in DECODERS else 1  # states and logits of a decoder are computed in separate passes
    return checkpoint_count * (
        CHECKPOINT_SECONDS
        + pass_count * _pass_seconds(architecture, 1, length)
        + _head_seconds(architecture, architecture.num_hidden_layers)
    )


def attend_seconds(run: Run, text: str, steps: int | None = 1) -> float:
    """Estimate the seconds of `query.attend`, or of `query.attend_over_steps` at this number of steps or all (None)."""
    architecture, checkpoint_count = _architecture(run, steps)
    length = len(read_sentence(text, load_tokenizer(run), architecture.max_position_embeddings))
    weight_operations = 6 * length * architecture.hidden_size**2 + 2 * length**2 * architecture.hidden_size
    layer_operations = architecture.num_hidden_layers * (_layer_operations(architecture, 1, length) + weight_operations)
    return checkpoint_count * (
        CHECKPOINT_SECONDS
        + PASS_SECONDS
        + (_projection_operations(architecture, length) + layer_operations) / OPERATIONS_PER_SECOND
    )


# === Parts ===


def products(architecture: Architecture, rows: int, length: int, differing: int = 0) -> int:
    """Count the floating-point operations of a pass: its matrix products, up to the logits at one position of each row.

    As in engine/network.py, pieces that rows share are computed once, up to the first layer's queries, keys and values;
    rows differ in `differing` pieces. The last layer is computed only at the one position, from all keys and values.
    """
    hidden, inner, width = architecture.hidden_size, architecture.intermediate_size or 0, architecture.width
    distinct = length + differing * (rows - 1)
    first_layer = _projection_operations(architecture, distinct) - 6 * (rows * length - distinct) * hidden**2
    last_layer = 6 * rows * length * hidden**2 + rows * (4 * length * hidden + 2 * hidden**2 + 4 * hidden * inner)
    head = 2 * rows * width * (hidden + architecture.vocab_size)
    return (
        first_layer
        + (architecture.num_hidden_layers - 1) * _layer_operations(architecture, rows, length)
        + last_layer
        + head
    )


def _projection_operations(architecture: Architecture, length: int) -> int:
    """Count the operations that project embeddings of `length` pieces to hidden states, if the model does."""
    return 2 * length * architecture.width * architecture.hidden_size if architecture.is_projected else 0


def _layer_operations(architecture: Architecture, rows: int, length: int) -> int:
    """Count the operations of one layer at all positions."""
    return rows * layer_flops(length, architecture.hidden_size, architecture.intermediate_size or 0)


def _pass_seconds(architecture: Architecture, rows: int, length: int, differing: int = 0) -> float:
    """Estimate the seconds of a pass with logits at one position of each row."""
    return (
        PASS_SECONDS
        + products(architecture, rows, length, differing) / OPERATIONS_PER_SECOND
        + rows * architecture.vocab_size * LOGIT_SECONDS
    )


def _read_on_seconds(architecture: Architecture, rows: int, length: int) -> float:
    """Estimate the seconds of a pass that reads one more piece in each row after a cached text."""
    layer_operations = architecture.num_hidden_layers * _layer_operations(architecture, rows, length) / length
    return PASS_SECONDS + layer_operations / OPERATIONS_PER_SECOND + _head_seconds(architecture, rows)


def _head_seconds(architecture: Architecture, states: int) -> float:
    """Estimate the seconds of the logits at a number of states."""
    products = 2 * states * architecture.width * (architecture.hidden_size + architecture.vocab_size)
    return products / OPERATIONS_PER_SECOND + states * architecture.vocab_size * LOGIT_SECONDS


def _scoring_seconds(architecture: Architecture, masks: int, length: int, rows: int) -> float:
    """Estimate the seconds of the passes at the masks after the first, with `rows` rows each."""
    return sum(_pass_seconds(architecture, rows, length, differing) for differing in range(1, masks))


def _parse(run: Run, question: Question | str, architecture: Architecture) -> Question:
    """Parse a text; raise QueryError if it is longer than the positions of the run's models."""
    question = parse(run, question)
    question.check_length(architecture.max_position_embeddings)
    return question


def _architecture(run: Run, steps: int | None) -> tuple[Architecture, int]:
    """Return the sizes of a run's models, and the number of models to ask (None: all). Raises CheckpointError."""
    loadable = runs.loadable_checkpoints(run)
    for checkpoint in reversed(loadable):
        try:
            return runs.read_config(checkpoint, Architecture), len(loadable) if steps is None else steps
        except BrokenCheckpoint as error:
            reason = error
    raise reason
