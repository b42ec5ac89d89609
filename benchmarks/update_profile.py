"""Profile an update of each family: matrix products, and everything else.

TensorFlow's profiler times each kernel of the compiled update on one thread, and the program that XLA dumps names the
operation of each kernel; a kernel that fuses several operations counts as the last of them. Times are medians over
several updates. Prints a table in Markdown: the parts of a column add up to the time of all kernels, and its last rows
compare the speed with a plain matrix product. Usage: python -m benchmarks.update_profile
"""

import os
import re
import sys
import tempfile
from collections import defaultdict
from itertools import chain
from pathlib import Path
from statistics import median

UPDATE_COUNT = 9  # profiled updates of a family
PARTS = {  # part -> regular expression searched in an operation's name; the first match counts
    "optimizer and clipping": r"^(lamb|adam|muon)",
    "dropout and its random numbers": r"dropout|stateless_random|random_uniform",
    "GELU": r"Gelu|Erf",
    "softmax of attention, and scores masked": r"attention\w*/(Softmax|add|mul|Cast)",
    "layer normalisation": r"layer_norm",
    "logits' bias, losses, accuracies": r"predictions|next_token|LogSoftmax|log_softmax|ArgMax|Softplus|Segment|Cumsum",
    "transposed and copied": r"[Tt]ranspose|[Rr]eshape",
    "embeddings": r"embeddings|projection",
}
PRODUCTS, REST = "products of matrices", "rest"  # parts that no pattern of PARTS defines


def dumped_program(folder: str) -> dict[str, str]:
    """Return {instruction: operation} of the largest compiled program that XLA dumped into a folder."""
    program = max(Path(folder).glob("*cpu_after_optimizations.txt"), key=lambda path: path.stat().st_size)
    instructions = re.findall(r"^\s*(?:ROOT )?%(\S+) = .*?op_name=\"([^\"]*)\"", program.read_text(), re.MULTILINE)
    return dict(instructions)


def kernel_times(step) -> dict[str, float]:
    """Return the seconds of each event, kernels included, in an update: its median time, times its calls per update."""
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    with tempfile.TemporaryDirectory() as folder:
        options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=3)
        with tf.profiler.experimental.Profile(folder, options=options):
            for _ in range(UPDATE_COUNT):
                step()
        trace = xplane_pb2.XSpace.FromString(next(Path(folder).rglob("*.xplane.pb")).read_bytes())
    durations = defaultdict(list)
    for plane in trace.planes:
        for event in chain.from_iterable(line.events for line in plane.lines):  # of every thread
            durations[plane.event_metadata[event.metadata_id].name].append(event.duration_ps / 1e12)
    return {name: median(times) * len(times) / UPDATE_COUNT for name, times in durations.items()}


def part_of(kernel: str, operations: dict[str, str]) -> str:
    """Return the part of an update to which a kernel belongs: PRODUCTS, a key of PARTS, or REST."""
    if re.match(r"(MatMul|dot)", kernel):
        return PRODUCTS
    operation = operations.get(kernel, "")
    return next((part for part, pattern in PARTS.items() if re.search(pattern, operation)), REST)


def profile(name: str, size: int, length: int, dump: str) -> dict[str, str]:
    """Return a column of the table: the share of each part in the time of kernels, and speeds relative to a product."""
    from benchmarks import training

    config = training.configuration(name, size, length)
    batch_list = training.batches(config, size, length)
    step, product = training.keras_step(config, batch_list), training.matrix_product()
    step(), product()  # compiles
    operations = dumped_program(dump)
    update_seconds, product_seconds = (
        median(training.seconds_per_step(call, 1) for _ in range(UPDATE_COUNT)) for call in (step, product)
    )
    times: defaultdict[str, float] = defaultdict(float)
    for kernel, seconds in kernel_times(step).items():
        if kernel in operations:
            times[part_of(kernel, operations)] += seconds
    total, flops = sum(times.values()), training.update_flops(config, batch_list)
    fastest = 2 * training.MATRIX_SIZE**3 / product_seconds
    column = {part: f"{times[part] / total:.1%}" for part in (PRODUCTS, *PARTS, REST)}
    return column | {
        "kernels together, of the update's time": f"{total / update_seconds:.0%}",
        "products beside a plain one": f"{flops / times[PRODUCTS] / fastest:.0%}",
        "the update beside a plain product": f"{flops / update_seconds / fastest:.0%}",
    }


def main() -> None:
    """Print the table, a column for each family."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XLA_FLAGS"] = f"--xla_dump_to={folder} --xla_dump_hlo_as_text"
        sys.argv[1:] = ["1", "1"]  # one thread, read by benchmarks.training
        from benchmarks import training

        columns = {}
        for name, size, length in training.SHAPES[1:]:
            columns[f"{name}, {size} × {length}"] = profile(name, size, length, folder)
            for path in Path(folder).iterdir():
                path.unlink()
    print("| part | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
    for part in next(iter(columns.values())):
        print(f"| {part} | " + " | ".join(column[part] for column in columns.values()) + " |")


if __name__ == "__main__":
    main()
