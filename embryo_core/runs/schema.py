"""The schema of each file of a run: names, types, ranges and depths that msgspec checks while parsing.

Unknown names are ignored, since files of later versions and of transformers have more of them.
"""

from hashlib import sha256
from pathlib import PurePosixPath
from typing import Annotated

from msgspec import Meta, Raw, Struct, convert

from embryo_core.runs.value_types import (
    AnyFileName,
    Commit,
    Configured,
    Count,
    FileName,
    Label,
    Nested5,
    Number,
    Repository,
    RepositoryFile,
    Sha256,
    Share,
    Text,
    Word,
    resolve,
)
from embryo_core.types import Pointer, StepUnit

MB = 2**20
LIMITS = {  # name of a file -> largest number of bytes
    "run.json": 4 * MB,
    "manifest.json": 1 * MB,
    "audit.json": 8 * MB,
    "config.json": 1 * MB,
    "sources.json": 4 * MB,
    "log.jsonl": 64 * MB,
    "frequencies.tsv": 64 * MB,
    "tokenizer.json": 64 * MB,
    "trainer_state.json": 256 * MB,
}
OTHER_LIMIT = 64 * MB  # for files with other names
MAX_STEPS = 2**17  # planned steps of a run, and steps that an audit names
HEADER_LIMIT = 4 * MB  # bytes of the header of model.safetensors


# === run.json ===


class Settings(Struct, frozen=True):
    """The settings of a pretraining that Embryo uses; a run may have further ones, or lack some."""

    hidden_size: Count = 0
    num_hidden_layers: Count = 0
    num_attention_heads: Count = 0
    intermediate_size: Count = 0
    embedding_size: Count = 0
    max_position_embeddings: Count = 0
    vocab_size: Count = 0
    masked_share: Share = 0.0
    masked_share_end: Share | None = None
    generator_size: Share | None = None  # ELECTRA's generator, as a share of hidden_size
    max_ngram: Count = 0
    steps: Count = 0
    warmup_steps: Count = 0
    constant_steps: Count = 0
    learning_rate: Number = 0.0
    weight_decay: Number = 0.0
    batch_size: Count = 0
    sequence_length: Count = 0
    short_steps: Count = 0
    short_batch_size: Count = 0
    short_sequence_length: Count = 0
    long_every: Count = 0
    seed: int | None = None
    share: Text | None = None
    num_hidden_groups: Count = 1
    hidden_dropout_prob: Share | None = None
    attention_probs_dropout_prob: Share | None = None

    def __post_init__(self) -> None:
        if self.short_steps and not (self.short_batch_size and self.short_sequence_length):
            raise ValueError("short_steps without short_batch_size and short_sequence_length")


class CorpusPart(Struct, frozen=True):
    """The size of the training text or the held-out text."""

    documents: Count = 0
    tokens: Count = 0


class SourceCard(Struct, frozen=True):
    """A file or data set of text; a file has the SHA-256 of its bytes."""

    name: Text
    sha256: Text | None = None


class CorpusCard(CorpusPart, frozen=True):
    """The text that a run was pretrained on."""

    train: CorpusPart = CorpusPart()
    heldout: CorpusPart = CorpusPart()
    sources: list[SourceCard | Text] = []
    heldout_sources: list[SourceCard | Text] = []
    counted_words: Count = 0  # words of the text behind frequencies.tsv, with the rare ones that it leaves out

    @property
    def trained_on(self) -> int:
        """Return the tokens of the training text, which earlier versions wrote without `train`."""
        return self.train.tokens or self.tokens


class ChangeCard(Struct, frozen=True):
    """A change in training in run.json (see `types.Change`): the step at which it begins, and what changed."""

    step: Count
    what: Label


class OriginCard(Struct, frozen=True):
    """A `types.Origin`: the checkpoint from which a continued run began."""

    run: Text
    step: Count
    sequences: Count
    tokens: Count
    weights_sha256: Sha256
    changes: Annotated[list[ChangeCard], Meta(max_length=100)] = []
    text_tokens: Count = 0


class TokensCard(Struct, frozen=True):
    """A `types.SpecialTokens`."""

    mask: Label | None
    cls: Label | None
    sep: Label | None
    pad: Label | None = None
    unk: Label | None = None


class RunCard(Struct, frozen=True):
    """run.json; its `name` is ignored, since a run is named after its folder."""

    family: Word
    objective: Text
    config: Nested5
    tokenizer_sha256: Sha256
    corpus: Nested5
    planned_steps: Annotated[tuple[Count, ...], Meta(max_length=MAX_STEPS)]
    code_version: Text
    note: Text = ""
    origin: OriginCard | None = None
    special_tokens: TokensCard | None = None
    counted_in: StepUnit = StepUnit.UPDATES  # `Run.step_unit`

    def __post_init__(self) -> None:
        convert(self.config, Settings)
        convert(self.corpus, CorpusCard)


