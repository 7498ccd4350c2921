import sys

from wordreel.util import machine as gpu


def test_without_a_driver_torch_is_not_imported(monkeypatch):
    monkeypatch.setattr(gpu, "_has_driver", lambda: False)
    monkeypatch.setitem(sys.modules, "torch", None)  # importing it would fail
    assert gpu.find_gpu() is None
