"""A tiny RoBERTa with a byte-level vocabulary as a Trainer's folder, written by transformers and tokenizers alone."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from huggingface_hub import close_session, constants
from tokenizers import ByteLevelBPETokenizer
from torch.utils.data import Dataset
from transformers import (
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaTokenizer,
    Trainer,
    TrainingArguments,
)

from embryo_core.engine import hub_cache
from tests.conftest import SAMPLE
from tests.embryo_core.sources.hub_server import HubServer

STEPS = (0, 10, 20)
PADDED = 640  # rows of the vocabulary, more than the tokenizer has


@pytest.fixture(scope="session")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a byte-level BPE tokenizer as RoBERTa has, trained on the sample."""
    return write_byte_level(tmp_path_factory.mktemp("byte-level"))


def write_byte_level(folder: Path) -> Path:
    """Train that tokenizer into a folder, which is returned."""
    folder.mkdir(exist_ok=True)
    trained = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained.train([str(SAMPLE / "text.txt")], vocab_size=600, special_tokens=special, show_progress=False)
    trained.save_model(str(folder))
    RobertaTokenizer.from_pretrained(str(folder)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def trainer_folder(byte_level: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """checkpoint-0, -10 and -20 of a RoBERTa of random weights, two layers deep, as a Trainer leaves them."""
    folder = tmp_path_factory.mktemp("trainer")
    for step in STEPS:
        checkpoint = folder / f"checkpoint-{step}"
        model_of(step).save_pretrained(checkpoint)
        PreTrainedTokenizerFast.from_pretrained(byte_level).save_pretrained(checkpoint)
        logged = [{"step": s, "loss": 6.0 - s / 10, "learning_rate": 1e-3, "epoch": 0.1} for s in range(5, step + 1, 5)]
        logged += [{"step": s, "eval_loss": 5.5 - s / 10, "eval_runtime": 0.1} for s in STEPS if s <= step]
        state = {"global_step": step, "max_steps": 20, "num_input_tokens_seen": 512 * step, "log_history": logged}
        (checkpoint / "trainer_state.json").write_text(json.dumps(state))
    return folder


def model_of(step: int) -> RobertaForMaskedLM:
    """Return the model at one step, of random weights."""
    torch.manual_seed(step)
    config = RobertaConfig(
        vocab_size=PADDED,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=90,
        initializer_range=0.3,
        type_vocab_size=1,
    )
    model = RobertaForMaskedLM(config)
    model.lm_head.bias.data[-5:] = 100.0  # rows of no piece, which would win if they were read
    return model.eval()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a data root and settings of the test's own."""
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    return tmp_path / "data"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """Return a Hub with nothing on it in place of the real one, and an empty cache; no proxy comes between."""
    server = HubServer()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "ENDPOINT", server.address)
    form = server.address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", form)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub_cache, "sleep", server.waited.append)
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", server.waited.append)  # before it tries again
    monkeypatch.setattr(hub_cache, "_unreached", (float("-inf"), ""))
    close_session()  # whose client has the proxies of before
    yield server
    close_session()
    server.shutdown()
    server.server_close()


class Noise(Dataset):
    """Eight sequences of ids, each its own labels."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        ids = torch.arange(10, 22) + index
        return {"input_ids": ids, "labels": ids}


def train(folder: Path, steps: int, resume: bool = False) -> None:
    """Let transformers' Trainer train the model to a step, with a checkpoint every two."""
    settings = {"save_steps": 2, "logging_steps": 1, "eval_steps": 2, "eval_strategy": "steps", "report_to": []}
    arguments = TrainingArguments(str(folder), max_steps=steps, use_cpu=True, disable_tqdm=True, **settings)
    trainer = Trainer(model_of(0), arguments, train_dataset=Noise(), eval_dataset=Noise())
    trainer.train(resume_from_checkpoint=resume)
