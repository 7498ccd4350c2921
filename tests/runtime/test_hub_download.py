"""Backbones from a hub: a small one on this machine, which cuts connections, lies and refuses on demand."""

import hashlib
import json
import os
import re
import shutil
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.tiny_backbone import write_json, write_onnx

from wordreel.backbones import installed as backbones
from wordreel.backbones.layout import choose_files
from wordreel.errors import WeightsCorrupt, WeightsError, WeightsMissing
from wordreel.runtime.hub_download import split_hub_id
from wordreel.runtime.store import WeightStore

COMMIT, ID = "0123456789abcdef0123456789abcdef01234567", "someone/Tiny-CLIP"
TEXT = "onnx/text_model.onnx"  # the largest file
NEEDED = [
    "config.json",
    "onnx/text_model.onnx",
    "onnx/vision_model.onnx",
    "preprocessor_config.json",
    "tokenizer.json",
]


class Hub(ThreadingHTTPServer):
    """Serves the files of one folder as the repository `ID`, the way the hub's library asks for them."""

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.sent: list[tuple[str, int]] = []  # file and first byte of every download
        self.cut: dict[str, int] = {}  # file to the byte at which its connection breaks, once
        self.status, self.error = 200, ""  # of the question for the model
        self.lie = ""  # instead of the sha256 of the weights
        self.down = False


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle(self):
        with suppress(ConnectionError):  # a client that goes away
            super().handle()

    def do_HEAD(self):
        self.answer(head=True)

    def do_GET(self):
        self.answer(head=False)

    def answer(self, head):
        hub = self.server
        path = self.path.partition("?")[0]
        if hub.down:
            self.close_connection = True
            return
        if path.startswith("/api/models/"):
            self.describe(path)
            return
        match = re.fullmatch(rf"/{ID}/resolve/{COMMIT}/([\w./-]+)", path)
        file = hub.folder / match[1] if match else None
        if file is None or not file.is_file():
            self.reply(404, {"X-Error-Code": "EntryNotFound"})
            return
        data = file.read_bytes()
        headers = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Repo-Commit": COMMIT}
        start = int((self.headers.get("Range") or "bytes=0-")[6:].partition("-")[0])
        if not head:
            hub.sent.append((match[1], start))
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        end = len(data) if head else hub.cut.pop(match[1], len(data))
        self.reply(206 if start else 200, headers, data[start:], head, end - start)

    def describe(self, path):
        hub = self.server
        known = {f"/api/models/{ID}", f"/api/models/{ID}/revision/{COMMIT}", f"/api/models/{ID}/revision/v1"}
        if hub.status != 200 or path not in known:
            code = hub.error or (
                "RevisionNotFound" if path.startswith(f"/api/models/{ID}") else "RepoNotFound"
            )
            self.reply(hub.status if hub.status != 200 else 404, {"X-Error-Code": code})
            return
        siblings = []
        for file in sorted(path for path in hub.folder.rglob("*") if path.is_file()):
            name = file.relative_to(hub.folder).as_posix()
            facts = {"rfilename": name, "size": file.stat().st_size}
            if file.suffix == ".onnx":
                digest = hub.lie or hashlib.sha256(file.read_bytes()).hexdigest()
                facts["lfs"] = {"sha256": digest, "size": facts["size"], "pointerSize": 100}
            siblings.append(facts)
        content = {"id": ID, "sha": COMMIT, "siblings": siblings, "cardData": {"license": "mit"}}
        self.reply(200, {"Content-Type": "application/json"}, json.dumps(content).encode())

    def reply(self, status, headers, body=b"", head=False, most=None):
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        if not head:
            self.wfile.write(body if most is None else body[:most])
        if most is not None and most < len(body):
            self.close_connection = True


