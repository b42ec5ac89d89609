"""The first run of the demo, whichever it is, for tests that need a real run."""

from embryo_core import runs
from embryo_core.runs import REPOSITORY
from embryo_core.types import Run

FOLDER = REPOSITORY / "data" / "demo"
PATH = min((FOLDER / "runs").iterdir())


def read() -> Run:
    """Return the first run of the demo."""
    return runs.read_run(PATH)
