"""Models: load a checkpoint behind one facade, token ids in, numpy arrays out."""