@pytest.fixture
def hub(tmp_path, monkeypatch):
    from huggingface_hub import constants

    folder = write_onnx(tmp_path / "repository")
    for name in ("README.md", "tf_model.h5", "onnx/model.onnx", "pytorch_model.bin", "setup.py"):
        (folder / name).write_bytes(b"not needed")
    server = Hub(folder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 8192)  # our files are small
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # the library waits before it resumes
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def store(tmp_path):
    return WeightStore(tmp_path / "weights")


def test_the_plan_names_the_commit_and_the_needed_files_only(hub, store):
    plan = backbones.plan(store, ID)
    assert (plan.name, plan.source, plan.revision, plan.licence) == ("tiny-clip", ID, COMMIT, "mit")
    assert sorted(name for name, _ in plan.files) == NEEDED
    assert plan.download_bytes == sum((hub.folder / name).stat().st_size for name in NEEDED)
    assert hub.sent == []
    assert not store.root.exists()


def test_a_download_is_checked_recorded_and_not_repeated(hub, store):
    seen = []
    assert backbones.install(store, backbones.plan(store, f"{ID}@v1"), seen.append) == "tiny-clip"
    known = backbones.installed(store)["tiny-clip"]
    assert (known.source, known.revision) == (ID, COMMIT)
    for name in NEEDED:
        assert known.files[name] == hashlib.sha256((hub.folder / name).read_bytes()).hexdigest()
    assert sorted(name for name, _ in hub.sent) == NEEDED
    size = (hub.folder / TEXT).stat().st_size
    downloads = [now for now in seen if now.stage == f"downloading {TEXT}"]
    assert (downloads[-1].done, downloads[-1].total) == (size, size)
    assert backbones.open_backbone(store, "tiny-clip").texts(["a dog"]).shape == (1, 16)
    hub.down = True  # an installed one is not asked for again
    assert backbones.plan(store, ID).installed
    assert backbones.plan(store, f"{ID}@{COMMIT}").installed


def fill_cache(hub):
    """As another program does: with the hub's own library."""
    from huggingface_hub import hf_hub_download

    for name in NEEDED:
        hf_hub_download(ID, name, revision=COMMIT)
    hub.sent.clear()


def test_files_in_the_cache_are_not_downloaded_again(hub, store):
    fill_cache(hub)
    plan = backbones.plan(store, ID)
    assert plan.download_bytes == 0
    backbones.install(store, plan)
    assert hub.sent == []
    assert (hub.folder.parent / "cache").is_dir()  # and it is as it was
    assert backbones.plan(store, ID).installed
    backbones.remove(store, "tiny-clip")
    assert backbones.plan(store, ID).download_bytes == 0


def test_a_cut_connection_is_resumed(hub, store):
    hub.cut[TEXT] = 20_000
    backbones.install(store, backbones.plan(store, ID))
    starts = [start for name, start in hub.sent if name == TEXT]
    assert starts[0] == 0
    assert 0 < starts[1] <= 20_000
    assert "tiny-clip" in backbones.installed(store)


def test_a_killed_download_is_resumed_by_the_next(hub, store):
    def kill(now):
        if now.stage == f"downloading {TEXT}" and now.done > 20_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backbones.install(store, backbones.plan(store, ID), kill)
    assert backbones.installed(store) == {}
    (part,) = store.root.rglob("*.part")
    size = part.stat().st_size
    assert size >= 16_000
    hub.sent.clear()
    backbones.install(store, backbones.plan(store, ID))
    assert hub.sent[0] == (TEXT, size)
    assert all(start == 0 for name, start in hub.sent if name != TEXT)
    assert "tiny-clip" in backbones.installed(store)
    assert not list(store.root.rglob("*.part"))
    assert not list((store.root / "backbones" / ".downloads").iterdir())


def test_two_processes_do_not_write_to_one_file(hub, store):
    plan = backbones.plan(store, ID)

    def second(now):
        if now.stage.startswith("downloading"):
            with pytest.raises(WeightsError, match="another process is downloading someone/Tiny-CLIP"):
                backbones.install(store, plan)

    backbones.install(store, plan, second)
    assert "tiny-clip" in backbones.installed(store)


