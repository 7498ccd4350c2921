"""Download the files of a CLIP-like model from a model hub: only what is needed, resumed where it stopped.

The hub is the one `huggingface_hub` is configured for (HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE), and files in
its cache (HF_HOME) are used, not downloaded. A branch or tag is resolved to a commit first, and every file is
downloaded from that commit. That library forgets a download that was killed; here the next one continues
after its last byte. No file is executed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordreel.errors import NextStep, WeightsCorrupt, WeightsError, WeightsMissing
from wordreel.progress import Progress, ProgressCallback
from wordreel.runtime.weight_folders import check_space
from wordreel.util.checksum import file_sha256

ATTEMPTS = 5  # in a row without a byte
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?")

Choose = Callable[[list[str]], Sequence[str]]
"""The files of a repository that are needed."""


@dataclass(frozen=True)
class HubFile:
    """One file; `sha256` is what the hub states, empty for small files; `cached` if it is here already."""

    name: str
    bytes: int
    sha256: str = ""
    cached: bool = False


@dataclass(frozen=True)
class HubSnapshot:
    """The needed files of a model at one commit."""

    hub_id: str
    commit: str
    files: tuple[HubFile, ...]
    licence: str = ""


def split_hub_id(source: str) -> tuple[str, str]:
    """Hub id and revision, which is empty where none is named.

    >>> split_hub_id("openai/clip-vit-base-patch32@main")
    ('openai/clip-vit-base-patch32', 'main')
    """
    if not HUB_ID.fullmatch(source):
        raise WeightsError(f"{source!r} is not a hub id", NextStep("write OWNER/NAME or OWNER/NAME@REVISION"))
    hub_id, _, revision = source.partition("@")
    return hub_id, revision


def find_model(hub_id: str, revision: str = "", file: str = "", choose: Choose = tuple) -> HubSnapshot:
    """Ask the hub for one `file` of a model, or for those that `choose` takes; or the cache, offline."""
    import huggingface_hub
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return _cached_model(hub_id, revision, file, choose)
    with hub_errors(hub_id, revision):
        info = huggingface_hub.HfApi().model_info(hub_id, revision=revision or None, files_metadata=True)
    commit = str(info.sha)
    if not re.fullmatch(r"[0-9a-f]{40}", commit):
        raise WeightsError(f"the hub names no commit of {hub_id}")
    parts = {part.rfilename: part for part in info.siblings or ()}
    if file and file not in parts:
        raise WeightsMissing(f"{hub_id} has no {file}")
    files = []
    for name in [file] if file else choose(list(parts)):
        lfs, cached = parts[name].lfs, _cached(hub_id, name, commit) is not None
        files.append(HubFile(name, parts[name].size or 0, str(lfs.sha256) if lfs else "", cached))
    card: Any = info.card_data or {}
    return HubSnapshot(hub_id, commit, tuple(files), str(card.get("license") or ""))


def download_model(model: HubSnapshot, folder: Path, on_progress: ProgressCallback | None = None) -> None:
    """Bring the files of a model into a folder: links into the hub's cache, downloads of the rest.

    Killed at any moment, the next call with the same folder resumes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    needed = sum(file.bytes for file in model.files if not file.cached)
    check_space(folder, needed, "the download has")
    with _alone(model.hub_id, folder):
        _bring(model, folder, on_progress)


