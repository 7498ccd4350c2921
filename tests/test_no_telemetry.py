"""wordreel talks to nobody: importing it, adding, searching and evaluating open no connection."""

import json
import os
import subprocess
import sys
from pathlib import Path

from wordreel.demo.film import title_card, write_film

ROOT = Path(__file__).parents[1]
SCRIPT = """
import json, socket, sys

heard = []
NETWORK = ("socket.connect", "socket.getaddrinfo", "socket.gethostby", "socket.sendto", "urllib.Request")

def hear(event, arguments):
    if event.startswith(NETWORK):
        heard.append(f"{event} {arguments!r:.200}")

sys.addaudithook(hear)
try:
    socket.create_connection(("127.0.0.1", 0), timeout=1)
except OSError:
    pass
caught = len(heard)  # the hook hears a connection that is tried
heard.clear()

import cv2, faster_whisper, huggingface_hub, onnxruntime, rapidocr, tokenizers  # what experts and models load
from tests.example_library import ColourModel
from typer.testing import CliRunner
import wordreel, wordreel.serve.app
from wordreel.cli.app import app
from wordreel.models import model_store

model_store.open_model = lambda *given: ColourModel()  # the real one only takes longer

done = {}
for name, words in json.loads(sys.argv[1]).items():
    result = CliRunner().invoke(app, words)
    done[name] = [result.exit_code, result.output[-500:], heard[:]]
print(json.dumps({"caught": caught, "done": done}))
"""


def test_the_main_commands_open_no_connection(tmp_path):
    media, library = tmp_path / "media", str(tmp_path / "library")
    media.mkdir()
    for number, name in enumerate(("bakery", "station")):
        write_film(media / f"{name}.mp4", title_card([name], 2, (60 * number, 40, 50)))
    captions = tmp_path / "captions.json"
    captions.write_text(json.dumps({"bakery": ["a bakery", "bread"], "station": ["a station", "a train"]}))
    commands = {
        "add": ["add", str(media), "--library", library, "--experts", "shots"],
        "search": ["search", "a red sign", "--library", library],
        "evaluate": ["evaluate", "captions", str(captions), "--library", library],
        "verify": ["verify", "--library", library],
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(commands)],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["caught"] > 0
    assert set(found["done"]) == set(commands)
    for name, (code, output, heard) in found["done"].items():
        assert heard == [], name
        assert code == 0, output