def test_what_a_broken_download_left_is_not_trusted(hub, store, monkeypatch):
    def kill(now):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backbones.install(store, backbones.plan(store, ID), kill)
    (part,) = store.root.rglob("*.part")
    part.write_bytes(bytes(10**6))  # longer than the file
    old = store.root / "backbones" / ".downloads" / "other@1"
    old.mkdir()
    os.utime(old, (0, 0))
    backbones.install(store, backbones.plan(store, ID))
    assert "tiny-clip" in backbones.installed(store)
    assert not old.exists()


def test_weights_that_differ_from_what_the_hub_states_are_refused(hub, store):
    hub.lie = "0" * 64
    with pytest.raises(WeightsCorrupt, match=r"model\.onnx does not have the sha256"):
        backbones.install(store, backbones.plan(store, ID))
    assert backbones.installed(store) == {}
    hub.lie = ""
    backbones.install(store, backbones.plan(store, ID))


def test_a_bad_model_from_the_hub_leaves_no_trace_in_the_store(hub, store):
    write_json(hub.folder / "preprocessor_config.json", {"size": {"longest_edge": 64}})
    with pytest.raises(WeightsError, match=r"preprocessor_config\.json describes pictures"):
        backbones.install(store, backbones.plan(store, ID))
    assert [path for path in store.root.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("status", "error", "source", "said"),
    [
        (401, "RepoNotFound", ID, "no model .* or it is private; check the name, or set HF_TOKEN"),
        (403, "GatedRepo", ID, "accepted its terms; accept them on the hub and set HF_TOKEN"),
        (200, "", "someone/else", "no model 'someone/else'"),
        (200, "", f"{ID}@v2", "no revision 'v2'"),
        (418, "Teapot", ID, "could not be fetched"),
    ],
)
def test_what_the_hub_may_answer(hub, store, status, error, source, said):
    hub.status, hub.error = status, error
    with pytest.raises(WeightsError, match=said):
        backbones.plan(store, source)
    assert not store.root.exists()


def test_a_hub_that_is_down(hub, store):
    hub.down = True
    with pytest.raises(WeightsError, match="could not be fetched from the hub"):
        backbones.plan(store, ID)


def test_offline_mode_uses_the_cache_or_says_why_not(hub, store, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(WeightsMissing, match="HF_HUB_OFFLINE forbids"):
        backbones.plan(store, f"{ID}@{COMMIT}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    fill_cache(hub)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    plan = backbones.plan(store, f"{ID}@{COMMIT}")
    assert (plan.download_bytes, plan.revision) == (0, COMMIT)
    backbones.install(store, plan)
    assert hub.sent == []


def test_a_full_disk_is_noticed_before_the_download(hub, store, monkeypatch):
    plan = backbones.plan(store, ID)
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(WeightsError, match=r"the download has .* MB are left"):
        backbones.install(store, plan)
    assert hub.sent == []


def test_one_precision_is_chosen():
    names = [*NEEDED, "onnx/vision_model_fp16.onnx", "onnx/text_model_fp16.onnx", "model.safetensors"]
    assert sorted(choose_files(ID, names)) == NEEDED
    assert "onnx/text_model_fp16.onnx" in choose_files(ID, names, "fp16")
    with pytest.raises(WeightsError, match="publishes fp32 and fp16, not int8"):
        choose_files(ID, names, "int8")


def test_without_onnx_files_nothing_is_chosen():
    for names in ([], ["config.json", "model.safetensors"], ["../onnx/text_model.onnx"], NEEDED[:-1]):
        with pytest.raises(WeightsError, match="publishes no ONNX files"):
            choose_files(ID, names)


@pytest.mark.parametrize("source", ["a", "a/b/c", "../a", "a/..", "a/b@", "/a/b", "a/b c", "a/b@v1 x", ""])
def test_what_is_no_hub_id(source):
    with pytest.raises(WeightsError, match="not a hub id"):
        split_hub_id(source)
