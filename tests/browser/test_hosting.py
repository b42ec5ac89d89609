"""Tests of requests that a hosted server refuses or answers."""

import re
import socket
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import pytest

from embryo_core.types import Run
from tests.browser.conftest import REPOSITORY, Visitor, free_port, running_server

SEND = """async ([session, size]) => {
  const form = new FormData();
  form.append("file", new Blob(["a".repeat(size)]), "a.txt");
  const token = document.cookie.match(/_streamlit_xsrf=([^;]*)/)?.[1] ?? "";
  const options = { method: "PUT", body: form, headers: { "X-Xsrftoken": token } };
  return (await fetch(`/_stcore/upload_file/${session}/file`, options)).status;
}"""


SOCKET = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
)


def test_upload_is_refused(app: str, visit: Callable[[str], Visitor]) -> None:
    """No page accepts a file, so a file of any size gets status 413, even with the ID of a valid session."""
    visitor, frames = visit(app), []
    visitor.page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(frame)))
    visitor.open()
    texts = [frame if isinstance(frame, bytes) else frame.encode() for frame in frames]
    sessions = set(re.findall(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", b" ".join(texts)))
    for size in (1, 2_000_000):
        answers = {visitor.page.evaluate(SEND, [session.decode(), size]) for session in sessions}
        assert 413 in answers and answers <= {400, 413}  # 400: the ID is not that of a session


@pytest.mark.parametrize(
    ("host", "status"), [("127.0.0.1", b"101"), ("localhost", b"101"), ("rebound.example", b"403")]
)
def test_foreign_host_name_gets_no_connection(app: str, host: str, status: bytes) -> None:
    """A page under another name that resolves to this machine cannot open the app's WebSocket (DNS rebinding)."""
    assert answer(app, "/_stcore/stream", host, SOCKET) == status


@pytest.mark.parametrize(("settings", "host"), [({}, "any.example"), ({"EMBRYO_HOST": "demo.example"}, "demo.example")])
def test_procfile_serves_page_under_name_of_host(tiny_results: Run, settings: dict[str, str], host: str) -> None:
    """A shell runs the line of the Procfile, as a hosting service does.

    Without EMBRYO_HOST any name is accepted; with it, only that name opens a WebSocket.
    """
    line, port = (REPOSITORY / "Procfile").read_text(encoding="utf-8").removeprefix("web: "), free_port()
    root = tiny_results.path.parents[1]
    with running_server(["sh", "-c", line], port, root, REPOSITORY, PORT=str(port), **settings) as address:
        assert answer(address, "/", host) == b"200"
        assert answer(address, "/_stcore/stream", host, SOCKET) == b"101"
        foreign = answer(address, "/_stcore/stream", "rebound.example", SOCKET)
        assert foreign == (b"403" if settings else b"101")


def answer(address: str, path: str, host: str, more: Sequence[str] = ()) -> bytes:
    """Return the status of a server's answer to a request by a page under the name `host`."""
    place = urlsplit(address)
    lines = (
        f"GET {path} HTTP/1.1",
        f"Host: {host}:{place.port}",
        f"Origin: http://{host}:{place.port}",
        *more,
    )
    with socket.create_connection((place.hostname, place.port), timeout=30) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return connection.recv(64).split()[1]
