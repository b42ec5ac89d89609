"""Data parallelism: each batch is divided among all devices of one host or several.

A batch, its order and its masks remain functions of (seed, step), and each device takes its rows. Losses are divided by
the counts of the whole batch, and gradients are summed before they are clipped, so that losses are the same as on one
device, up to rounding. Every host runs the same loop; only the output of the first host is kept.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import keras

from embryo_core.errors import ConfigError
from embryo_core.types import Run
from pretrain.config import Config
from pretrain.masking import Batch
from pretrain.model import PretrainingModel, targets
from pretrain.state import latest_state


class Devices:
    """A single device, and the base class for several."""

    count = 1  # devices of all hosts together
    hosts = 1
    is_first_host = True

    def scope(self) -> AbstractContextManager:
        """Return the context in which a model must be built."""
        return nullcontext()

    def measuring(self) -> AbstractContextManager:
        """Return the context for measurements, in which a batch is not divided."""
        return nullcontext()

    def update(self, model: PretrainingModel, batch: Batch, loss_weights: dict[str, float]) -> dict[str, float]:
        """Update the model on a batch; return loss, accuracy and n of every objective, computed before the update."""
        return model.train(batch, loss_weights)

    def barrier(self) -> None:
        """Wait until every host has reached this call."""

    def check(self, config: Config) -> None:
        """Raise ConfigError if a batch cannot be divided evenly, or if the clock would end the hosts' runs."""
        if config.minutes and self.hosts > 1:
            raise ConfigError("Hosts have clocks of their own: train on several hosts with --steps, without minutes.")
        for name in ("batch_size", "short_batch_size") if config.short_steps else ("batch_size",):
            if getattr(config, name) % self.count:
                raise ConfigError(
                    f"{name} {getattr(config, name)} cannot be divided among {self.count} devices; "
                    f"change it with --set {name}=N."
                )

    @contextmanager
    def first_alone(self) -> Iterator[None]:
        """Run the block on the first host, then on the other hosts, which find its output."""
        if not self.is_first_host:
            self.barrier()
        yield
        if self.is_first_host:
            self.barrier()

    @contextmanager
    def own_copy(self, run: Run) -> Iterator[Run]:
        """Yield the run that this host writes: the run itself on the first host, else a temporary copy of its state."""
        if self.is_first_host:
            yield run
            return
        with tempfile.TemporaryDirectory() as folder:
            copy = replace(run, path=Path(folder) / run.name)
            sources = [run.path / "checkpoints" / f"step{run.origin.step}"] if run.origin else []
            for source in (*sources, *filter(None, [latest_state(run.path)])):
                target = copy.path / source.relative_to(run.path)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
            yield copy


ONE_DEVICE = Devices()


class JaxDevices(Devices):
    """Several devices of JAX: variables are replicated, batches are divided, and XLA sums the gradients."""

    def __init__(self) -> None:
        self.distribution = keras.distribution.DataParallel(devices=keras.distribution.list_devices())
        keras.distribution.set_distribution(self.distribution)
        import jax

        self.count, self.hosts, self.host = jax.device_count(), jax.process_count(), jax.process_index()
        self.is_first_host = self.host == 0

    @contextmanager
    def measuring(self) -> Iterator[None]:
        keras.distribution.set_distribution(None)
        try:
            yield
        finally:
            keras.distribution.set_distribution(self.distribution)

    def update(self, model: PretrainingModel, batch: Batch, loss_weights: dict[str, float]) -> dict[str, float]:
        return model.train(part_of(batch, self.host, self.hosts), loss_weights)

    def barrier(self) -> None:
        from jax.experimental import multihost_utils

        multihost_utils.sync_global_devices("embryo")


