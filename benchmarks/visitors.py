"""Simulate fifty visitors of a hosted demo, each with a new question every twenty seconds, and time the answers.

    python -m benchmarks.visitors [--sessions N] [--every SECONDS] [--minutes M] [--memory SIZE] [--abusers N]

A real server is started on the demo, and visitors use it like browsers, over Streamlit's WebSocket, without drawing. A
question is a new text on the Query page: its answers over the steps and at one step. It is answered when the page is
drawn completely; without an answer within a minute, or with an error, it is lost. First, one visitor's light questions
are timed alone, also with the lens open, and while another visitor asks heavy ones. The visitors use the same cores as
the server. Abusers open random pages with invalid parameters, send forged messages, and leave in the middle. Memory is
sampled to print its growth over the second half. Two hours of a demo:

    python -m benchmarks.visitors --sessions 30 --minutes 120 --abusers 3
"""

import argparse
import asyncio
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Self
from urllib.parse import urlencode

import numpy as np
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets import Subprotocol
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

REPOSITORY = Path(__file__).resolve().parents[1]
DEMO = REPOSITORY / "data" / "demo"
HEAVY_MASKS, HEAVY_WORDS = 8, 105  # masks and words of a heavy question
LOST_AFTER_S = 60  # seconds after which a question without an answer is lost
# how the server ends a page or a fragment
FINISHED_STATES = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)
SAMPLING_S = 5  # seconds between two samples of memory
# pages, parameters and values of abusers; some do not exist
PAGES = "overview findings tokens attention probing knowledge grammar finetuning query compare none".split()
PARAMETERS = "run step compare axis text word mask layer head pattern relation fact task metric smooth nonsense".split()
VALUES = ["", "0", "-1", "1e999", "all", "[MASK]", "../../etc", "\0", "x" * 5000, "[MASK] " * 60, "é" * 900, "1,2,3"]
WORDS = (
    "king queen city river house ship church school army garden village bridge market castle forest island letter "
    "doctor writer painter soldier farmer teacher player father mother brother sister son daughter old young new small "
    "great first last white black red"
).split()


class Visitor:
    """One browser session on the Query page, opened with a query string; an asynchronous context manager."""

    def __init__(self, port: int, query: str = ""):
        self.address = f"ws://127.0.0.1:{port}/_stcore/stream"
        self.query = query
        self.box = ""  # id of the text area
        self.page = ""  # hash of the page
        self.part = ""  # id of the fragment that is drawn again for a question
        self.answers = 0  # number of answers on the page when it was last drawn
        self.troubles: list[str] = []

    async def __aenter__(self) -> Self:
        how = {"subprotocols": [Subprotocol("streamlit")], "max_size": 2**26, "ping_timeout": LOST_AFTER_S}
        self.socket = await connect(self.address, **how)
        await self._send(None)
        await self._drawn()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.socket.close()

    async def ask(self, text: str, patience: float = LOST_AFTER_S) -> float:
        """Ask a text; return the seconds until its page is complete.

        Raises TimeoutError after `patience` seconds, and RuntimeError for an error or a page without an answer.
        """
        start = time.perf_counter()
        await self._send(text)
        async with asyncio.timeout(patience):
            await self._drawn()
        if self.troubles or not self.answers:
            raise RuntimeError("; ".join(self.troubles) or "no answer")
        return time.perf_counter() - start

    async def _send(self, text: str | None) -> None:
        """Send what a browser sends: a request for the page or, with a text, the changed text area."""
        message = BackMsg()
        state = message.rerun_script
        state.page_script_hash, state.page_name = self.page, "" if self.page else "query"
        state.query_string = self.query
        if text is not None:
            state.widget_states.widgets.add(id=self.box, string_value=text)
            state.fragment_id = self.part
        await self.socket.send(message.SerializeToString())

    async def _drawn(self) -> None:
        """Read the server's messages until the page is complete."""
        self.answers, self.troubles = 0, []
        while True:
            message = ForwardMsg.FromString(await self.socket.recv())
            kind = message.WhichOneof("type")
            if kind == "navigation":
                self.page = message.navigation.page_script_hash
            elif kind == "delta":
                self._notice(message.delta)
            elif kind == "script_finished" and message.script_finished in FINISHED_STATES:
                return

    def _notice(self, delta) -> None:
        """Record the text area, the number of answers, and messages of errors from a change of the page."""
        element = delta.new_element
        kind = element.WhichOneof("type")
        if kind == "text_area":
            self.box, self.part = element.text_area.id, delta.fragment_id
        elif kind == "metric":
            self.answers += element.metric.label == "Final answer"
        elif kind in ("exception", "alert"):
            part = getattr(element, kind)
            self.troubles.append(part.message if kind == "exception" else part.body)


