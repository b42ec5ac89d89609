"""Tests of the server's log: an error from a browser's message is one short line, an error in own code a traceback."""

import logging
from collections.abc import Callable

import pytest

from app import server_log
from embryo_core.errors import exit_status

READING = "/packages/streamlit/runtime/state/common.py"  # where Streamlit parses values from a browser


def raise_forged_error() -> None:
    """Raise an error like Streamlit's for a forged message."""
    raise ValueError("no JSON: " + "{" * 5000 + "\nat its start")


def raise_own_error() -> None:
    """Raise an error in this project's own code."""
    exit_status(lambda: 1 // 0, "")


def raised_in(file: str, call: Callable[[], object]) -> Callable[[], object]:
    """Return a function that makes a call and whose code belongs to `file`."""
    calling = lambda: call()
    calling.__code__ = calling.__code__.replace(co_filename=file)
    return calling


@pytest.fixture
def written_lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of lines that a logger of Streamlit writes."""
    monkeypatch.setattr(server_log, "_SHORTEN", server_log._Shorten())
    logger, lines = logging.getLogger("streamlit.of.this.test"), []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda record: lines.append(logging.Formatter().format(record)))
    monkeypatch.setattr(logger, "handlers", [handler])
    monkeypatch.setattr(logger, "filters", [])
    server_log.shorten()
    return lines


def log(raising: Callable[[], object]) -> None:
    """Log the error that a call raises, as Streamlit does."""
    try:
        raising()
    except Exception as error:
        logging.getLogger("streamlit.of.this.test").error("Uncaught app execution of\x1b[31m", exc_info=error)


def test_forged_messages_write_one_line_per_minute(written_lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds before a page is drawn and while own code draws one; control characters are escaped."""
    now = [100.0]
    monkeypatch.setattr(server_log, "monotonic", lambda: now[0])
    for raising in (
        raised_in(READING, raise_forged_error),
        lambda: exit_status(raised_in(READING, raise_forged_error), ""),
    ):
        written_lines.clear()
        now[0] += server_log.SILENT_FOR
        for _ in range(100):
            log(raising)
        (line,) = written_lines
        assert "ValueError" in line and "\n" not in line and "\x1b" not in line
        assert len(line) <= server_log.MAX_LENGTH
    now[0] += server_log.SILENT_FOR
    log(raising)
    assert len(written_lines) == 2


def test_errors_in_own_code_keep_traceback(written_lines: list[str]) -> None:
    """This includes callbacks, which Streamlit calls while it parses values; each line of code logs once a minute."""
    for raising in (raise_own_error, raised_in(READING, raise_own_error), raise_own_error):
        log(raising)
    (traceback,) = written_lines
    assert "ZeroDivisionError" in traceback and "errors.py" in traceback
    log(raised_in(READING, raise_forged_error))
    assert len(written_lines) == 2 and "errors.py" not in written_lines[1]


def test_records_below_warning_are_unchanged(written_lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Information such as the server's address is neither shortened nor dropped when repeated."""
    logger = logging.getLogger("streamlit.of.this.test")
    for _ in range(2):
        logger.handle(logger.makeRecord(logger.name, logging.INFO, __file__, 1, "x" * 1000, (), None))
    assert written_lines == ["x" * 1000] * 2