class TensorFlowReplicas(Devices):
    """Several devices of TensorFlow, each with a replica of the model (tf.distribute), without XLA."""

    def __init__(self, strategy: Any, is_first_host: bool, hosts: int = 1) -> None:
        self.strategy, self.is_first_host, self.hosts = strategy, is_first_host, hosts
        self.count = strategy.num_replicas_in_sync
        self._updates: dict[PretrainingModel, Any] = {}  # compiled update of each model

    def scope(self) -> AbstractContextManager:
        return self.strategy.scope()

    def update(self, model: PretrainingModel, batch: Batch, loss_weights: dict[str, float]) -> dict[str, float]:
        import tensorflow as tf

        def of_replica(context: Any) -> Any:
            replica_batch = part_of(batch, context.replica_id_in_sync_group, self.count)
            arrays = replica_batch.inputs(), targets(replica_batch, loss_weights)
            return tf.nest.map_structure(tf.convert_to_tensor, arrays)

        if model not in self._updates:
            self._updates[model] = tf.function(lambda x, y: self._update(model, x, y))
        outcomes = self._updates[model](*self.strategy.experimental_distribute_values_from_function(of_replica))
        return {name: float(value) for name, value in outcomes.items()}

    def _update(self, model: PretrainingModel, x: Any, y: Any) -> dict[str, Any]:
        """Sum the gradients of every replica, update the variables, and return the means over the whole batch."""
        gradients, sums = self.strategy.run(_of_replica, args=(model, x, y))
        gradients, sums = (
            {name: self.strategy.reduce("SUM", value, axis=None) for name, value in values.items()}
            for values in (gradients, sums)
        )
        variables = model.trainable_variables
        model.optimizer.apply([*gradients.values()], [variables[i] for i in gradients])
        mean_outcomes = {}
        for name in model.objectives:
            n = sums[f"{name}_n"]
            mean_outcomes[f"{name}_n"] = n
            for quantity in ("loss", "accuracy"):
                mean_outcomes[f"{name}_{quantity}"] = sums[f"{name}_{quantity}"] / keras.ops.maximum(n, 1.0)
        return mean_outcomes

    def barrier(self) -> None:
        import tensorflow as tf

        reduce_ones = tf.function(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.ones(())))
        self.strategy.run(reduce_ones)


def _of_replica(model: PretrainingModel, x: Any, y: Any) -> tuple[dict[int, Any], dict[str, Any]]:
    """Compute a replica's share of the gradients, by index of the variable, and of the sums over predictions."""
    import tensorflow as tf

    loss: Any = 0.0
    sums: dict[str, Any] = {}
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        for name, objective in model.objectives.items():
            outcome = objective(logits[name], y)
            total = keras.ops.sum(outcome.losses * outcome.weights)
            n = tf.distribute.get_replica_context().all_reduce("SUM", outcome.count)
            loss += keras.ops.mean(y[f"{name}_weight"]) * total / keras.ops.maximum(n, 1.0)
            correct = keras.ops.sum(outcome.correct * outcome.weights)
            sums |= {f"{name}_loss": total, f"{name}_accuracy": correct, f"{name}_n": outcome.count}
    gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
    dense = {i: tf.convert_to_tensor(gradient) for i, gradient in enumerate(gradients) if gradient is not None}
    return dense, sums


def part_of(batch: Batch, index: int, count: int) -> Batch:
    """Divide the rows of a batch into `count` equal parts; return part `index`."""
    size = len(batch.ids) // count
    rows = slice(index * size, (index + 1) * size)
    return replace(batch, **{field.name: getattr(batch, field.name)[rows] for field in fields(batch)})


def find_devices(several_hosts: bool = False) -> Devices:
    """Find the devices of Keras's backend that a run can use: GPUs or TPU cores if there are any, else the CPU.

    With `several_hosts` (JAX) or TF_CONFIG (TensorFlow), all processes of the job connect here, and their devices are
    used together. Keras on torch uses one device. Raises ConfigError for `several_hosts` on a backend other than JAX.
    """
    backend = keras.backend.backend()
    if several_hosts and backend != "jax":
        raise ConfigError(f"--several-hosts is for JAX, and KERAS_BACKEND is {backend}; TensorFlow reads TF_CONFIG.")
    if backend == "jax":
        if several_hosts:
            keras.distribution.initialize()
        import jax

        return JaxDevices() if jax.device_count() > 1 else ONE_DEVICE
    return _tensorflow_devices() if backend == "tensorflow" else ONE_DEVICE


def _tensorflow_devices() -> Devices:
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    hosts = resolver.cluster_spec().as_dict() if resolver.task_type else {}
    if (count := sum(map(len, hosts.values()))) > 1:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        first_type = "chief" if "chief" in hosts else "worker"
        return TensorFlowReplicas(strategy, (resolver.task_type, resolver.task_id) == (first_type, 0), count)
    devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    return TensorFlowReplicas(tf.distribute.MirroredStrategy(devices), True) if len(devices) > 1 else ONE_DEVICE