def light(draw: random.Random) -> str:
    """Return a short text with one mask that has probably not been asked yet."""
    first, second, third = draw.sample(WORDS, 3)
    return f"the {first} and the {second} of the {third} were born in [MASK] ."


def heavy(draw: random.Random) -> str:
    """Return a text of 105 words, eight of them masked."""
    words = draw.choices(WORDS, k=HEAVY_WORDS)
    for i in range(HEAVY_MASKS):
        words[int((i + 0.5) * HEAVY_WORDS / HEAVY_MASKS)] = "[MASK]"
    return " ".join(words)


# === Measurements ===


async def crowd(port: int, process: int, options: argparse.Namespace) -> tuple[list[float], list[str], float]:
    """Return the seconds of every answer, the errors of lost questions, and the growth of memory (`sample_memory`)."""
    seconds: list[float] = []
    errors: list[str] = []
    sessions, interval = options.sessions, options.every
    end = time.perf_counter() + 60 * options.minutes

    async def visit(number: int) -> None:
        draw = random.Random(number)
        await asyncio.sleep(interval * number / sessions)
        async with Visitor(port) as visitor:
            while (begin := time.perf_counter()) < end:
                try:
                    seconds.append(await visitor.ask(light(draw)))
                except (TimeoutError, RuntimeError) as reason:
                    errors.append(repr(reason))
                await asyncio.sleep(max(0.0, begin + interval - time.perf_counter()))

    abusers = [abuse(port, number, end) for number in range(options.abusers)]
    growth, *_ = await asyncio.gather(sample_memory(process, end), *map(visit, range(sessions)), *abusers)
    return seconds, errors, growth


async def abuse(port: int, number: int, end: float) -> None:
    """Repeatedly open pages with invalid parameters, send forged messages and leave."""
    draw, runs = random.Random(f"abuse {number}"), [run.name for run in (DEMO / "runs").iterdir()]
    while time.perf_counter() < end:
        with suppress(ConnectionClosed, OSError, TimeoutError):
            visitor = Visitor(port)
            async with connect(visitor.address, subprotocols=[Subprotocol("streamlit")], max_size=2**26) as socket:
                visitor.socket = socket
                for _ in range(draw.randint(1, 4)):
                    await socket.send(_forge_message(draw, runs))
                    if draw.random() < 0.8:
                        async with asyncio.timeout(draw.choice([0.1, LOST_AFTER_S])):
                            await visitor._drawn()
        await asyncio.sleep(draw.random())


def _forge_message(draw: random.Random, runs: list[str]) -> bytes | str:
    """Return a message that no page sends: random bytes or text, or a rerun with wrong parameters and widgets."""
    if draw.random() < 0.1:
        return draw.choice([draw.randbytes(200), "text", BackMsg(clear_cache=True).SerializeToString()])
    state = BackMsg().rerun_script
    state.page_name = draw.choice(PAGES)
    chosen = {name: draw.choice(VALUES) for name in draw.sample(PARAMETERS, 3)} | {"run": draw.choice([*runs, "none"])}
    state.query_string = urlencode(chosen)
    for name in draw.sample(PARAMETERS, 3):
        identity = f"$$ID-{draw.randbytes(16).hex()}-{name}"
        value = draw.choice(VALUES)
        state.widget_states.widgets.add(id=identity, **draw.choice([{"string_value": value}, {"json_value": value}]))
    return BackMsg(rerun_script=state).SerializeToString()


async def time_alone(port: int, process: int, questions: int, query: str = "") -> tuple[float, float]:
    """Return the median seconds of light questions that are asked alone, and the core seconds of one."""
    draw = random.Random(f"alone {query}")
    async with Visitor(port, query) as visitor:
        await visitor.ask(light(draw))
        core_start = core_seconds(process)
        seconds = [await visitor.ask(light(draw)) for _ in range(questions)]
        return statistics.median(seconds), (core_seconds(process) - core_start) / questions


