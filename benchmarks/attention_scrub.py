"""Measure the frames per second of the Attention page while the user scrubs: 24 checkpoints, 72 heads, 64 positions.

    python benchmarks/attention_scrub.py [--chromium PATH]

Writes a run of synthetic maps to a temporary folder, opens the page in headless Chromium, and moves the step at every
animation frame. Every frame should show the requested step, in the large map and in all small multiples, without a
request to the server. The best possible result is 60 frames per second, at which the browser draws.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
from playwright.sync_api import sync_playwright

from embryo_core import results, runs
from embryo_core.measurements import AttentionMap, Findings
from embryo_core.types import Run

REPOSITORY = Path(__file__).resolve().parents[1]
STEPS = (0, *(2**k for k in range(11)), *range(2000, 26000, 2000))  # 24 steps
LAYERS, HEADS, LENGTH = 12, 6, 64  # layers of the model, heads of a layer, positions of a map
DURATION_S = 5  # duration of the measurement
PAGE_TIMEOUT_MS = 120_000  # milliseconds that the page may take to open

# dispatches a step at every animation frame, and counts the frames that show another one
SCRUB_SCRIPT = """async ([steps, seconds]) => {
  const shown = () => [".history", ".grid"].map((name) => {
    for (const host of document.querySelectorAll("*")) {
      const found = host.shadowRoot?.querySelector(name);
      if (found) return Number(found.dataset.step);
    }
  });
  const frame = () => new Promise(requestAnimationFrame);
  let [frames, late] = [0, 0];
  const gaps = [];
  await frame();
  const start = performance.now();
  let before = start;
  while (before - start < seconds * 1000) {
    const step = steps[frames % steps.length];
    window.dispatchEvent(new CustomEvent("embryo:step", { detail: { step } }));
    await frame();
    if (shown().some((there) => there !== step)) late++;
    const now = performance.now();
    gaps.push(now - before);
    before = now;
    frames++;
  }
  gaps.sort((a, b) => a - b);
  return { fps: frames / ((before - start) / 1000), late, frames, slowest: gaps[Math.floor(0.99 * gaps.length)] };
}"""


def write_run(root: Path) -> Run:
    """Write and return a run with maps at every step and no weights; heads sharpen from uniform maps to diagonals."""
    run = Run("scrub", root / "runs" / "scrub", "albert", "none", {}, "0" * 64, {}, STEPS, "benchmark")
    runs.write_run(run)
    distance = np.subtract.outer(np.arange(LENGTH), np.arange(LENGTH))
    for number, step in enumerate(STEPS):
        folder = run.path / "checkpoints" / f"step{step}"
        folder.mkdir(parents=True)
        runs.write_manifest(folder, step, sequences=step, tokens=step)
        maps = []
        for index in range(LAYERS * HEADS):
            scores = np.exp(-number * np.abs(distance - index % 7 + 3) / (8 + index))
            weights = (scores / scores.sum(axis=1, keepdims=True)).astype(np.float32)
            maps.append(AttentionMap(index // HEADS + 1, index % HEADS + 1, weights, 1000))
        results.write(runs.checkpoint(run, step), "attention", Findings(attention=maps))
    results.compact(run)
    return run


def serve(root: Path) -> tuple[subprocess.Popen, str]:
    """Start the dashboard on a free port, wait until it answers, and return its process and address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app/main.py", "--server.headless=true"]
    command += [f"--server.port={port}", "--server.address=127.0.0.1", "--browser.gatherUsageStats=false"]
    environment = {**os.environ, "EMBRYO_DATA": str(root)}
    server = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    for _ in range(100):
        try:
            urlopen(f"{address}/_stcore/health", timeout=1)
            return server, address
        except (URLError, ConnectionError):
            time.sleep(0.2)
    server.kill()
    raise SystemExit("The dashboard did not start within 20 s.")


def main() -> None:
    """Print frames per second, late frames and the number of messages to the server."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chromium", help="the browser to use (default: playwright's own)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_run(Path(folder))
        server, address = serve(Path(folder))
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=arguments.chromium, args=["--no-sandbox"])
                page = browser.new_page(viewport={"width": 1400, "height": 900})
                page.set_default_timeout(PAGE_TIMEOUT_MS)
                messages: list[str | bytes] = []
                page.on("websocket", lambda socket: socket.on("framesent", lambda frame: messages.append(frame)))
                page.goto(f"{address}/attention")
                page.locator("canvas.cells").wait_for()
                page.wait_for_timeout(2000)
                messages.clear()
                result = page.evaluate(SCRUB_SCRIPT, [list(STEPS), DURATION_S])
                browser.close()
        finally:
            server.kill()
            server.wait()
    print(
        f"{len(STEPS)} checkpoints x {LAYERS * HEADS} heads of {LENGTH} positions: {result['fps']:.0f} frames/s, "
        f"99 % of frames within {result['slowest']:.0f} ms; {result['late']} of {result['frames']} showed "
        f"another step; {len(messages)} messages to the server"
    )


if __name__ == "__main__":
    main()
