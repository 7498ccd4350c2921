"""Open the executor that `--on` names."""

from __future__ import annotations

from wordreel.workers.executor import Executor

LOCAL, RAY = "local", "ray"


def open_executor(on: str, count: int | None = None, *, own_gpus: bool = False) -> Executor:
    """Return the executor that a word or an address names.

    Args:
        on: `local` for processes of this machine, `ray` for the Ray cluster of this machine or of
            `$RAY_ADDRESS`, or the address of a Ray cluster.
        count: How many workers; one for each core if None.
        own_gpus: Give each worker a GPU of its own, where there are GPUs, instead of sharing them.

    Raises:
        WordreelError: Ray is not installed, or the cluster cannot be reached.
    """
    if on == LOCAL:
        from wordreel.util.cores import cores
        from wordreel.workers.local_worker import local_executor

        return local_executor(count or cores())
    from wordreel.workers.ray_worker import PER_GPU, ray_executor

    return ray_executor(None if on == RAY else on, count, 1 if own_gpus else PER_GPU)
