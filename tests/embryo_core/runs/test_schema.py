"""What files may hold is ready for use by several threads as soon as it is imported."""

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
print(len(read), len({str(found) for found in read}))
"""


def test_a_run_may_first_be_read_by_several_threads_at_once(tiny_run: Run):
    """Eight visitors of a server that has just started all see the same; the process goes on."""
    done = subprocess.run([sys.executable, "-c", AT_ONCE, tiny_run.path], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "8 1\n"), done.stderr
