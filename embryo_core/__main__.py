"""Entry point of `python -m embryo_core` and of the command `embryo`."""

import os
import sys

from embryo_core.cli import main
from embryo_core.errors import INTERRUPTED


def run() -> None:
    """Run the command line and exit with its status."""
    status = main()
    if status == INTERRUPTED:  # sys.exit would wait for threads that are still computing
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


if __name__ == "__main__":
    run()
