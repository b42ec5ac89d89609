"""Fixtures that serve the app on free ports and visit it in Chromium; any error or foreign request fails the test."""

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
PATIENCE = 90_000  # milliseconds; the machine may be busy
GLANCE = 200  # milliseconds for which the pointer waits in one place
FLAGS = (
    "--no-sandbox",  # as root, as in continuous integration, Chromium has no sandbox; it opens only our own pages
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # This replaces playwright's list. The last two would draw two more pages behind the address bar of each window.
    "--disable-features=PaintHolding,LensOverlay,MediaRouter,OptimizationHints,WebUIOmniboxPopup,WebUIOmniboxAimPopup",
)
# With motion, the processor would draw shimmering placeholders frame by frame while it computes a page.
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
    """Mark every test of this folder as a browser test."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("browser")


class Visitor:
    """Visit the app at `address` in a separate browser window."""

    def __init__(self, page: Page, address: str):
        self.page = page
        self.address = address
        self.errors: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self._notice(request.url))

    def open(self, page: str = "", **query: str) -> None:
        """Open a page by its path with these query parameters, and wait until nothing moves."""
        self.open_link(f"{self.address}/{page}?" + "&".join(f"{name}={value}" for name, value in query.items()))

    def open_link(self, link: str) -> None:
        """Open a URL and wait until nothing moves, since an element that is clicked earlier may be drawn again."""
        self.page.goto(link)
        expect(self.page.get_by_role("heading", level=1)).to_be_visible()
        self.rest()

    def follow(self, title: str) -> None:
        """Go to another page by its title in the navigation."""
        self.page.get_by_role("link", name=title).click()
        expect(self.heading(title)).to_be_visible()
        self.rest()

    def heading(self, title: str):
        """Return the heading of the page with this title."""
        return self.page.get_by_role("heading", name=title, level=1)

    def settle(self) -> None:
        """Wait until the server has run the page to its end, and check that it shows no exception."""
        expect(self.page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]')).to_be_visible()
        expect(self.page.get_by_test_id("stException")).to_have_count(0)

    def rest(self) -> None:
        """Wait until the page has no placeholder, nothing fades, and nothing changes within half a second."""
        self.settle()
        self.page.evaluate("delete window.drawnBefore")
        for track in self.page.locator(".bar .track").all():
            expect(track).to_have_attribute("aria-valuenow", re.compile(r"\d"))
        self.page.wait_for_function(AT_REST, polling=500)
        self.settle()

    def point_at(self, place: Callable[[], Sequence[float]], hint: Locator, text: str | re.Pattern) -> None:
        """Move the pointer about `place()`, in pixels of the window, until `hint` has this text.

        The pointer has to keep moving: an element that is drawn again under a pointer at rest does not notice it.
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
        """Open the menu of files of a figure, named as its downloads, or of the first figure; return the menu."""
        self.close_files()
        body = self.page.get_by_test_id("stPopoverBody")
        which = f".st-key-save_{figure}" if figure else '[class*="st-key-save_"]'
        self.page.locator(f"{which} button").first.click()
        expect(body.get_by_role("button", name="SVG")).to_be_visible()
        self.settle()
        return body

    def close_files(self) -> None:
        """Close the open menu, if any; otherwise the next click elsewhere would only close the menu."""
        self.page.keyboard.press("Escape")
        expect(self.page.get_by_test_id("stPopoverBody")).to_have_count(0)

    def save(self, button: Locator) -> tuple[str, bytes]:
        """Click a button; return the name and the content of the file that it saves."""
        with self.page.expect_download() as download:
            button.click()
        return download.value.suggested_filename, download.value.path().read_bytes()

    def query(self) -> dict[str, str]:
        """Return the query parameters in the address bar."""
        return {name: values[0] for name, values in parse_qs(urlsplit(self.page.url).query).items()}

    def expect_query(self, **expected: str) -> None:
        """Wait until the address bar shows these query parameters."""
        for name, value in expected.items():
            self.page.wait_for_function(
                "([name, value]) => new URL(location).searchParams.get(name) === value", arg=[name, value]
            )

    def _notice(self, url: str) -> None:
        if urlsplit(url).scheme in ("http", "https", "ws", "wss") and not url.startswith(self.address):
            self.errors.append(f"a request leaves the machine: {url}")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Start Debian's chromium if it is installed, and playwright's own otherwise."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Browser) -> Iterator:
    """Yield visit(address), which returns a Visitor in a new window; check at the end that there were no errors."""
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
    """Read a saved document in a browser without a network."""

    def __init__(self, page: Page, folder: Path):
        self.page = page
        self.folder = folder
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.errors.append(request.url) if request.url[:4] == "http" else None)

    def open(self, html: str) -> None:
        """Open a document from a file, like a download."""
        path = self.folder / "page.html"
        path.write_text(html, encoding="utf-8")
        self.page.goto(path.as_uri())


@pytest.fixture
def offline(chromium: Browser, tmp_path: Path) -> Iterator[Reader]:
    """Yield a reader without a network; an error of a script or an attempted request fails the test."""
    context = chromium.new_context(offline=True)
    reader = Reader(context.new_page(), tmp_path)
    yield reader
    context.close()
    assert not reader.errors


@pytest.fixture(scope="session")
def app(tiny_results: Run) -> Iterator[str]:
    """Yield the address of the app on a run with all its results."""
    with serve(tiny_results.path.parents[1]) as address:
        yield address


@pytest.fixture(scope="session")
def app_of_demo() -> Iterator[str]:
    """Yield the address of the app on the demo, whose loss has phases and whose grids are wide."""
    with serve(FOLDER) as address:
        yield address


@pytest.fixture(scope="session")
def app_with_damage(tiny_results: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of the app on two runs: "unevaluated" without results, "broken" with cut Parquet files."""
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
    """Yield the address of the app on an empty folder."""
    with serve(tmp_path_factory.mktemp("empty")) as address:
        yield address


@contextmanager
def serve(root: Path) -> Iterator[str]:
    """Start the app on this data root by the package's command, on a free port; yield its address.

    The command runs in the root, since the server's settings must hold in any working directory.
    """
    port = free_port()
    with running_server([sys.executable, "-m", "embryo_core", "app", "--port", str(port)], port, root, root) as address:
        yield address


def free_port() -> int:
    """Return a port of this machine that no server listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def running_server(
    command: list[str], port: int, root: Path, folder: Path, prefix: str = "", **settings: str
) -> Iterator[str]:
    """Start a server of a data root in a folder, yield its address once it answers, and stop it at the end."""
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
