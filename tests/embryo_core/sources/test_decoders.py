"""Tests of decoders added with their tokenizers, which have no mask and often no special tokens around a text."""

import numpy as np
import pytest
from transformers import AutoTokenizer

from embryo_core import runs
from embryo_core.engine.model import load
from embryo_core.errors import BrokenRun
from embryo_core.sources.add import add
from embryo_core.tokenizers.conversion import convert_tokenizer
from tests import decoders
from tests.decoders import END

TEXT = "The river runs to the sea ."


@pytest.mark.parametrize(("family", "begin"), [("gpt2", False), ("gpt_neox", False), ("llama", True)])
def test_decoder_series_is_added_with_log_and_tokenizer(root, tmp_path, family, begin):
    """Ids equal those of transformers, for running text and for separate words."""
    source = decoders.write_series(tmp_path / "series", family, (5, 10), begin)
    run = add([str(source)], "causal").run
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 40}
    assert sizes.items() <= run.config.items()
    assert run.config["intermediate_size"] == (128 if family == "gpt2" else 48)
    assert run.family == family and [checkpoint.step for checkpoint in runs.checkpoints(run)] == [5, 10]
    assert [row["step"] for row in runs.read_log(run)] == [5, 10]
    model = load(runs.checkpoints(run)[-1])
    own, theirs = model.tokenizer, AutoTokenizer.from_pretrained(source / "checkpoint-10")
    assert own.encode_text(TEXT).tolist() == own.encode_start(TEXT).tolist() == theirs(TEXT).input_ids
    assert own.encode_words(TEXT.split()).ids.tolist() == theirs(TEXT, add_special_tokens=False).input_ids
    assert (own.mask_id, own.sep_id, own.pad_id) == (None, None, None)
    assert own.cls_id == (own.encode_text(END)[-1] if begin else None)
    assert own.encode_text("a [MASK]")[-1] != own.cls_id
    assert own.frame(1).ids[0].tolist() == own.begin.tolist() and not len(own.frame(2).ids[-1])
    np.testing.assert_array_equal(own.surround(own.encode_words(["a"]).ids), theirs("a").input_ids)


def test_encoder_tokenizer_requires_mask_token(tmp_path):
    """The same tokenizer is accepted for a decoder and refused for an encoder."""
    decoders.write_tokenizer(tmp_path)
    assert convert_tokenizer(tmp_path, decoder=True)[1].mask is None
    with pytest.raises(BrokenRun, match="has no mask token"):
        convert_tokenizer(tmp_path)
