"""JavaScript from npm, fetched once and checked by SHA-256: a small Plotly, and the libraries of live questions."""

import hashlib
import os
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pooch

from embryo_core.errors import SiteError
from embryo_core.runs.atomic_files import replacing, sha256


@dataclass(frozen=True)
class Package:
    """An npm package and its files in a site.

    Modules end in .js in the site, since every server sends this suffix as JavaScript.
    """

    name: str
    version: str
    licence: str
    sha256: str  # SHA-256 of the archive
    files: dict[str, str]  # name in the site -> path in the package

    @property
    def archive(self) -> str:
        """Return the name of the archive that `npm pack` writes."""
        return f"{self.name.removeprefix('@').replace('/', '-')}-{self.version}.tgz"


LIVE = (
    Package(
        "onnxruntime-web",
        "1.30.0",
        "MIT, Copyright (c) Microsoft Corporation, https://github.com/microsoft/onnxruntime/blob/main/LICENSE",
        "d2228df7e4616bc3348bf504ee888f3bec43789a273f0a63f3e68d203ce3bf71",
        {
            "ort.js": "dist/ort.wasm.min.mjs",
            "ort-wasm.js": "dist/ort-wasm-simd-threaded.mjs",
            "ort-wasm.wasm": "dist/ort-wasm-simd-threaded.wasm",
        },
    ),
    Package(
        "@huggingface/tokenizers",
        "0.2.0",
        "Apache-2.0, Copyright Hugging Face, tokenizers.LICENSE.txt beside this file",
        "2800014c83b8186b2e4210c20672f1fb65a12cef85d7e95e0f2003e022611b4a",
        {"tokenizers.js": "dist/tokenizers.min.mjs", "tokenizers.LICENSE.txt": "LICENSE"},
    ),
)

PLOTLY = Package(  # a bundle without maps and 3D, which browsers load in half the time of the full one
    "plotly.js-cartesian-dist-min",
    "4.1.1",
    "MIT, Copyright Plotly, Inc.",
    "c5f9a84666b97e571a04de689e09319869e60900e265c89eac2f71d0b5a0de88",
    {"plotly.min.js": "plotly-cartesian.min.js", "plotly.LICENSE.txt": "LICENSE"},
)


def add_packages(packages: Sequence[Package], folder: Path, cache: Path | None = None) -> None:
    """Write packages' files and a NOTICE.txt to a folder. Raises SiteError if npm cannot fetch a package.

    Archives are kept in `cache`, by default in the user's cache.
    """
    cache = cache or pooch.os_cache("embryo")
    archives = [_fetch(package, cache) for package in packages]
    folder.mkdir(parents=True, exist_ok=True)
    for package, archive in zip(packages, archives, strict=True):
        with tarfile.open(archive) as archive_file:
            for name, path in package.files.items():
                source = archive_file.extractfile(f"package/{path}")
                assert source is not None  # the archive's SHA-256 was checked
                with (folder / name).open("wb") as target:
                    shutil.copyfileobj(source, target)
    notice = [f"{item.name} {item.version} ({', '.join(item.files)}), unchanged: {item.licence}" for item in packages]
    (folder / "NOTICE.txt").write_text("\n".join(notice) + "\n", encoding="utf-8")


def _fetch(package: Package, cache: Path) -> Path:
    """Return a package's archive in the cache; fetch it with npm if it is missing or damaged."""
    path = cache / package.archive
    if not (path.is_file() and sha256(path) == package.sha256):
        cache.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_bytes(_pack(package, path))
    return path


def _pack(package: Package, path: Path) -> bytes:
    """Fetch a package's archive with npm. Raises SiteError if that fails, or if its SHA-256 differs."""
    name_and_version = f"{package.name}@{package.version}"
    by_hand = f"run `npm pack {name_and_version}` on another computer and put its archive at {path}"
    folder = path.with_name(f"{path.name}.{os.getpid()}")
    folder.mkdir()
    try:
        command = ["npm", "pack", name_and_version, "--silent", "--fetch-retries=0", "--pack-destination", str(folder)]
        subprocess.run(command, check=True, capture_output=True, timeout=600, cwd=folder)
        content = (folder / package.archive).read_bytes()
    except (OSError, subprocess.SubprocessError) as reason:
        raise SiteError(
            f"Live questions need {name_and_version}, which npm could not fetch ({reason}); go online with npm "
            "installed, or "
            f"{by_hand}."
        ) from None
    finally:
        shutil.rmtree(folder)
    if hashlib.sha256(content).hexdigest() != package.sha256:
        raise SiteError(f"npm returned another archive for {name_and_version} (its SHA-256 differs); {by_hand}.")
    return content
