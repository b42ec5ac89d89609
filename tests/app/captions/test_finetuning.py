"""Captions of the Finetuning page: how models were tuned is said as far as it is known."""

import pandas as pd

from app.captions import finetuning as captions


def test_what_nobody_noted_is_unknown() -> None:
    """The notes of a stranger's results may lack the protocol."""
    frame = pd.DataFrame({"task": ["rte"], "metric": ["accuracy"], "n": [4], "seeds": [1]})
    assert "(protocol quick)" in captions.scores(frame, {"finetuning:rte:1": {"protocol": "quick"}})
    assert "(protocol unknown)" in captions.scores(frame, {"finetuning:rte:1": {}})
