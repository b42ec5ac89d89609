"""Tests of the app below a path of another server, as with JupyterHub: every request stays below the path."""

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from embryo_core.types import Run
from tests.browser.conftest import Visitor, free_port, running_server
from tests.browser.test_hosting import SOCKET, answer

PREFIX = "/user/jane/proxy/app"


@contextmanager
def stripping(port: int) -> Iterator[str]:
    """Start a proxy that removes the prefix of each path before the server on this port gets it; yield its address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=_forward, args=(listener.accept()[0], port), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}{PREFIX}"
    listener.close()


def _forward(client: socket.socket, port: int) -> None:
    """Forward one request, and all later data in both directions."""
    head = b""
    while b"\r\n\r\n" not in head and (more := client.recv(65536)):
        head += more
    method, _, rest = head.partition(b" ")
    if not rest.startswith(PREFIX.encode()):
        return client.close()
    rest = rest.removeprefix(PREFIX.encode())
    if b"Upgrade: websocket" not in rest:
        rest = rest.replace(b"Connection: keep-alive", b"Connection: close")  # one request per connection
    try:
        server = socket.create_connection(("127.0.0.1", port))
    except OSError:
        return client.close()
    server.sendall(method + b" " + rest)
    threading.Thread(target=_pipe, args=(client, server), daemon=True).start()
    return _pipe(server, client)


def _pipe(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def keeping(run: Run) -> Iterator[str]:
    """Start the app with the prefix as the path of its base URL; yield its address."""
    port, root = free_port(), run.path.parents[1]
    command = [sys.executable, "-m", "embryo_core", "app", "--port", str(port)]
    hosts = {"STREAMLIT_SERVER_ALLOWED_HOSTS": "127.0.0.1 hub.example", "STREAMLIT_SERVER_BASE_URL_PATH": PREFIX}
    with running_server(command, port, root, root, prefix=PREFIX, **hosts) as address:
        yield address


def visit_pages(visitor: Visitor, run: Run) -> None:
    """Open a page, follow links to others, go back, and open a copied link."""
    visitor.open("", run=run.name, step="8")
    visitor.follow("Tokens")
    visitor.follow("Attention")
    link = visitor.page.url
    assert link.startswith(f"{visitor.address}/attention?") and visitor.query()["run"] == run.name
    visitor.page.go_back()
    visitor.page.wait_for_url(f"{visitor.address}/tokens?*")
    visitor.open_link(link)
    visitor.expect_query(run=run.name, step="8")


@pytest.mark.slow
def test_pages_open_below_prefix_known_to_server(tiny_results: Run, visit: Callable[[str], Visitor]) -> None:
    """This is the setting of jupyter-server-proxy's `proxy/absolute`; a WebSocket under an allowed host name opens."""
    with keeping(tiny_results) as address:
        visit_pages(visit(address), tiny_results)
        assert answer(address, f"{PREFIX}/_stcore/stream", "hub.example", SOCKET) == b"101"


@pytest.mark.slow
def test_pages_open_below_prefix_removed_by_proxy(app: str, tiny_results: Run, visit: Callable[[str], Visitor]) -> None:
    """This is the setting of jupyter-server-proxy's `proxy/PORT`, in which the server cannot know the path."""
    with stripping(int(app.rpartition(":")[2])) as address:
        visit_pages(visit(address), tiny_results)
