"""Tests of downloads from a local server: files arrive whole and verified, or an error leaves nothing behind."""

import hashlib
import io
import json
import lzma
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from embryo_core import corpora
from embryo_core.commands.fetch import fetch
from embryo_core.corpora import fetch as addresses
from embryo_core.errors import CorpusError

SENTENCE = "1\tHens\then\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\tbrood\tbrood\tVERB\tVBP\t_\t0\troot\t_\t_\n\n"


class Server(ThreadingHTTPServer):
    """Serve `files` by path, record the requests, and cut off the responses of paths listed in `cut`."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.cut: set[str] = set()
        self.asked: list[str] = []
        self.address = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        content = self.server.files.get(self.path)
        if content is None:
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if self.path in self.server.cut else content)

    def log_message(self, *arguments):
        """Log nothing."""


@pytest.fixture
def server(monkeypatch):
    """Serve files in place of GitHub and of LAMA's own server, without a proxy."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    monkeypatch.setattr(addresses, "TREEBANK_URL", f"{server.address}/ewt")
    monkeypatch.setattr(addresses, "LAMA_URL", f"{server.address}/lama.tar.gz")
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def small_treebank(server, monkeypatch):
    """Serve small files in place of EWT's, and expect their checksums."""
    hashes = {}
    for i, name in enumerate(addresses.TREEBANK_FILES):
        server.files[f"/ewt/{name}"] = content = (SENTENCE * (i + 1)).encode()
        hashes[name] = hashlib.sha256(content).hexdigest()
    monkeypatch.setattr(addresses, "TREEBANK_FILES", hashes)


def lama_archive(folder: str = "data/", missing: int = 0, template: str = "[X] is in [Y] .") -> bytes:
    """Make an archive like LAMA's with invented facts, `missing` fewer per relation than required."""
    relations = [{"relation": name, "template": template} for name in (*addresses.LAMA_FACTS, "P27")]
    content = {f"{folder}relations.jsonl": "".join(json.dumps(row) + "\n" for row in relations)}
    for name, count in addresses.LAMA_FACTS.items():
        facts = [{"uuid": f"{name}-{i}", "sub_label": f"s{i}", "obj_label": "o"} for i in range(count - missing)]
        content[f"{folder}TREx/{name}.jsonl"] = "".join(json.dumps(row) + "\n" for row in facts)
    content[f"{folder}TREx/P27.jsonl"] = '{"sub_label": "s", "obj_label": "o"}\n'
    content[f"{folder}Squad/test.jsonl"] = "{}\n"
    content["../../outside/TREx/P999.jsonl"] = "{}\n"
    return pack({name: text.encode() for name, text in content.items()})


def pack(content: dict[str, bytes], **links: str) -> bytes:
    """Make a compressed tar archive of files by name and of symbolic links."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, data in content.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for name, target in links.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return stream.getvalue()


@pytest.fixture
def serve_lama(server, monkeypatch):
    """Return a function that serves an archive as LAMA's, with its checksum."""

    def serve(content: bytes) -> None:
        server.files["/lama.tar.gz"] = content
        monkeypatch.setattr(addresses, "LAMA_SHA256", hashlib.sha256(content).hexdigest())

    return serve


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# === Treebank ===


@pytest.mark.usefixtures("small_treebank")
def test_treebank_is_fetched_once(server, tmp_path):
    """Test, dev and train sets arrive readable; a second call returns them without a download."""
    paths = fetch("treebank", tmp_path)
    assert paths == [tmp_path / "treebank" / name for name in addresses.TREEBANK_FILES]
    assert [len(corpora.read_treebank(path)) for path in paths] == [1, 2, 3]
    assert fetch("treebank", tmp_path) == paths
    assert len(server.asked) == 3 and names(tmp_path / "treebank") == sorted(addresses.TREEBANK_FILES)


@pytest.mark.usefixtures("small_treebank")
def test_damaged_copy_is_fetched_again(server, tmp_path):
    """A file with a wrong checksum is replaced."""
    first, *_ = fetch("treebank", tmp_path)
    first.write_text("cut short")
    fetch("treebank", tmp_path)
    assert first.read_text() == SENTENCE and len(server.asked) == 4


def test_file_with_wrong_checksum_is_refused(server, tmp_path):
    """Only the released file is kept; the message names the address and the path for a download by hand."""
    for name in addresses.TREEBANK_FILES:
        server.files[f"/ewt/{name}"] = SENTENCE.encode()
    with pytest.raises(CorpusError, match="another checksum") as error:
        fetch("treebank", tmp_path)
    assert f"{server.address}/ewt/en_ewt-ud-test.conllu" in str(error.value)
    assert f"put it at {tmp_path / 'treebank' / 'en_ewt-ud-test.conllu'}" in str(error.value)
    assert names(tmp_path) == []


def test_checksums_match_the_released_files(server, shared_data, tmp_path):
    """The real sets pass the check and have the numbers of sentences that UD states."""
    for name in addresses.TREEBANK_FILES:
        server.files[f"/ewt/{name}"] = lzma.decompress((shared_data / "treebank" / f"{name}.xz").read_bytes())
    paths = fetch("treebank", tmp_path)
    assert [len(corpora.read_treebank(path)) for path in paths] == [2077, 2001, 12544]


# === LAMA ===


