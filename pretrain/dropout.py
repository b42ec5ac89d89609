"""Dropout whose pattern is a function of (seed, step, replica): Keras's own gives all replicas the same one."""

import random

import keras

LARGEST = 1_000_000_000  # seed of a layer's first draw
STRIDE = 1_000_003  # between the seeds of two replicas


class Seeds(keras.random.SeedGenerator):
    """Keras's seeds for the first replica of TensorFlow and all other backends; another replica's are apart from them.

    What a run saves of them counts the draws, so it is the same on any number of replicas. Their own seed is given, as
    Keras on torch counts no draw of a generator without one, which could not be resumed.
    """

    def __init__(self):
        super().__init__(seed=random.randint(1, LARGEST))  # as Keras draws one where none is given

    def next(self, ordered: bool = True):
        """The seed of the next draw: integers [2]."""
        seed = super().next(ordered)
        if keras.backend.backend() != "tensorflow":
            return seed
        import tensorflow as tf

        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        return seed + tf.stack([tf.cast(replica, seed.dtype) * STRIDE, tf.zeros((), seed.dtype)])


class Dropout(keras.layers.Layer):
    """In training, sets a share `rate` of the numbers to 0 and divides the others by 1 - rate."""

    def __init__(self, rate: float, **options):
        super().__init__(**options)
        self.rate = rate
        if rate:
            self.seeds = Seeds()

    def call(self, x, training=False):
        """x itself where the model is not being trained or the rate is 0, which draws nothing."""
        return keras.random.dropout(x, self.rate, seed=self.seeds) if training and self.rate else x
