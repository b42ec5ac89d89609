"""Fixtures for tests of sources: a tiny byte-level RoBERTa in a Trainer's folder, and a Hub server on this machine."""

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
PADDED = 640  # rows of the vocabulary, padded beyond the tokenizer's size


@pytest.fixture(scope="session")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a byte-level BPE tokenizer like RoBERTa's, trained on the sample text."""
    return write_byte_level(tmp_path_factory.mktemp("byte-level"))


def write_byte_level(folder: Path) -> Path:
    """Train a byte-level BPE tokenizer on the sample text, save it in a folder, and return the folder."""
    folder.mkdir(exist_ok=True)
    trained = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained.train([str(SAMPLE / "text.txt")], vocab_size=600, special_tokens=special, show_progress=False)
    trained.save_model(str(folder))
    RobertaTokenizer.from_pretrained(str(folder)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def trainer_folder(byte_level: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Trainer's folder with checkpoint-0, -10 and -20 of a two-layer RoBERTa with random weights."""
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
    """Return a two-layer RoBERTa with random weights, seeded by the step."""
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
    model.lm_head.bias.data[-5:] = 100.0  # padding rows without a token, which would win if they were read
    return model.eval()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty data root; user settings are in a temporary folder, too."""
    monkeypatch.setenv("EMBRYO_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    return tmp_path / "data"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """Return an empty Hub server that replaces the real Hub; the local cache is empty and no proxy is used."""
    server = HubServer()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "ENDPOINT", server.address)
    form = server.address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", form)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(hub_cache, "sleep", server.waited.append)
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", server.waited.append)  # the wait before a retry
    monkeypatch.setattr(hub_cache, "_unreached", (float("-inf"), ""))
    close_session()  # drop the client that still uses the earlier proxies
    yield server
    close_session()
    server.shutdown()
    server.server_close()


class Noise(Dataset):
    """Eight sequences of token ids, which are also their labels."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        ids = torch.arange(10, 22) + index
        return {"input_ids": ids, "labels": ids}


def train(folder: Path, steps: int, resume: bool = False) -> None:
    """Train the model with transformers' Trainer up to a step, saving a checkpoint every two steps."""
    settings = {"save_steps": 2, "logging_steps": 1, "eval_steps": 2, "eval_strategy": "steps", "report_to": []}
    arguments = TrainingArguments(str(folder), max_steps=steps, use_cpu=True, disable_tqdm=True, **settings)
    trainer = Trainer(model_of(0), arguments, train_dataset=Noise(), eval_dataset=Noise())
    trainer.train(resume_from_checkpoint=resume)
