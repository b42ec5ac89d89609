"""Download of public evaluation data: UD English EWT (Section 3) and LAMA (Section 6)."""

import re
import tarfile
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

import pooch

from embryo_core.corpora import read_lama
from embryo_core.errors import CorpusError

# UD release of 2025-05-10, and the hashes of its files at that commit. The hash of train was computed by joining the
# release's documents in the order of its split list, which reproduces dev and test byte for byte. Test comes first
# because `evaluate` uses it.
TREEBANK_URL = (
    "https://raw.githubusercontent.com/UniversalDependencies/UD_English-EWT/15d613d8447b3478787d4c278730a1e48a945efb"
)
TREEBANK_FILES = {
    "en_ewt-ud-test.conllu": "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd",
    "en_ewt-ud-dev.conllu": "531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6",
    "en_ewt-ud-train.conllu": "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b",
}

# LAMA as its authors publish it, with negated templates that are not read. The checksum is from the data set "lama" in
# Hugging Face's datasets 2. The content is checked too: each relation of the paper's Table 8 must have at least the
# paper's number of facts, since the paper left out facts and added none.
LAMA_URL = "https://dl.fbaipublicfiles.com/LAMA/negated_data.tar.gz"
LAMA_SHA256 = "1a151058e6608e47983ea4c99c50bb69248c1c0763a04a3793b0a0b657aa0b61"
LAMA_MAX_BYTES = 2**30  # bytes of the unpacked files
LAMA_FILES = re.compile(r"(?:.*/)?(relations\.jsonl|TREx/(P\d+)\.jsonl)")
LAMA_FACTS = {  # relation -> number of facts in the paper's Table 8
    "P17": 930, "P19": 942, "P20": 952, "P30": 975, "P36": 699, "P37": 952, "P103": 975, "P127": 683, "P131": 880,
    "P136": 931, "P138": 621, "P140": 471, "P159": 964, "P176": 946, "P264": 312, "P276": 954, "P279": 958,
    "P361": 861, "P364": 852, "P407": 870, "P413": 952, "P449": 874, "P495": 909, "P740": 934, "P1376": 230,
}  # fmt: skip


def fetch_treebank(folder: Path) -> list[Path]:
    """Download the files of the treebank that are not in `folder`; return all of them. Raises CorpusError."""
    return [
        _download(f"{TREEBANK_URL}/{name}", folder / name, f"sha256:{sha256}", f"put it at {folder / name}")
        for name, sha256 in TREEBANK_FILES.items()
    ]


def fetch_lama(folder: Path) -> Path:
    """Download LAMA's relations.jsonl and the TREx/ files of the paper's 25 relations into `folder`; return it.

    They are unpacked and checked in a temporary folder and then moved. An existing `folder` is only checked. Raises
    CorpusError.
    """
    by_hand = f"unpack its relations.jsonl and TREx/ into {folder}"
    if folder.exists():
        _check_lama(folder, f"What is in {folder}", f"move it away and fetch again, or {by_hand}")
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent) as temporary:
        archive = _download(LAMA_URL, Path(temporary) / "lama.tar.gz", f"sha256:{LAMA_SHA256}", by_hand)
        unpacked = Path(temporary) / "lama"
        try:
            _unpack_lama(archive, unpacked)
        except (tarfile.TarError, zlib.error, EOFError, OSError) as reason:
            message = f"What {LAMA_URL} sent cannot be unpacked ({reason}); fetch it again, or {by_hand}."
            raise CorpusError(message) from None
        _check_lama(unpacked, f"What {LAMA_URL} sent", f"get LAMA elsewhere and {by_hand}")
        unpacked.rename(folder)
    return folder


def _unpack_lama(archive: Path, into: Path) -> None:
    """Unpack the needed files, from any folder of the archive; links are skipped."""
    (into / "TREx").mkdir(parents=True)
    left = LAMA_MAX_BYTES
    with tarfile.open(archive, "r:gz") as content:
        for member in content:
            name = LAMA_FILES.fullmatch(member.name)
            if not (name and member.isreg() and name[2] in (None, *LAMA_FACTS)):
                continue
            left -= member.size
            if left < 0:
                raise tarfile.TarError(f"it has more than {LAMA_MAX_BYTES:,} bytes of facts")
            if source := content.extractfile(member):
                with source:
                    (into / name[1]).write_bytes(source.read())


def _check_lama(folder: Path, named: str, then: str) -> None:
    """Raise CorpusError unless a folder is a LAMA folder with at least the numbers of facts in LAMA_FACTS."""
    try:
        read_lama(folder)
    except CorpusError as reason:
        raise CorpusError(f"{named} is not LAMA ({str(reason).rstrip('.')}); {then}.") from None
    short = []
    for relation, minimum in LAMA_FACTS.items():
        file = folder / "TREx" / f"{relation}.jsonl"
        facts = len(file.read_text(encoding="utf-8").splitlines()) if file.is_file() else 0
        if facts < minimum:
            short.append(f"{relation} has {facts} facts of {minimum}")
    if short:
        raise CorpusError(f"{named} is not LAMA as in the paper's Table 8 ({', '.join(short)}); {then}.")


def _download(url: str, path: Path, checksum: str | None, by_hand: str) -> Path:
    """Download one file under a temporary name, verify and rename it; keep a correct existing file."""
    pooch.get_logger().setLevel("WARNING")
    loader = pooch.HTTPDownloader(progressbar=True, timeout=30)
    try:
        pooch.retrieve(url, checksum, path.name, path.parent, downloader=loader)
    except OSError as reason:  # from the connection, the server or the disk
        response = getattr(reason, "response", None)
        message = type(reason).__name__ if response is None else f"the server answered {response.status_code}"
    except ValueError:
        message = "the downloaded file has another checksum"
    else:
        return path
    raise CorpusError(f"{url} could not be fetched ({message}); try again, or download it by hand and {by_hand}.")
