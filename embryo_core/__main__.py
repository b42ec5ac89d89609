"""Entry point of python -m embryo_core."""

import os
import sys

from embryo_core.cli import INTERRUPTED, main

status = main()
if status == INTERRUPTED:  # a plain exit would wait for threads that are still computing
    sys.stderr.flush()
    os._exit(status)
sys.exit(status)
