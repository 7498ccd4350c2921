"""Scripts run as two processes of one world. As a script it loads torch once and forks both."""

import contextlib
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

SIZE = 2


def together(
    *scripts: str, argument: str, own_device: bool = True
) -> tuple[list[int], list[tuple[str, str]]]:
    """Run each script as two processes of one world, in turn; all exit codes, and what each rank printed."""
    root = Path(__file__).parents[3]
    paths = [str(root), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    with TemporaryDirectory() as folder:
        command = [sys.executable, __file__, folder, str(int(own_device)), argument, *scripts]
        done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        files = [Path(folder) / str(rank) for rank in range(SIZE)]
        outputs = [
            (file.with_suffix(".out").read_text(), file.with_suffix(".err").read_text()) for file in files
        ]
    return [int(word) for word in done.stdout.split()], outputs


@contextlib.contextmanager
def meeting_place() -> Iterator[dict[str, str]]:
    """The environment in which processes of one world find each other.

    A process of its own holds the store, on the port that the system gives to it: a port that was free a
    moment ago may be another test's by the time a rank binds it. This process starts no threads.
    """
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            from torch.distributed import TCPStore  # type: ignore[attr-defined] # torch does not say that it exports it

            store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
            os.write(writes, str(store.port).encode())
            signal.pause()
        finally:
            os._exit(1)
    os.close(writes)
    try:
        yield {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": os.read(reads, 16).decode(),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "GLOO_SOCKET_IFNAME": "lo",
        }
    finally:
        os.close(reads)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def fork_world(size: int, work: Callable[[int], int], own_device: bool = True) -> list[int]:
    """Do `work` as every rank of a world; their wait statuses. Who fails takes the others along."""
    with meeting_place() as place:
        ranks = {}
        for rank in range(size):
            child = os.fork()
            if child == 0:
                os.environ |= {
                    **place,
                    "WORLD_SIZE": str(size),
                    "RANK": str(rank),
                    "LOCAL_RANK": str(rank if own_device else 0),
                }
                ended = 1
                try:
                    ended = work(rank)
                except BaseException:  # whatever it was, the test is to hear of it
                    traceback.print_exc()
                finally:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(ended)
            ranks[child] = rank
        statuses = [0] * size
        while ranks:
            child, status = os.waitpid(-1, 0)
            statuses[ranks.pop(child)] = status
            if status:
                for other in ranks:
                    os.kill(other, signal.SIGTERM)
    return statuses


def main() -> None:
    folder, own_device, argument, *scripts = sys.argv[1:]

    import wordreel.lab.plots
    import wordreel.lab.training.loop

    wordreel.lab.plots.line_chart = lambda *given, **named: "<svg/>"

    def work(script: str, rank: int) -> int:
        for stream, number in (("out", 1), ("err", 2)):
            os.dup2(os.open(f"{folder}/{rank}.{stream}", os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
        sys.argv[1:] = [argument]
        exec(script, {"__name__": "__main__"})  # noqa: S102 - the scripts of these tests
        return 0

    for script in scripts:
        print(*map(os.waitstatus_to_exitcode, fork_world(SIZE, partial(work, script), bool(int(own_device)))))


if __name__ == "__main__":
    main()
