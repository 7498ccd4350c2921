"""Scripts run as two processes of one world. As a script it loads torch once and forks both."""

import os
import socket
import subprocess
import sys
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory

SIZE = 2


def together(code: str, *arguments: str, own_device: bool = True) -> tuple[list[int], list[tuple[str, str]]]:
    """Run a script as two processes of one world; their exit codes and outputs."""
    root = Path(__file__).parents[2]
    paths = [str(root), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    with TemporaryDirectory() as folder:
        command = [sys.executable, __file__, folder, str(int(own_device)), code, *arguments]
        done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        outputs = [
            tuple((Path(folder) / f"{rank}.{stream}").read_text() for stream in ("out", "err"))
            for rank in range(SIZE)
        ]
    return [int(word) for word in done.stdout.split()], outputs


def main() -> None:
    folder, own_device, code, *arguments = sys.argv[1:]
    import torch._dynamo  # what an optimiser's first step would load in both
    import torch.utils.tensorboard  # noqa: F401 - as above

    import wordreel.plots
    import wordreel.training.loop

    wordreel.plots.line_chart = lambda *given, **named: "<svg/>"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(SIZE):
        child = os.fork()
        if child == 0:
            for stream, number in (("out", 1), ("err", 2)):
                os.dup2(os.open(f"{folder}/{rank}.{stream}", os.O_WRONLY | os.O_CREAT), number)
            os.environ |= {
                "WORLD_SIZE": str(SIZE),
                "RANK": str(rank),
                "LOCAL_RANK": str(rank if int(own_device) else 0),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            }
            sys.argv[1:] = arguments
            ended = 1
            try:
                exec(code, {"__name__": "__main__"})  # noqa: S102 - the scripts of these tests
                ended = 0
            except BaseException:  # whatever it was, the test is to hear of it
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(ended)
        children.append(child)
    print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))


if __name__ == "__main__":
    main()
