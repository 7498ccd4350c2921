"""Weights of the papers that live on project pages and model hubs: brought by the user, checked, converted.

A file is read by the restricted readers only, every key and shape is compared with the network's before
anything is written, and the store keeps the file's sha256. What there is to bring stands in `hub_entries`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordreel.errors import WeightsCorrupt, WeightsError
from wordreel.weights.hub_entries import ALL, ENTRIES, HubEntry

if TYPE_CHECKING:
    from wordreel.weights.store import WeightStore

__all__ = ["ALL", "ENTRIES", "HubEntry", "add_hub", "add_local", "convert"]

CONVERTER_VERSION = 1
HUB_FILES = ("model.safetensors", "pytorch_model.bin")  # tried in this order


def add_local(store: WeightStore, name: str, path: Path) -> Path:
    """Check, convert and keep a checkpoint the user has; returns the folder it is kept in."""
    entry = _entry(name)
    path = path.expanduser()
    if not path.is_file():
        raise WeightsError(f"there is no file {path}; {entry.how}")
    _check_digest(entry, path)
    return store.install(name, {name: path})


def add_hub(store: WeightStore, name: str, hub_id: str) -> Path:
    """The same for a file of a model hub, `ID` or `ID:FILENAME`."""
    entry = _entry(name)
    repository, _, file = hub_id.partition(":")
    return add_local(store, entry.name, _download(repository, (file,) if file else HUB_FILES))


def convert(files: Mapping[str, Path], out: Path) -> None:
    """Write `network.onnx` (and its sidecar) from a checkpoint; the store calls this with {name: path}."""
    import onnx

    ((name, path),) = files.items()
    entry = _entry(name)
    sidecar = out / "network.weights" if entry.sidecar else None
    target = out / "network.onnx"
    onnx.save(_model(entry, path, sidecar), str(target))
    if sidecar is not None:
        onnx.checker.check_model(str(target))


def _model(entry: HubEntry, path: Path, sidecar: Path | None) -> Any:
    from wordreel.nets.checkpoint import check, unwrapped
    from wordreel.nets.wiring import model, sketch

    state = unwrapped(_read(entry, path))
    if entry.rename:
        rename: Callable[[Mapping[str, Any]], dict[str, Any]] = _named(entry.rename)
        state = rename(state)
    network = _named(entry.network)
    own = hasattr(network, "model")  # lays its graph itself
    shapes, heads = (network.shapes(), network.heads()) if own else sketch(network)
    expected = f"{entry.file} of {entry.project} ({entry.title})"
    check(state, shapes, heads, ignore=entry.ignore, given=path.name, expected=expected)
    return network.model(state) if own else model(entry.name, network, state, sidecar)


def _read(entry: HubEntry, path: Path) -> dict[str, Any]:
    from wordreel.weights import safe_pickle
    from wordreel.weights.torch_file import read_state_dict

    if not entry.plain_pickle or path.suffix != ".pkl":
        return read_state_dict(path)
    found = safe_pickle.load(path, encoding="latin1")
    if not isinstance(found, dict) or not all(hasattr(value, "shape") for value in found.values()):
        raise WeightsError(f"{path.name} holds no named arrays; {entry.how}")
    return {str(key): value for key, value in found.items()}


def _check_digest(entry: HubEntry, path: Path) -> None:
    from wordreel.weights.archive import sha256

    if entry.digest and path.name == entry.file and not sha256(path).startswith(entry.digest):
        raise WeightsCorrupt(
            f"{path.name} is damaged: its sha256 does not begin with {entry.digest}; download it again"
        )


def _download(repository: str, files: tuple[str, ...]) -> Path:
    from huggingface_hub import errors, hf_hub_download

    for file in files:
        try:
            return Path(hf_hub_download(repository, file))
        except errors.HFValidationError:
            raise WeightsError(
                f"{repository!r} is not a hub id; write OWNER/NAME or OWNER/NAME:FILE"
            ) from None
        except errors.LocalEntryNotFoundError as error:
            raise _unreachable(repository, error) from None
        except errors.EntryNotFoundError:
            continue
        except errors.RepositoryNotFoundError:
            raise WeightsError(
                f"the hub has no repository {repository!r}, or it asks you to log in and accept its terms"
            ) from None
        except Exception as error:  # whatever the hub's transport raises
            raise _unreachable(repository, error) from None
    raise WeightsError(f"{repository} has no {' or '.join(files)}; name the file: --hub {repository}:FILE")


def _unreachable(repository: str, error: Exception) -> WeightsError:
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return WeightsError(
        f"{repository} could not be fetched from the hub ({first}); get the file on a machine that can and "
        "use --file"
    )


def _entry(name: str) -> HubEntry:
    entry = ALL.get(name)
    if entry is None:
        raise WeightsError(f"{name!r} are not weights you can add; these are: {', '.join(ALL)}")
    return entry


def _named(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
