"""The real app in Chromium: servers on free ports, and visitors that notice every error and every foreign request."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from embryo_core.types import Run
from tests.demo import FOLDER

REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE = 90_000  # milliseconds; the machine may be busy with something else
GLANCE = 200  # milliseconds: how long the pointer waits in one place
FLAGS = (
    "--no-sandbox",  # Chromium as root, as in continuous integration, has none; it opens our own pages only
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # In place of playwright's own list. The last two would draw two more pages behind the address bar of each window.
    "--disable-features=PaintHolding,LensOverlay,MediaRouter,OptimizationHints,WebUIOmniboxPopup,WebUIOmniboxAimPopup",
)
# With motion a processor draws placeholders that shimmer, frame by frame, while it has a page to compute.
WINDOW = {"viewport": {"width": 1400, "height": 1000}, "reduced_motion": "reduce"}
AT_REST = """() => {
    const roots = [document];
    for (const root of roots) {
        root.querySelectorAll("*").forEach((one) => one.shadowRoot && roots.push(one.shadowRoot));
    }
    const drawn = roots.map((root) => (root.body ?? root).innerHTML).join();
    const still = drawn === window.drawnBefore && document.getAnimations().every((one) => one.playState !== "running");
    window.drawnBefore = drawn;
    return still && !document.querySelector('[data-stale="true"], [data-testid*="Skeleton"]');
}"""
expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder is a browser test."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("browser")


class Visitor:
    """Somebody who opens the app at `address`, in a browser window of their own."""

    def __init__(self, page: Page, address: str):
        self.page = page
        self.address = address
        self.errors: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self._notice(request.url))

    def open(self, page: str = "", **query: str) -> None:
        """Open a page by its path, with these query parameters, and wait until nothing moves."""
        self.open_link(f"{self.address}/{page}?" + "&".join(f"{name}={value}" for name, value in query.items()))

    def open_link(self, link: str) -> None:
        """Open a whole URL and wait until nothing on the page moves: what is clicked earlier may be drawn anew."""
        self.page.goto(link)
        expect(self.page.get_by_role("heading", level=1)).to_be_visible()
        self.rest()

    def follow(self, title: str) -> None:
        """Go to another page by its name in the navigation."""
        self.page.get_by_role("link", name=title).click()
        expect(self.heading(title)).to_be_visible()
        self.rest()

    def heading(self, title: str):
        """Return the title of a page."""
        return self.page.get_by_role("heading", name=title, level=1)

    def settle(self) -> None:
        """Wait until the server has run the page to its end; there must be no exception on it."""
        expect(self.page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]')).to_be_visible()
        expect(self.page.get_by_test_id("stException")).to_have_count(0)

    def rest(self) -> None:
        """Wait until nothing on the page moves: nothing is a placeholder or fades, half a second changes nothing."""
        self.settle()
        self.page.evaluate("delete window.drawnBefore")
        for track in self.page.locator(".bar .track").all():
            expect(track).to_have_attribute("aria-valuenow", re.compile(r"\d"))
        self.page.wait_for_function(AT_REST, polling=500)
        self.settle()

    def point_at(self, place: Callable[[], Sequence[float]], hint: Locator, text: str | re.Pattern) -> None:
        """Move the pointer about `place()`, in pixels of the window, until the hint has this text.

        As a hand does: what is drawn anew under a pointer at rest does not notice it.
        """
        for nudge in range(PATIENCE // GLANCE):
            x, y = place()
            self.page.mouse.move(x + nudge % 2, y)
            try:
                return expect(hint).to_contain_text(text, timeout=GLANCE)
            except AssertionError:
                continue
        raise AssertionError(f"nothing that the pointer meets there shows {text!r}")

    def files(self, figure: str = "") -> Locator:
        """Return the opened menu of a figure's files, by the name of its downloads, or of the first figure."""
        self.close_files()
        body = self.page.get_by_test_id("stPopoverBody")
        which = f".st-key-save_{figure}" if figure else '[class*="st-key-save_"]'
        self.page.locator(f"{which} button").first.click()
        expect(body.get_by_role("button", name="SVG")).to_be_visible()
        self.settle()
        return body

    def close_files(self) -> None:
        """Close the menu that is open, if there is one: a click elsewhere would close it and do nothing else."""
        self.page.keyboard.press("Escape")
        expect(self.page.get_by_test_id("stPopoverBody")).to_have_count(0)

    def save(self, button: Locator) -> tuple[str, bytes]:
        """Name and content of the file that a button saves."""
        with self.page.expect_download() as download:
            button.click()
        return download.value.suggested_filename, download.value.path().read_bytes()

    def query(self) -> dict[str, str]:
        """Return the query parameters in the address bar."""
        return {name: values[0] for name, values in parse_qs(urlsplit(self.page.url).query).items()}

    def expect_query(self, **wanted: str) -> None:
        """Wait until the address bar holds these query parameters."""
        for name, value in wanted.items():
            self.page.wait_for_function(
                "([name, value]) => new URL(location).searchParams.get(name) === value", arg=[name, value]
            )

    def _notice(self, url: str) -> None:
        if urlsplit(url).scheme in ("http", "https", "ws", "wss") and not url.startswith(self.address):
            self.errors.append(f"a request leaves the machine: {url}")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Debian's chromium where it is installed, playwright's own elsewhere."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Browser) -> Iterator:
    """visit(address) -> Visitor in a fresh window; at the end no page has thrown, no request has left."""
    contexts, visitors = [], []

    def enter(address: str) -> Visitor:
        contexts.append(chromium.new_context(**WINDOW))
        visitors.append(Visitor(contexts[-1].new_page(), address))
        return visitors[-1]

    yield enter
    for context in contexts:
        context.close()
    assert not [error for visitor in visitors for error in visitor.errors]


