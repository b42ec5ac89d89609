"""Models and tokenizers: a checkpoint behind one facade, ids in, numpy out."""
