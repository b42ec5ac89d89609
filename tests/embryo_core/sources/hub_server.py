"""A Hub server on this machine that lists and serves models under the paths of the real Hub's API."""

import hashlib
import json
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

LFS = ".safetensors"  # stored in LFS: served through a redirect, and listed with its SHA-256


class HubServer(ThreadingHTTPServer):
    """A server of repositories and revisions that a test may change at any time; `asked` counts requests by path."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.refs: dict[str, dict[str, str]] = {}  # repository -> branch -> commit
        self.files: dict[tuple[str, str], dict[str, bytes]] = {}  # (repository, commit) -> name -> content
        self.refused: dict[str, tuple[int, dict[str, str]]] = {}  # repository -> status and headers
        self.cut: set[str] = set()  # names of files whose download breaks off halfway
        self.asked: Counter[str] = Counter()
        self.history: dict[tuple[str, str], list[tuple[str, str]]] = {}  # (commit, title), newest first
        self.limit: int | None = None  # number of answers before a rate limit of two hours
        self.waited: list[float] = []  # seconds that the client slept
        self.busy: list[str] = []  # Retry-After of the next answers, each with status 429

    @property
    def address(self) -> str:
        """The URL for HF_ENDPOINT."""
        return f"http://127.0.0.1:{self.server_port}"

    def push(self, repository: str, branch: str, folder: Path, title: str = "Upload") -> str:
        """Push the files of a folder to a branch; return the new commit."""
        past = self.history.setdefault((repository, branch), [])
        contents = {path.relative_to(folder).as_posix(): path.read_bytes() for path in _files(folder)}
        listing = repr(sorted((name, hashlib.sha1(content).hexdigest()) for name, content in contents.items()))
        commit = hashlib.sha1(f"{repository}@{branch}{listing}{len(past)}".encode()).hexdigest()
        self.refs.setdefault(repository, {})[branch] = commit
        self.files[repository, commit] = contents
        past.insert(0, (commit, title))
        return commit


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


class _Handler(BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        address = urlsplit(self.path)
        self.server.asked[f"{self.command} {address.path}"] += 1
        if self.server.limit is not None and sum(self.server.asked.values()) > self.server.limit:
            return self._refuse(429, {"Retry-After": "7200"})
        if self.server.busy:
            return self._refuse(429, {"Retry-After": self.server.busy.pop()})
        match [unquote(part) for part in address.path.strip("/").split("/")]:
            case ["api", "models"]:
                self._models(parse_qs(address.query))
            case ["api", "models", owner, name, "refs"]:
                self._refs(f"{owner}/{name}")
            case ["api", "models", owner, name, "revision", commit]:
                self._info(f"{owner}/{name}", commit)
            case ["api", "models", owner, name, "commits", commit]:
                self._commits(f"{owner}/{name}", commit)
            case ["stored", owner, name, commit, *file]:
                self._send(self.server.files[f"{owner}/{name}", commit]["/".join(file)], "/".join(file))
            case [owner, name, "resolve", commit, *file]:
                self._resolve(f"{owner}/{name}", commit, "/".join(file))
            case _:
                self._refuse(404)

    def _models(self, query: dict[str, list[str]]) -> None:
        author, search = query["author"][0], query.get("search", [""])[0]
        names = [name for name in self.server.refs if name.startswith(f"{author}/") and search in name]
        self._json([{"id": name, "modelId": name} for name in names])

    def _refs(self, repository: str) -> None:
        if self._known(repository):
            refs = self.server.refs[repository].items()
            branches = [{"name": one, "ref": f"refs/heads/{one}", "targetCommit": commit} for one, commit in refs]
            self._json({"branches": branches, "tags": [], "converts": []})

    def _commits(self, repository: str, head: str) -> None:
        (past,) = (past for (name, _), past in self.server.history.items() if name == repository and past[0][0] == head)
        about = {"authors": [], "date": "2026-01-01T00:00:00.000Z", "message": ""}
        self._json([{"id": commit, "title": title, **about} for commit, title in past])

    def _info(self, repository: str, commit: str) -> None:
        if self._known(repository, commit):
            siblings = []
            for name, content in self.server.files[repository, commit].items():
                sha256, size = hashlib.sha256(content).hexdigest(), len(content)
                lfs = {"lfs": {"sha256": sha256, "size": size, "pointerSize": 134}} if name.endswith(LFS) else {}
                blob = hashlib.sha1(content).hexdigest()
                siblings.append({"rfilename": name, "size": size, "blobId": blob, **lfs})
            self._json({"id": repository, "sha": commit, "siblings": siblings})

    def _resolve(self, repository: str, commit: str, name: str) -> None:
        if not self._known(repository, commit):
            return
        content = self.server.files[repository, commit].get(name)
        if content is None:
            self._refuse(404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
        elif name.endswith(LFS):
            etag = hashlib.sha256(content).hexdigest()
            linked = {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(len(content)), "X-Repo-Commit": commit}
            self._send(
                b"",
                "",
                302,
                linked
                | {"Location": f"http://localhost:{self.server.server_port}/stored/{repository}/{commit}/{name}"},
            )
        else:
            headers = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": commit}
            self._send(content, name, headers=headers)

    def _known(self, repository: str, commit: str | None = None) -> bool:
        if repository in self.server.refused:
            self._refuse(*self.server.refused[repository])
        elif repository not in self.server.refs:
            self._refuse(401, {"X-Error-Message": "Invalid username or password."})  # as the real Hub does
        elif commit is not None and (repository, commit) not in self.server.files:
            self._refuse(404, {"X-Error-Code": "RevisionNotFound"})
        else:
            return True
        return False

    def _refuse(self, status: int, headers: dict[str, str] | None = None) -> None:
        self._send(b"", "", status, headers)

    def _json(self, content: Any) -> None:
        self._send(json.dumps(content).encode(), "", headers={"Content-Type": "application/json"})

    def _send(self, content: bytes, name: str, status: int = 200, headers: dict[str, str] | None = None) -> None:
        begun = 0
        if status == 200 and (byte_range := self.headers.get("Range", "")).startswith("bytes="):
            status, begun = 206, int(byte_range.removeprefix("bytes=").split("-")[0])
            headers = {**(headers or {}), "Content-Range": f"bytes {begun}-{len(content) - 1}/{len(content)}"}
        self.send_response(status)
        for header, value in (headers or {}).items():
            self.send_header(header, value)
        self.send_header("Content-Length", str(len(content) - begun))
        self.end_headers()
        if self.command == "HEAD":
            return
        content = content[begun:]
        if name in self.server.cut:
            content, self.close_connection = content[: len(content) // 2], True
        self.wfile.write(content)
