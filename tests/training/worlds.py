"""Scripts run as several processes of one world."""

import os
import socket
import subprocess
import sys
from pathlib import Path


def together(code: str, *arguments: str, own_device: bool = True) -> tuple[list[int], list[tuple[str, str]]]:
    """Run a script as two processes of one world; their exit codes and outputs."""
    root = Path(__file__).parents[2]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(2):
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(root), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]),
            "OMP_NUM_THREADS": "1",
            "WORLD_SIZE": "2",
            "RANK": str(rank),
            "LOCAL_RANK": str(rank if own_device else 0),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        children.append(
            subprocess.Popen(
                [sys.executable, "-c", code, *arguments],
                cwd=root,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    outputs = [child.communicate(timeout=120) for child in children]
    return [child.returncode for child in children], outputs