class Reader:
    """Somebody who opens a saved document, with no network at all."""

    def __init__(self, page: Page, folder: Path):
        self.page = page
        self.folder = folder
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.errors.append(request.url) if request.url[:4] == "http" else None)

    def open(self, html: str) -> None:
        """Open a document from a file, as a download is."""
        path = self.folder / "page.html"
        path.write_text(html, encoding="utf-8")
        self.page.goto(path.as_uri())


@pytest.fixture
def offline(chromium: Browser, tmp_path: Path) -> Iterator[Reader]:
    """Return a reader without a network; fails the test where a script throws or a request is tried."""
    context = chromium.new_context(offline=True)
    reader = Reader(context.new_page(), tmp_path)
    yield reader
    context.close()
    assert not reader.errors


@pytest.fixture(scope="session")
def app(tiny_results: Run) -> Iterator[str]:
    """Return the address of the app on a run with all its results."""
    with serve(tiny_results.path.parents[1]) as address:
        yield address


@pytest.fixture(scope="session")
def app_of_demo() -> Iterator[str]:
    """Return the app on the demo, whose loss turns, and whose grids are wide."""
    with serve(FOLDER) as address:
        yield address


@pytest.fixture(scope="session")
def app_with_damage(tiny_results: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the app on the runs "unevaluated", which has no results, and "broken", whose parquet files are none."""
    root = tmp_path_factory.mktemp("damage")
    for name in ("unevaluated", "broken"):
        shutil.copytree(tiny_results.path, root / "runs" / name)
    shutil.copytree(tiny_results.results, root / "results" / "broken")
    for path in (root / "results" / "broken").glob("*.parquet"):
        path.write_bytes(path.read_bytes()[:100])
    with serve(root) as address:
        yield address


@pytest.fixture(scope="session")
def app_without_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the app on an empty folder."""
    with serve(tmp_path_factory.mktemp("empty")) as address:
        yield address


@contextmanager
def serve(root: Path) -> Iterator[str]:
    """Start the app on this data root as a user of the package does, on a free port; yields its address.

    From the root's own folder: the server's settings hold wherever it is started.
    """
    port = free_port()
    with started([sys.executable, "-m", "embryo_core", "app", "--port", str(port)], port, root, root) as address:
        yield address


def free_port() -> int:
    """Return a port of this machine that no server listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def started(
    command: list[str], port: int, root: Path, folder: Path, prefix: str = "", **settings: str
) -> Iterator[str]:
    """Start a server of a data root in a folder; yield its address when it answers, and end its processes at last."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # as in an activated environment
    server = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, "EMBRYO_DATA": str(root), "PYTHONPATH": str(REPOSITORY), **settings},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    address = f"http://127.0.0.1:{port}{prefix}"
    try:
        _wait(f"{address}/_stcore/health", server)
        yield address
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def _wait(url: str, server: subprocess.Popen) -> None:
    deadline = time.monotonic() + PATIENCE / 1000
    while server.poll() is None and time.monotonic() < deadline:
        try:
            with urlopen(url):
                return
        except URLError:
            time.sleep(0.1)
    raise RuntimeError(f"the app did not start: no answer from {url}")
