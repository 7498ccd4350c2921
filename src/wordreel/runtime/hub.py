"""Add published checkpoints from a file or a model hub: check them, convert them, install them.

A file is read by the restricted readers only, and every key and shape is compared with the network's before
anything is written. `weight_table` lists the checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordreel.errors import NextStep, WeightsCorrupt, WeightsError, WeightsMissing
from wordreel.runtime.hub_download import hub_errors
from wordreel.runtime.weight_table import PUBLISHED, PublishedWeights
from wordreel.util.lazy_exports import import_named

if TYPE_CHECKING:
    from wordreel.runtime.store import WeightStore

HUB_FILES = ("model.safetensors", "pytorch_model.bin")  # tried in this order


def add_checkpoint(store: WeightStore, name: str, path: Path) -> Path:
    """Check, convert and install a checkpoint file; returns the folder of the weights."""
    entry = _entry(name)
    path = path.expanduser()
    if not path.is_file():
        raise WeightsError(f"there is no file {path}", entry.next_step())
    _check_digest(entry, path)
    return store.install(name, {name: path})


def add_from_hub(store: WeightStore, name: str, hub_id: str) -> Path:
    """Download a checkpoint from a model hub, `ID` or `ID:FILENAME`, and install it."""
    entry = _entry(name)
    repository, _, file = hub_id.partition(":")
    return add_checkpoint(store, entry.name, _download(repository, (file,) if file else HUB_FILES))


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


def _model(entry: PublishedWeights, path: Path, sidecar: Path | None) -> Any:
    from wordreel.runtime.nets.net_builder import build_onnx, weight_shapes
    from wordreel.runtime.torch_file import check, unwrapped

    state = unwrapped(_read(entry, path))
    if entry.rename:
        rename: Callable[[Mapping[str, Any]], dict[str, Any]] = import_named(entry.rename)
        state = rename(state)
    network = import_named(entry.network)
    shapes, heads = weight_shapes(network)
    expected = f"{entry.file} of {entry.project} ({entry.title})"
    check(state, shapes, heads, ignore=entry.ignore, given=path.name, expected=expected)
    return build_onnx(entry.name, network, state, sidecar)


def _read(entry: PublishedWeights, path: Path) -> dict[str, Any]:
    from wordreel.runtime import numpy_pickle
    from wordreel.runtime.torch_file import read_state_dict

    if not entry.plain_pickle or path.suffix != ".pkl":
        return read_state_dict(path)
    state = numpy_pickle.load(path, encoding="latin1")
    if not isinstance(state, dict) or not all(hasattr(value, "shape") for value in state.values()):
        raise WeightsError(f"{path.name} holds no named arrays", entry.next_step())
    return {str(key): value for key, value in state.items()}


def _check_digest(entry: PublishedWeights, path: Path) -> None:
    from wordreel.util.checksum import file_sha256

    if entry.digest and path.name == entry.file and not file_sha256(path).startswith(entry.digest):
        raise WeightsCorrupt(
            f"{path.name} is damaged: its sha256 does not begin with {entry.digest}",
            NextStep("download it again"),
        )


def _download(repository: str, files: tuple[str, ...]) -> Path:
    from huggingface_hub import hf_hub_download

    for file in files:
        with suppress(WeightsMissing), hub_errors(repository):
            return Path(hf_hub_download(repository, file))
    raise WeightsError(
        f"{repository} has no {' or '.join(files)}", NextStep(f"name the file with `--hub {repository}:FILE`")
    )


def _entry(name: str) -> PublishedWeights:
    entry = PUBLISHED.get(name)
    if entry is None:
        raise WeightsError(f"{name!r} are not weights that can be added; these are: {', '.join(PUBLISHED)}")
    return entry