async def time_beside_heavy(port: int, questions: int) -> list[float]:
    """Return the seconds of light questions while another visitor asks heavy ones."""
    draw = random.Random(-1)
    async with Visitor(port) as visitor, asking_heavy_questions(port):
        return [await visitor.ask(light(draw)) for _ in range(questions)]


@asynccontextmanager
async def asking_heavy_questions(port: int) -> AsyncIterator[None]:
    """Let a visitor ask heavy questions within this context, one after the other; the last one stays unanswered."""

    async def ask() -> None:
        draw = random.Random(-2)
        async with Visitor(port) as visitor:
            while True:
                await visitor.ask(heavy(draw), patience=600)

    asking = asyncio.create_task(ask())
    await asyncio.sleep(1)
    yield
    assert not asking.done(), asking.exception()
    asking.cancel()
    await asyncio.wait([asking])


def memory(process: int, field_name: str = "VmHWM") -> float:
    """Return the peak memory of a process in MB or, with "VmRSS", its current memory."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    (size,) = re.findall(rf"{field_name}:\s*(\d+)", status)
    return int(size) / 1e3


def core_seconds(process: int) -> float:
    """Return the core seconds that a process has used so far, including system time."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def sample_memory(process: int, end: float) -> float:
    """Return the growth of a process's memory in MB per hour, in the second half of the time until `end`."""
    samples, half_time = [], (time.perf_counter() + end) / 2
    while (now := time.perf_counter()) < end:
        samples += [(now / 3600, memory(process, "VmRSS"))] if now > half_time else []
        await asyncio.sleep(SAMPLING_S)
    return float(np.polyfit(*zip(*samples), 1)[0])


@contextmanager
def serve(limit: str) -> Iterator[tuple[int, int]]:
    """Start a server on the demo by the Procfile's command, without a budget in effect; yield its port and process id.

    `limit` is the server's EMBRYO_MODEL_MEMORY.
    """
    with socket.socket() as free_socket:
        free_socket.bind(("127.0.0.1", 0))
        port = free_socket.getsockname()[1]
    line = (REPOSITORY / "Procfile").read_text(encoding="utf-8").removeprefix("web: ")
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PORT": str(port),
        "EMBRYO_DATA": str(DEMO),
        "EMBRYO_MODEL_MEMORY": limit,
        "EMBRYO_QUESTION_BUDGET": "1e9",
    }
    command = ["sh", "-c", f"exec env {line}"]
    server = subprocess.Popen(command, cwd=REPOSITORY, env=os.environ | environment, stdout=subprocess.DEVNULL)
    try:
        while server.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.1)
        yield port, server.pid
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    """Run all measurements and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--every", type=float, default=20, help="seconds between two questions of a session")
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--memory", default="150 MB", help="EMBRYO_MODEL_MEMORY of the server")
    parser.add_argument("--abusers", type=int, default=0, help="visitors that misuse every page at the same time")
    options = parser.parse_args()
    with serve(options.memory) as (port, process):
        seconds_alone, core_seconds = asyncio.run(time_alone(port, process, 20))
        with_lens = asyncio.run(time_alone(port, process, 20, "open=lens"))
        slowest = max(asyncio.run(time_beside_heavy(port, 20)))
        print(f"a light question {seconds_alone:.2f} s, {core_seconds:.3f} s of a core; with the lens open", end=" ")
        print("{:.2f} s, {:.3f} s of a core".format(*with_lens))
        print(f"during heavy ones at most {slowest:.2f} s, a delay of {slowest - seconds_alone:.2f} s", flush=True)
        seconds, errors, growth = asyncio.run(crowd(port, process, options))
        p50, p95 = statistics.quantiles(seconds, n=20)[9::9]
        print(f"{options.sessions} sessions, a question each every {options.every:g} s: {len(seconds)} answered")
        print(f"p50 {p50:.2f} s, p95 {p95:.2f} s, at most {max(seconds):.2f} s; {len(errors)} lost {set(errors) or ''}")
        print(f"the server held at most {memory(process):,.0f} MB, which grew by {growth:,.0f} MB an hour at the end")


if __name__ == "__main__":
    main()
