"""The second process: it reads commands for its `Player` from standard input, one JSON object a line.

`{"do": "add", "pause": 2}` stops at the third report of progress, says so, and waits for `{"do": "go on"}`:
whoever sent it may look at the library meanwhile, or kill this process.
"""

import json
import subprocess
import sys
import traceback
from contextlib import suppress
from pathlib import Path

from tests.properties.player import Player, fakes

from wordreel import errors
from wordreel.errors import WordreelError

ROOT = Path(__file__).parents[2]


class SecondProcess:
    """This side of the pipe. Errors of the other side are raised here, as what they are."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.properties.second_process"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.busy = self.paused = False

    def __call__(self, do: str, *arguments, **more):
        self._send({"do": do, "arguments": arguments, **more})
        return self._receive()

    def go_on(self):
        """Let a paused command end; its answer."""
        self._send({"do": "go on"})
        return self._receive()

    def kill(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait()
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()

    def _send(self, message: dict) -> None:
        self.busy = True
        print(json.dumps(message), file=self.process.stdin, flush=True)

    def _receive(self):
        line = self.process.stdout.readline()
        assert line, "the second process has died"
        answer = json.loads(line)
        self.busy = self.paused = answer.get("paused", False)
        assert "crash" not in answer, answer["crash"]
        if "error" in answer:
            raise getattr(errors, answer["error"])(answer["message"])
        return answer.get("value")


def _answer(**message) -> None:
    print(json.dumps(message), flush=True)


def _pause_at(number: int):
    """A callback of progress that waits at the report with this number, if it comes to that."""
    left = number

    def on_progress(now) -> None:
        nonlocal left
        left -= 1
        if left == -1:
            _answer(paused=True)
            assert json.loads(sys.stdin.readline())["do"] == "go on"

    return on_progress


def main() -> None:
    player: Player | None = None
    for line in sys.stdin:
        command = json.loads(line)
        do, arguments = command["do"], command["arguments"]
        more = {"on_progress": _pause_at(command["pause"])} if "pause" in command else {}
        try:
            if do == "open":
                if player is not None:
                    player.close()
                player = Player(*arguments)
                _answer()
            else:
                _answer(value=getattr(player, do)(*arguments, **more))
        except WordreelError as error:
            _answer(error=type(error).__name__, message=error.message)
        except Exception:
            _answer(crash=traceback.format_exc())


if __name__ == "__main__":
    with fakes():
        main()
