"""Whether a run can be asked questions: its models need a head for words, and the last one must be readable."""

from embryo_core import runs
from embryo_core.engine.capabilities import checkpoint_capabilities
from embryo_core.engine.model import read_model
from embryo_core.errors import BrokenCheckpoint, EmbryoError
from embryo_core.types import Checkpoint, Run

MAX_BYTES = 2**30  # larger weights are not read to check whether the model can be queried


def unanswerable(run: Run) -> str:
    """Return a sentence on why the last local checkpoint cannot be queried; "" if it can, or was not checked."""
    last = next((one for one in reversed(runs.checkpoints(run)) if one.has_weights and _is_local(one)), None)
    if not last:
        return ""
    given = checkpoint_capabilities(last)
    if not given & {"masked_words", "next_words"}:
        named = " and ".join(name.replace("_", " ") for name in sorted(given - {"trainable"}))
        return f"No question can be asked: there is no head for words; checkpoints give {named or 'nothing'}."
    if runs.weights_file(last)[0].stat().st_size > MAX_BYTES:
        return ""
    try:
        read_model(last)
    except EmbryoError as reason:
        return f"No question can be asked: {reason}"
    return ""


def _is_local(checkpoint: Checkpoint) -> bool:
    try:
        return runs.weights_file(checkpoint)[0].is_file()
    except BrokenCheckpoint:
        return False
