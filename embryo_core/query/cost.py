"""The cost of a question, estimated before it is asked: the seconds that it takes on one core.

Counted are the matrix products of all its passes, exactly where no beam stops before its last row and its rows differ
in every filled piece, and three things that take as long where a text is short: the work on the logits of each row
(sorting them, summing their exponentials), each pass, and each checkpoint. Each function is named for the question that
it estimates. Seconds are those of the machine in docs/benchmarks.md with its models in memory; another machine, or a
question of several threads, differs by a factor that is the same for all questions.
"""

from embryo_core import runs
from embryo_core.errors import BrokenCheckpoint
from embryo_core.query.beam import BEAM_WIDTH
from embryo_core.query.question import Question, check_text, find_mask, read_question
from embryo_core.query.sentence import read_sentence
from embryo_core.query.track import read_word
from embryo_core.runs import Architecture
from embryo_core.runs.architecture import layer_flops
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run

RATE = 7e10  # floating-point operations in a second
LOGIT = 1e-8  # seconds for a logit: exponentials in float64, top_k, sorting
PASS = 2e-4  # seconds for a pass
CHECKPOINT = 3e-4  # seconds for a checkpoint
RIVALS = 0.4  # joint answers that led at some step and are outside the beam at another, for each checkpoint


def answer(run: Run, text: str) -> float:
    """Seconds of `query.answer`. Raises QueryError, TokenizerMismatch and BrokenRun as it does."""
    sizes, _ = _sizes(run)
    return CHECKPOINT + _filled(sizes, _read(run, text, sizes), BEAM_WIDTH)


def trace(run: Run, text: str, asked: int | None = None) -> float:
    """Seconds of `query.trace` at so many steps, or at all. Raises QueryError, TokenizerMismatch and BrokenRun."""
    sizes, checkpoints = _sizes(run, asked)
    question = _read(run, text, sizes)
    if len(question.masks) == 1:
        return checkpoints * (CHECKPOINT + _pass(sizes, 1, len(question.ids)))
    rivals = _scored(sizes, len(question.masks), len(question.ids), max(1, int(RIVALS * checkpoints)))
    return checkpoints * (2 * CHECKPOINT + _filled(sizes, question, BEAM_WIDTH) + rivals)


def track(run: Run, text: str, word: str, mask: int = 1, asked: int | None = None) -> float:
    """Seconds of `query.track` at so many steps, or at all. Raises QueryError, TokenizerMismatch and BrokenRun."""
    sizes, checkpoints = _sizes(run, asked)
    find_mask(check_text(text), mask)
    pieces = len(read_word(word, load_tokenizer(run)))
    length = len(_read(run, text, sizes).ids) + pieces - 1
    if pieces == 1:
        return checkpoints * (CHECKPOINT + _pass(sizes, 1, length))
    passes = pieces * _pass(sizes, 1, length) + _scored(sizes, pieces, length, BEAM_WIDTH)
    return checkpoints * (CHECKPOINT + passes)


def lens(run: Run, text: str, asked: int | None = None) -> float:
    """Seconds of `query.lens` at so many steps, or at all. Raises QueryError, TokenizerMismatch and BrokenRun."""
    sizes, checkpoints = _sizes(run, asked)
    length = len(_read(run, text, sizes).ids)
    states = sizes.num_hidden_layers + 1
    passed = _projection(sizes, 1, length) + sizes.num_hidden_layers * _layer(sizes, 1, length)
    return checkpoints * (CHECKPOINT + 2 * PASS + passed / RATE + _head(sizes, states))


def attend(run: Run, text: str) -> float:
    """Seconds of `query.attend`. Raises QueryError, TokenizerMismatch and BrokenRun as it does."""
    sizes, _ = _sizes(run)
    length = len(read_sentence(text, load_tokenizer(run), sizes.max_position_embeddings))
    weights = 6 * length * sizes.hidden_size**2 + 2 * length**2 * sizes.hidden_size
    layers = sizes.num_hidden_layers * (_layer(sizes, 1, length) + weights)
    return CHECKPOINT + PASS + (_projection(sizes, 1, length) + layers) / RATE


def attend_over_steps(run: Run, text: str, asked: int | None = None) -> float:
    """Seconds of `query.attend_over_steps` at so many steps, or at all. Raises as it does."""
    return _sizes(run, asked)[1] * attend(run, text)


# === Parts ===


def products(sizes: Architecture, rows: int, length: int, filled: int = 0) -> int:
    """Floating-point operations of the matrix products of a pass to the logits of one position in each of some rows.

    As in engine/network.py: what rows have in common is computed once up to the first layer's queries, keys and values;
    rows differ in `filled` pieces. The last layer is computed at that position alone, from the keys and values of all.
    """
    hidden, inner, width = sizes.hidden_size, sizes.intermediate_size, sizes.width
    once = length + filled * (rows - 1)
    entered = _projection(sizes, 1, once) - 6 * (rows * length - once) * hidden**2
    last = 6 * rows * length * hidden**2 + rows * (4 * length * hidden + 2 * hidden**2 + 4 * hidden * inner)
    head = 2 * rows * width * (hidden + sizes.vocab_size)
    return entered + (sizes.num_hidden_layers - 1) * _layer(sizes, rows, length) + last + head


def _projection(sizes: Architecture, rows: int, length: int) -> int:
    """Floating-point operations between embeddings and hidden states, where these differ in size."""
    width, hidden = sizes.width, sizes.hidden_size
    return 2 * rows * length * width * hidden if width != hidden else 0


def _layer(sizes: Architecture, rows: int, length: int) -> int:
    """Floating-point operations of one layer at all positions."""
    return rows * layer_flops(length, sizes.hidden_size, sizes.intermediate_size)


def _pass(sizes: Architecture, rows: int, length: int, filled: int = 0) -> float:
    return PASS + products(sizes, rows, length, filled) / RATE + rows * sizes.vocab_size * LOGIT


def _head(sizes: Architecture, states: int) -> float:
    products = 2 * states * sizes.width * (sizes.hidden_size + sizes.vocab_size)
    return products / RATE + states * sizes.vocab_size * LOGIT


def _filled(sizes: Architecture, question: Question, rows: int) -> float:
    """A pass for each mask: of one row at the first, where nothing is filled in yet, then of some rows."""
    length = len(question.ids)
    return _pass(sizes, 1, length) + _scored(sizes, len(question.masks), length, rows)


def _scored(sizes: Architecture, masks: int, length: int, rows: int) -> float:
    """A pass of some rows for each mask after the first, whose pass is done; a text is of so many pieces."""
    return sum(_pass(sizes, rows, length, filled) for filled in range(1, masks))


def _read(run: Run, text: str, sizes: Architecture) -> Question:
    return read_question(text, load_tokenizer(run), sizes.max_position_embeddings)


def _sizes(run: Run, asked: int | None = None) -> tuple[Architecture, int]:
    """The sizes of a run's models, and how many checkpoints are `asked`: all that can be where that is None.

    Raises CheckpointError where none can be.
    """
    found = runs.loadable(run) or [runs.checkpoint(run, 0)]  # raises, telling how a run gets its checkpoints
    for checkpoint in reversed(found):
        try:
            return runs.read_config(checkpoint, Architecture), len(found) if asked is None else asked
        except BrokenCheckpoint as error:
            reason = error
    raise reason
