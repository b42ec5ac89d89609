"""This user's own settings: what no run's folder, which may come from a stranger, can say."""

import os
from pathlib import Path


def settings_folder() -> Path:
    """The folder of the lists that this user's commands write; a writer of one holds the lock on it."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(home) / "embryo"