@contextmanager
def _alone(hub_id: str, folder: Path) -> Iterator[None]:
    """Two processes must not append to one file."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise WeightsError(
            f"another process is downloading {hub_id}", NextStep("wait for it, then try again")
        ) from None
    finally:
        os.close(lock)


def _bring(model: HubSnapshot, folder: Path, on_progress: ProgressCallback | None) -> None:
    for file in model.files:
        target, cached = folder / file.name, _cached(model.hub_id, file.name, model.commit)
        target.parent.mkdir(parents=True, exist_ok=True)
        if cached is not None:
            target.unlink(missing_ok=True)
            target.symlink_to(cached)
        elif not target.is_file():
            _download(model, file, target, on_progress)
        if file.sha256 and file_sha256(target) != file.sha256:
            target.unlink()
            where = f" in {cached.parent}" if cached else ""
            raise WeightsCorrupt(
                f"{file.name}{where} does not have the sha256 that the hub states",
                NextStep("delete it there and try again" if cached else "try again"),
            )


def _download(model: HubSnapshot, file: HubFile, target: Path, on_progress: ProgressCallback | None) -> None:
    from huggingface_hub import hf_hub_url

    part = target.with_name(target.name + ".part")
    with hub_errors(model.hub_id, model.commit), part.open("ab") as out:
        if out.tell() > file.bytes:
            out.seek(0)
            out.truncate()
        for chunk in _read_from(hf_hub_url(model.hub_id, file.name, revision=model.commit), out.tell(), file):
            out.write(chunk)
            if on_progress is not None:
                on_progress(Progress(f"downloading {file.name}", out.tell(), max(file.bytes, out.tell())))
    part.rename(target)


def _read_from(url: str, start: int, file: HubFile) -> Iterator[bytes]:
    """Yield a file's bytes from `start` on; a connection that breaks is opened again where it ended."""
    from huggingface_hub import constants, get_session
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status  # type: ignore[attr-defined]

    failures = 0
    while start < file.bytes:
        headers = {**build_hf_headers(), "Range": f"bytes={start}-", "Accept-Encoding": "identity"}
        options: dict[str, Any] = {"headers": headers, "timeout": constants.HF_HUB_DOWNLOAD_TIMEOUT}
        try:
            with get_session().stream("GET", url, follow_redirects=True, **options) as response:
                hf_raise_for_status(response)
                skipped = start if response.status_code == 200 else 0  # a server that ignores the range
                for chunk in response.iter_bytes(constants.DOWNLOAD_CHUNK_SIZE):
                    wanted, skipped = chunk[skipped:], max(0, skipped - len(chunk))
                    start += len(wanted)
                    failures = 0 if wanted else failures
                    yield wanted
        except HfHubHTTPError:
            raise
        except Exception:  # whatever the transport raises
            failures += 1
            if failures == ATTEMPTS:
                raise
            time.sleep(2.0**failures)


@contextmanager
def hub_errors(hub_id: str, revision: str = "") -> Iterator[None]:
    """Turn what the hub and its transport raise into errors with a next step."""
    from huggingface_hub import errors

    at = f" at {revision}" if revision else ""
    try:
        yield
    except errors.GatedRepoError:
        raise WeightsError(
            f"{hub_id} is only for those who accepted its terms",
            NextStep("accept them on the hub and set HF_TOKEN"),
        ) from None
    except errors.RevisionNotFoundError:
        raise WeightsError(f"{hub_id} has no revision {revision!r}") from None
    except errors.RepositoryNotFoundError:
        raise WeightsError(
            f"the hub has no model {hub_id!r}, or it is private", NextStep("check the name, or set HF_TOKEN")
        ) from None
    except errors.HFValidationError:
        raise WeightsError(f"{hub_id!r} is not a hub id", NextStep("write OWNER/NAME")) from None
    except errors.LocalEntryNotFoundError as error:
        raise _unreachable(hub_id, error) from None
    except errors.EntryNotFoundError as error:
        raise WeightsMissing(f"{hub_id}{at} lacks a file: {_first_line(error)}") from None
    except Exception as error:  # whatever the transport raises
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES):
            raise  # of this machine, not of the hub
        raise _unreachable(hub_id, error) from None


def _cached_model(hub_id: str, revision: str, file: str, choose: Choose) -> HubSnapshot:
    name = file or "config.json"
    path = _cached(hub_id, name, revision or "main")
    if path is not None:
        folder = path.parents[len(Path(name).parts) - 1]
        names = [part.relative_to(folder).as_posix() for part in folder.rglob("*") if part.is_file()]
        chosen = [file] if file else choose(names)
        files = tuple(HubFile(name, (folder / name).stat().st_size, cached=True) for name in chosen)
        return HubSnapshot(hub_id, folder.name, files)
    raise WeightsMissing(
        f"{hub_id} is not in the hub's cache, and HF_HUB_OFFLINE forbids to download it",
        NextStep("unset HF_HUB_OFFLINE"),
    )


def _cached(hub_id: str, name: str, revision: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    with hub_errors(hub_id, revision):
        found = try_to_load_from_cache(hub_id, name, revision=revision)
    return Path(found) if isinstance(found, str) else None


def _unreachable(hub_id: str, error: Exception) -> WeightsError:
    return WeightsError(
        f"{hub_id} could not be fetched from the hub ({_first_line(error)})",
        NextStep("try again, or download it on another machine and give its path"),
    )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
