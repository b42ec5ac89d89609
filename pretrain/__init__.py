"""Pretraining of language models in Keras 3 on TensorFlow, JAX or torch: text in, checkpoints out."""
