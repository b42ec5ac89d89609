"""Tests that several threads may parse files right after the first import."""

import subprocess
import sys

from embryo_core.types import Run

AT_ONCE = """
import sys, threading
from pathlib import Path
from embryo_core import runs
from embryo_core.runs import layout
from embryo_core.tokenizers.tokenizer import load_tokenizer

path, barrier, read = Path(sys.argv[1]), threading.Barrier(8), []

def visit():
    barrier.wait()
    run = layout.read_run(path)
    read.append((load_tokenizer(run).vocabulary_size, [(step.step, step.tokens) for step in runs.checkpoints(run)]))

sys.setswitchinterval(1e-6)
visitors = [threading.Thread(target=visit) for _ in range(8)]
for visitor in visitors:
    visitor.start()
for visitor in visitors:
    visitor.join()
print(len(read), len({str(run) for run in read}))
"""


def test_several_threads_may_read_first(tiny_run: Run):
    """Eight threads read a run at once in a new process; all get the same result, and the process exits normally."""
    done = subprocess.run([sys.executable, "-c", AT_ONCE, tiny_run.path], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "8 1\n"), done.stderr
