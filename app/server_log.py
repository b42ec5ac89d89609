"""The server's log: warnings and errors of Streamlit take one line, and each is logged at most once a minute.

Otherwise each forged message of a browser would write 4 kB. An error in this project's own code keeps its traceback.
"""

import logging
from pathlib import Path
from time import monotonic
from traceback import walk_tb

from embryo_core.errors import first_line, printable

SILENT_FOR = 60.0  # seconds before a message from the same line of code is logged again
MAX_LENGTH = 300  # characters of a message, which may quote a browser
# folders of this project's code
OWN_FOLDERS = tuple(f"{(Path(__file__).parents[1] / name).as_posix()}/" for name in ("app", "embryo_core"))
VALUES_FOLDER = "/streamlit/runtime/state/"  # Streamlit's code that parses values from the browser


class _Shorten(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._logged: dict[tuple[str, int], float] = {}  # time of the last message, by file and line

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten a record to one line, unless its error is in this project's own code; return whether to log it."""
        if record.levelno < logging.WARNING:
            return True
        error = record.exc_info[1] if record.exc_info else None
        own = _own_place(error)
        place = own or (record.pathname, record.lineno)
        if monotonic() - self._logged.get(place, -SILENT_FOR) < SILENT_FOR:
            return False
        self._logged[place] = monotonic()
        if not own:
            why = f": {type(error).__name__}: {first_line(error)}" if error else ""
            message = printable(record.getMessage().strip() + why)
            record.msg, record.args, record.exc_info = message[:MAX_LENGTH], (), None
        return True


def _own_place(error: BaseException | None) -> tuple[str, int] | None:
    """Return file and line of the innermost call in this project's code; None if parsing a browser's values failed."""
    place = None
    for frame, line in walk_tb(error.__traceback__ if error else None):
        file = frame.f_code.co_filename.replace("\\", "/")
        if file.startswith(OWN_FOLDERS):
            place = file, line
        elif VALUES_FOLDER in file:
            place = None
    return place


_SHORTEN = _Shorten()


def shorten() -> None:
    """Shorten the messages of all current loggers of the server; call again, at little cost, to include new loggers."""
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(("streamlit", "uvicorn")):
            logging.getLogger(name).addFilter(_SHORTEN)
