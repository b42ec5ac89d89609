"""Entry point of python -m embryo_core."""

import sys

from embryo_core.cli import main

sys.exit(main())
