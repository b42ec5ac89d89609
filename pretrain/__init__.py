"""Text in, checkpoints out: pretraining of language models in Keras 3 on TensorFlow, JAX or torch."""
