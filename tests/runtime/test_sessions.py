"""The runtime: one arena for all networks gives what a plain session gives, and providers in order."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import onnxruntime as ort
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import Fail

from wordreel.runtime import sessions as runtime
from wordreel.runtime.nets.graph import Graph
from wordreel.runtime.sessions import Network, providers


def model(seed: int) -> bytes:
    graph = Graph("tiny")
    weight = np.random.default_rng(seed).normal(size=(4, 3, 3, 3)).astype(np.float32)
    y = graph.conv(graph.input("x", ("n", 3, "h", "w")), weight, pad=1)
    return bytes(graph.finish({"y": graph.op("Relu", y)}).SerializeToString())


def test_networks_that_share_an_arena_equal_plain_sessions() -> None:
    models = [model(seed) for seed in range(3)]
    networks = [Network(one) for one in models]
    plain = [ort.InferenceSession(one, providers=["CPUExecutionProvider"]) for one in models]
    rng = np.random.default_rng(0)
    cases = [(k % 3, rng.normal(size=(1 + k % 2, 3, 5 + k, 6)).astype(np.float32)) for k in range(24)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda case: networks[case[0]](x=case[1])["y"], cases))
    for (which, x), y in zip(cases, found, strict=True):
        np.testing.assert_allclose(y, plain[which].run(None, {"x": x})[0], atol=1e-5)


@pytest.mark.parametrize(
    ("available", "expected"),
    [
        (["AzureExecutionProvider", "CPUExecutionProvider"], ["CPUExecutionProvider"]),
        (
            ["CoreMLExecutionProvider", "CPUExecutionProvider"],
            ["CoreMLExecutionProvider", "CPUExecutionProvider"],
        ),
        (
            ["DmlExecutionProvider", "CPUExecutionProvider"],
            ["DmlExecutionProvider", "CPUExecutionProvider"],
        ),
        (
            ["CPUExecutionProvider", "CUDAExecutionProvider"],
            ["CUDAExecutionProvider", "CPUExecutionProvider"],
        ),
    ],
)
def test_a_network_uses_the_accelerator_there_is(
    available: list[str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[list[str]] = []

    def session(source: object, options: object, providers: list[tuple[str, dict[str, str]]]) -> object:
        chosen.append([name for name, _ in providers])
        return SimpleNamespace(get_outputs=list)

    monkeypatch.setattr(ort, "get_available_providers", lambda: available)
    monkeypatch.setattr(ort, "InferenceSession", session)
    Network(repr(available).encode())  # other bytes each time: the tests share loaded networks
    assert chosen == [expected]


def test_a_gpu_that_cannot_be_used_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[list[str]] = []

    def session(source: object, options: object, providers: list[tuple[str, dict[str, str]]]) -> object:
        tried.append([name for name, _ in providers])
        if tried[-1][0] == "CUDAExecutionProvider":
            raise Fail("libcudnn.so.9: cannot open shared object file")
        return SimpleNamespace(get_outputs=list, get_providers=lambda: tried[-1])

    monkeypatch.setattr(
        ort, "get_available_providers", lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"]
    )
    monkeypatch.setattr(ort, "InferenceSession", session)
    network = Network(b"a GPU without its libraries")
    assert tried == [["CUDAExecutionProvider", "CPUExecutionProvider"], ["CPUExecutionProvider"]]
    assert str(network) == "on the processor; CUDA is installed and could not be used"


def test_a_broken_network_is_an_error_of_its_own() -> None:
    with pytest.raises(Exception, match=r"(?i)protobuf"):
        runtime.open_session(b"no network")


@pytest.mark.parametrize(
    ("available", "used", "said"),
    [
        (["CPUExecutionProvider"], ["CPUExecutionProvider"], "on the processor"),
        (
            ["CUDAExecutionProvider", "CPUExecutionProvider"],
            ["CUDAExecutionProvider", "CPUExecutionProvider"],
            "with CUDA",
        ),
        (
            ["CoreMLExecutionProvider", "CPUExecutionProvider"],
            ["CoreMLExecutionProvider", "CPUExecutionProvider"],
            "with Core ML",
        ),
    ],
)
def test_people_are_told_what_runs_the_networks(available: list[str], used: list[str], said: str) -> None:
    assert runtime.describe_providers(available, used) == said


def test_core_ml_stays_off_the_half_precision_engine() -> None:
    assert dict(providers(["CoreMLExecutionProvider"])) == {
        "CoreMLExecutionProvider": {"MLComputeUnits": "CPUAndGPU"}
    }


def test_memory_is_released_where_the_system_can(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    library = SimpleNamespace(malloc_trim=calls.append)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    runtime.release_memory()
    assert calls == [0]
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace())
    runtime.release_memory()
    assert calls == [0]