# === Checkpoints ===


class PointerCard(Struct, frozen=True):
    """A `types.Pointer`, and the SHA-256 of its files."""

    file: Text
    sha256: Sha256
    repository: Repository = ""
    commit: Commit = ""
    parts: Annotated[dict[Text, Sha256], Meta(max_length=1000)] = {}

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the weights, or for several files the hash of their hashes."""
        hashes = [self.sha256, *self.parts.values()]
        return hashes[0] if len(hashes) == 1 else sha256("".join(hashes).encode()).hexdigest()

    @property
    def pointer(self) -> Pointer:
        """Return the pointer without hashes."""
        return Pointer(self.file, self.repository, self.commit, tuple(self.parts))

    def __post_init__(self) -> None:
        for file in (self.file, *self.parts):
            convert(PurePosixPath(file).name, AnyFileName)
        if bool(self.repository) != bool(self.commit):
            raise ValueError("a repository without a commit, or a commit without a repository")
        for file in (self.file, *self.parts) if self.repository else ():
            convert(file, RepositoryFile)


class Manifest(Struct, frozen=True):
    """manifest.json of a checkpoint: its step and counts, and the SHA-256 of each file.

    `removed` has the SHA-256 of files that were removed to save space, so that a copy can be recognised. `weights`
    points to weights outside the folder.
    """

    step: Count
    sequences: Count | None
    tokens: Count | None
    sha256: Annotated[dict[FileName, Sha256], Meta(max_length=256)]
    removed: Annotated[dict[FileName, Sha256], Meta(max_length=256)] = {}
    weights: PointerCard | None = None


class ModelClass(Struct, frozen=True):
    """The class of transformers that saved a checkpoint, according to its config.json."""

    model_type: Text = ""
    architectures: list[Text] | None = None
    is_decoder: bool = False  # for a family that also has encoders

    @property
    def name(self) -> str:
        """Return the name of the class, or "" if config.json has none."""
        return (self.architectures or [""])[0]


Configuration = dict[Text, Configured]  # a whole config.json, with bounded values, for transformers


class TensorHeader(Struct, frozen=True):
    """A tensor in the header of model.safetensors; its offsets are bytes after the header."""

    dtype: Word
    shape: Annotated[list[Count], Meta(max_length=8)]
    data_offsets: tuple[Count, Count]

    @property
    def nbytes(self) -> int:
        """Return the number of bytes between the offsets."""
        return self.data_offsets[1] - self.data_offsets[0]


Header = Annotated[dict[Text, Raw], Meta(max_length=100_000)]  # name -> TensorHeader, and "__metadata__"


class ShardIndex(Struct, frozen=True):
    """model.safetensors.index.json: the file of each tensor, for weights in several files."""

    weight_map: Annotated[dict[Text, FileName], Meta(min_length=1, max_length=100_000)]


# === Folders of transformers' Trainer ===


class TrainerState(Struct, frozen=True):
    """trainer_state.json: the counts of a Trainer (sources/trainer.py reads its log)."""

    global_step: Count = 0
    save_steps: Annotated[float, Meta(ge=0, le=1e15)] = 0
    num_input_tokens_seen: Count = 0
    best_model_checkpoint: Text | None = None


# === sources.json of the results ===


class DataRecord(Struct, frozen=True):
    """The part of the record of a metric's data that pages show; a metric may record more."""

    note: Text = ""
    templates: dict[Text, Text] = {}
    tasks: dict[Text, dict[Text, Count]] = {}


DataRecords = dict[Label, DataRecord]
Sources = Annotated[dict[Label, Annotated[dict[Text, Nested5], Meta(max_length=1000)]], Meta(max_length=1000)]


# === examples.json of the results ===


class BestAnswers(Struct, frozen=True):
    """The best answers to a question at one step with their probabilities, best first, without improbable ones."""

    step: Count
    words: Annotated[dict[Label, Share], Meta(max_length=10)]


class ExampleQuestion(Struct, frozen=True, omit_defaults=True):
    """A question that shows what a run has learned."""

    text: Text
    word: Label  # the word for the [MASK]
    since: Count | None = None  # the step from which the word stays on top; None if the run has not learned it
    answers: Annotated[list[BestAnswers], Meta(max_length=1000)] = []  # sorted by step; missing in older files


Examples = Annotated[list[ExampleQuestion], Meta(max_length=20)]  # limited, since the page draws a button for each


resolve(globals())
