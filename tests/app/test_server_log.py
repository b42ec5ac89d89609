"""What a browser's message raises is a short line of the server's log, and rare; own faults keep their traceback."""

import logging
from collections.abc import Callable

import pytest

from app import server_log
from embryo_core.errors import exit_status

READING = "/packages/streamlit/runtime/state/common.py"  # where Streamlit reads what a browser sent


def forged() -> None:
    """Raise what Streamlit raises for a forged message."""
    raise ValueError("no JSON: " + "{" * 5000 + "\nat its start")


def fault() -> None:
    """Raise an error in own code."""
    exit_status(lambda: 1 // 0, "")


def within(file: str, call: Callable[[], object]) -> Callable[[], object]:
    """Return a function of another file that makes a call."""
    calling = lambda: call()
    calling.__code__ = calling.__code__.replace(co_filename=file)
    return calling


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what a logger of Streamlit's writes."""
    monkeypatch.setattr(server_log, "_SHORTEN", server_log._Shorten())
    logger, lines = logging.getLogger("streamlit.of.this.test"), []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda record: lines.append(logging.Formatter().format(record)))
    monkeypatch.setattr(logger, "handlers", [handler])
    monkeypatch.setattr(logger, "filters", [])
    server_log.shorten()
    return lines


def log(raising: Callable[[], object]) -> None:
    """Log what a call raises, as Streamlit does."""
    try:
        raising()
    except Exception as error:
        logging.getLogger("streamlit.of.this.test").error("Uncaught app execution of\x1b[31m", exc_info=error)


def test_a_forged_message_is_one_line_a_minute(written: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether Streamlit reads it before a page is drawn or while one is; control characters are escaped."""
    now = [100.0]
    monkeypatch.setattr(server_log, "monotonic", lambda: now[0])
    for raising in (within(READING, forged), lambda: exit_status(within(READING, forged), "")):
        written.clear()
        now[0] += server_log.SILENT_FOR
        for _ in range(100):
            log(raising)
        (line,) = written
        assert "ValueError" in line and "\n" not in line and "\x1b" not in line
        assert len(line) <= server_log.MAX_LENGTH
    now[0] += server_log.SILENT_FOR
    log(raising)
    assert len(written) == 2


def test_own_faults_keep_their_traceback(written: list[str]) -> None:
    """Also in a callback, which Streamlit calls where it reads values; once a minute for each line of code."""
    for raising in (fault, within(READING, fault), fault):
        log(raising)
    (traceback,) = written
    assert "ZeroDivisionError" in traceback and "errors.py" in traceback
    log(within(READING, forged))
    assert len(written) == 2 and "errors.py" not in written[1]


def test_what_is_no_warning_is_logged_as_it_is(written: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The address of the server, for instance."""
    logger = logging.getLogger("streamlit.of.this.test")
    for _ in range(2):
        logger.handle(logger.makeRecord(logger.name, logging.INFO, __file__, 1, "x" * 1000, (), None))
    assert written == ["x" * 1000] * 2
