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
from embryo_core.query.beam import BEAM_WIDTH, CONTINUED
from embryo_core.query.question import Question, parse
from embryo_core.query.sentence import read_sentence
from embryo_core.runs import Architecture
from embryo_core.runs.architecture import layer_flops
from embryo_core.tokenizers.tokenizer import load_tokenizer
from embryo_core.types import Run

RATE = 7e10  # floating-point operations per second
LOGIT = 1e-8  # seconds per logit: exponentials in float64, top_k, sorting
PASS = 2e-4  # seconds per pass
CHECKPOINT = 3e-4  # seconds per checkpoint
CONTINUING = 4  # passes of a greedy continuation: fewer if steps have the same continuation, at most one per piece
RIVALS = 0.4  # joint answers per checkpoint that lead at some step and are outside the beam at another


def ask_seconds(run: Run, question: Question | str, steps: int | None = None) -> float:
    """Estimate the core-seconds of `query.ask` at this number of steps, or at all steps (None)."""
    sizes, checkpoints = _sizes(run, steps)
    question = _parsed(run, question, sizes)
    masks, length = len(question.masks), max(len(question.ids), question.masks[-1])
    if question.continues and question.word is None:
        layers = sizes.num_hidden_layers * _layer(sizes, 1, length + CONTINUED - 1)
        return checkpoints * (CHECKPOINT + CONTINUING * (PASS + layers / RATE + _head(sizes, CONTINUED)))
    if masks == 1:
        return checkpoints * (CHECKPOINT + _pass(sizes, 1, length))
    if question.continues and run.family in DECODERS:  # decoders cache keys and values
        later = sum(_read_on(sizes, rows, length) for rows in (1, BEAM_WIDTH))
        return checkpoints * (CHECKPOINT + _pass(sizes, 1, length) + (masks - 1) * later)
    filled = _scored(sizes, masks, length, BEAM_WIDTH)
    if question.word:  # passes of the word itself, and of a beam after its first piece
        return checkpoints * (CHECKPOINT + masks * _pass(sizes, 1, length) + filled)
    filled += _pass(sizes, 1, length)
    if checkpoints == 1:
        return CHECKPOINT + filled
    rivals = _scored(sizes, masks, length, max(1, int(RIVALS * checkpoints)))
    return checkpoints * (2 * CHECKPOINT + filled + rivals)


def ask_layers_seconds(run: Run, question: Question | str, steps: int | None = None) -> float:
    """Estimate the seconds of `query.ask_layers` at this number of steps, or at all steps (None)."""
    sizes, checkpoints = _sizes(run, steps)
    length = len(_parsed(run, question, sizes).ids)
    passes = 2 if run.family in DECODERS else 1  # states and logits of a decoder are computed in separate passes
    return checkpoints * (CHECKPOINT + passes * _pass(sizes, 1, length) + _head(sizes, sizes.num_hidden_layers))


def attend_seconds(run: Run, text: str, steps: int | None = 1) -> float:
    """Estimate the seconds of `query.attend`, or of `query.attend_over_steps` at this number of steps or all (None)."""
    sizes, checkpoints = _sizes(run, steps)
    length = len(read_sentence(text, load_tokenizer(run), sizes.max_position_embeddings))
    weights = 6 * length * sizes.hidden_size**2 + 2 * length**2 * sizes.hidden_size
    layers = sizes.num_hidden_layers * (_layer(sizes, 1, length) + weights)
    return checkpoints * (CHECKPOINT + PASS + (_projection(sizes, length) + layers) / RATE)


# === Parts ===


def products(sizes: Architecture, rows: int, length: int, filled: int = 0) -> int:
    """Count the floating-point operations of a pass: its matrix products, up to the logits at one position of each row.

    As in engine/network.py, pieces that rows share are computed once, up to the first layer's queries, keys and values;
    rows differ in `filled` pieces. The last layer is computed only at the one position, from all keys and values.
    """
    hidden, inner, width = sizes.hidden_size, sizes.intermediate_size or 0, sizes.width
    once = length + filled * (rows - 1)
    entered = _projection(sizes, once) - 6 * (rows * length - once) * hidden**2
    last = 6 * rows * length * hidden**2 + rows * (4 * length * hidden + 2 * hidden**2 + 4 * hidden * inner)
    head = 2 * rows * width * (hidden + sizes.vocab_size)
    return entered + (sizes.num_hidden_layers - 1) * _layer(sizes, rows, length) + last + head


def _projection(sizes: Architecture, length: int) -> int:
    """Count the operations that project embeddings of `length` pieces to hidden states, if their sizes differ."""
    width, hidden = sizes.width, sizes.hidden_size
    return 2 * length * width * hidden if width != hidden else 0


def _layer(sizes: Architecture, rows: int, length: int) -> int:
    """Count the operations of one layer at all positions."""
    return rows * layer_flops(length, sizes.hidden_size, sizes.intermediate_size or 0)


def _pass(sizes: Architecture, rows: int, length: int, filled: int = 0) -> float:
    """Estimate the seconds of a pass with logits at one position of each row."""
    return PASS + products(sizes, rows, length, filled) / RATE + rows * sizes.vocab_size * LOGIT


def _read_on(sizes: Architecture, rows: int, length: int) -> float:
    """Estimate the seconds of a pass that reads one more piece in each row after a cached text."""
    layers = sizes.num_hidden_layers * _layer(sizes, rows, length) / length
    return PASS + layers / RATE + _head(sizes, rows)


def _head(sizes: Architecture, states: int) -> float:
    """Estimate the seconds of the logits at a number of states."""
    products = 2 * states * sizes.width * (sizes.hidden_size + sizes.vocab_size)
    return products / RATE + states * sizes.vocab_size * LOGIT


def _scored(sizes: Architecture, masks: int, length: int, rows: int) -> float:
    """Estimate the seconds of the passes at the masks after the first, with `rows` rows each."""
    return sum(_pass(sizes, rows, length, filled) for filled in range(1, masks))


def _parsed(run: Run, question: Question | str, sizes: Architecture) -> Question:
    """Parse a text; raise QueryError if it is longer than the positions of the run's models."""
    question = parse(run, question)
    question.check_length(sizes.max_position_embeddings)
    return question


def _sizes(run: Run, steps: int | None) -> tuple[Architecture, int]:
    """Return the sizes of a run's models, and the number of models to ask (None: all). Raises CheckpointError."""
    loadable = runs.loadable_checkpoints(run)
    for checkpoint in reversed(loadable):
        try:
            return runs.read_config(checkpoint, Architecture), len(loadable) if steps is None else steps
        except BrokenCheckpoint as error:
            reason = error
    raise reason