@pytest.mark.parametrize("folder", ["data/", "", "./", "LAMA/data/"])
def test_lama_is_fetched_once_and_read(server, serve_lama, tmp_path, folder):
    """Only the paper's 25 relations and their templates are extracted, whatever folder of the archive they are in."""
    serve_lama(lama_archive(folder))
    (path,) = fetch("lama", tmp_path)
    assert path == tmp_path / "lama"
    facts = corpora.read_lama(path)
    assert len(facts) == sum(addresses.LAMA_FACTS.values())
    assert names(tmp_path)[-1] == "lama/relations.jsonl" and not any("Squad" in name for name in names(tmp_path))
    assert not (tmp_path.parent / "outside").exists() and len(names(tmp_path)) == 25 + 1
    assert fetch("lama", tmp_path) == [path] and len(server.asked) == 1


def test_archive_with_wrong_checksum_is_refused(server, tmp_path):
    """The archive is not unpacked, whatever it contains."""
    server.files["/lama.tar.gz"] = lama_archive()
    with pytest.raises(CorpusError, match="another checksum"):
        fetch("lama", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_archive_that_unpacks_to_too_much_is_refused(serve_lama, tmp_path, monkeypatch):
    """The error is raised before the file above the limit is written; files that are not read do not count."""
    bomb = {"TREx/P19.jsonl": bytes(2**20), "TREx/P20.jsonl": bytes(2**20), "TREx/P27.jsonl": bytes(2**24)}
    serve_lama(pack(bomb))
    monkeypatch.setattr(addresses, "LAMA_MAX_BYTES", 2**21 - 1)
    with pytest.raises(CorpusError, match="more than 2,097,151 bytes of facts"):
        fetch("lama", tmp_path)
    monkeypatch.setattr(addresses, "LAMA_MAX_BYTES", 2**21)
    with pytest.raises(CorpusError, match="is not LAMA"):
        fetch("lama", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_symbolic_link_in_the_archive_is_ignored(serve_lama, tmp_path):
    """A link could lead outside the archive."""
    serve_lama(pack({}, **{"relations.jsonl": "/etc/hostname"}))
    with pytest.raises(CorpusError, match=r"relations.jsonl does not exist"):
        fetch("lama", tmp_path)


def test_archive_with_too_few_facts_is_refused(serve_lama, tmp_path):
    """The facts of each relation are counted against the paper's Table 8."""
    serve_lama(lama_archive(missing=1))
    with pytest.raises(CorpusError, match=r"Table 8 \(P17 has 929 facts of 930, .*get LAMA elsewhere"):
        fetch("lama", tmp_path)
    assert list(tmp_path.iterdir()) == []
    serve_lama(lama_archive())
    assert fetch("lama", tmp_path) == [tmp_path / "lama"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>Access denied</html>", "cannot be unpacked"),
        (lama_archive()[:-500], "cannot be unpacked"),
        (lama_archive(template="no slot"), "one \\[X\\] and one \\[Y\\]"),
        (pack({"TREx/P19.jsonl": b"{}\n"}), "relations.jsonl does not exist"),
    ],
)
def test_other_content_than_lama_is_refused(serve_lama, tmp_path, content, message):
    """An HTML page, half an archive or other files leave no folder that could be mistaken for LAMA."""
    serve_lama(content)
    with pytest.raises(CorpusError, match=message):
        fetch("lama", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_existing_folder_of_the_user_is_left_alone(server, tmp_path):
    """The error asks to move the folder away, and nothing is downloaded."""
    (tmp_path / "lama").mkdir()
    (tmp_path / "lama" / "notes.txt").write_text("mine")
    with pytest.raises(CorpusError, match=r"is not LAMA.*move it away"):
        fetch("lama", tmp_path)
    assert names(tmp_path) == ["lama/notes.txt"] and not server.asked


# === No connection ===


@pytest.mark.parametrize(("what", "path"), [("treebank", "/ewt/en_ewt-ud-test.conllu"), ("lama", "/lama.tar.gz")])
def test_missing_file_is_reported_with_its_address(server, tmp_path, what, path):
    """One line has the server's answer, the address and the way by hand."""
    with pytest.raises(CorpusError, match=r"the server answered 404.*by hand") as error:
        fetch(what, tmp_path)
    assert server.address + path in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("what", ["treebank", "lama"])
def test_refused_connection_is_reported(monkeypatch, tmp_path, what):
    """No server listens on the port; neither half a file nor an empty folder is left."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(addresses, "TREEBANK_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(addresses, "LAMA_URL", "http://127.0.0.1:9/lama.tar.gz")
    with pytest.raises(CorpusError, match=r"http://127.0.0.1:9/.*\(ConnectionError\).*by hand"):
        fetch(what, tmp_path / "data" / "corpora")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("small_treebank")
def test_interrupted_download_leaves_nothing(server, tmp_path):
    """Half a file must not be kept under the name of the whole."""
    server.cut.add("/ewt/en_ewt-ud-test.conllu")
    with pytest.raises(CorpusError, match=r"could not be fetched \((ConnectionError|ChunkedEncodingError)\)"):
        fetch("treebank", tmp_path)
    assert names(tmp_path) == []


# === Names ===


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ontonotes", r"licensed.*https://catalog.ldc.upenn.edu/LDC2013T19.*--treebank"),  # which takes a licensed copy
        ("lamas", r"Unknown corpus 'lamas'. Did you mean 'lama'\? Known: treebank, lama"),
    ],
)
def test_corpus_that_is_not_fetched_is_reported(tmp_path, name, message):
    """The error says where to get a licensed corpus, and which corpora exist in place of an unknown one."""
    with pytest.raises(CorpusError, match=message):
        fetch(name, tmp_path)
