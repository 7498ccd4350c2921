"""A worker that is an actor of a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import wordreel
from wordreel.errors import NextStep, WordreelError
from wordreel.workers.executor import Executor, OnEvent, Outcome, WorkerLost

POLL = 1.0  # seconds between looks at how far a call is
PER_GPU = 2  # workers that share a GPU: one decodes while the other computes


def ray_executor(address: str | None = None, count: int | None = None, per_gpu: int = PER_GPU) -> Executor:
    """Return an executor over the workers of a Ray cluster.

    Args:
        address: `host:port` or `ray://host:port`; if None the cluster of `$RAY_ADDRESS`, else one that runs
            on this machine, else a new one that ends with the executor.
        count: How many workers; as many as the cluster has room for if None.
        per_gpu: Workers that share a GPU; with 1, all workers have one where there are GPUs.

    Raises:
        WordreelError: Ray is not installed, or the cluster cannot be reached.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        step = NextStep("install it: pip install 'wordreel[ray]'")
        raise WordreelError("Ray is not installed", step) from error
    ours = not ray.is_initialized()
    if ours:
        try:
            ray.init(address=address, log_to_driver=False, logging_level="error")
        except Exception as error:
            step = NextStep("start one with `ray start --head`, or check the address and the token")
            raise WordreelError(f"no Ray cluster at {address or 'this machine'}: {error}", step) from error
    shares = worker_shares(ray.cluster_resources(), count, per_gpu)
    actor = ray.remote(_Actor)
    return Executor(
        lambda number: RayWorker(actor, *shares[number]), len(shares), ray.shutdown if ours else lambda: None
    )


def worker_shares(
    resources: Mapping[str, float], count: int | None = None, per_gpu: int = PER_GPU
) -> list[tuple[int, float]]:
    """Return the cores and the part of a GPU of each worker: GPUs first, then a worker for each other core.

    Where each worker has a GPU of its own, there are none without.

    >>> worker_shares({"CPU": 4.0, "GPU": 1.0})
    [(1, 0.5), (1, 0.5), (1, 0.0), (1, 0.0)]
    >>> worker_shares({"CPU": 2.0}, count=1)
    [(1, 0.0)]
    >>> worker_shares({"CPU": 8.0, "GPU": 2.0}, per_gpu=1)
    [(1, 1.0), (1, 1.0)]
    """
    cores, gpus = max(1, int(resources.get("CPU", 1))), int(resources.get("GPU", 0))
    wanted = count or (gpus if per_gpu == 1 and gpus else cores)
    on_gpu = min(wanted, per_gpu * gpus)
    return [(1, 1 / per_gpu)] * on_gpu + [(1, 0.0)] * (wanted - on_gpu)


class _Actor:
    """Runs in the cluster. Calls run on one of its threads and `latest` on another."""

    def __init__(self, cores: int) -> None:
        os.environ["WORDREEL_THREADS"] = str(cores)
        self._latest: Any = None

    def about(self) -> tuple[str, str]:
        import ray

        return wordreel.__version__, ray.get_runtime_context().get_node_id()

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], reports: bool) -> Outcome:
        self._latest = None
        return Outcome.of(function, *args, **({"report": self._report} if reports else {}))

    def latest(self) -> Any:
        return self._latest

    def _report(self, event: Any) -> None:
        self._latest = event


class RayWorker:
    """One actor. Of the events of a call only the latest is passed on, once a second."""

    def __init__(self, actor: Any, cores: int, gpus: float) -> None:
        self._actor = actor.options(num_cpus=cores, num_gpus=gpus, max_concurrency=2).remote(cores)
        self._node = ""

    def wait_ready(self) -> None:
        """Wait until the worker runs, and check that it has this version."""
        import ray

        version, self._node = ray.get(self._actor.about.remote())
        if version != wordreel.__version__:
            raise WordreelError(
                f"a node of the cluster has wordreel {version}, and this is {wordreel.__version__}",
                NextStep("install the same version on every node"),
            )

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], on_event: OnEvent | None) -> Outcome:
        """Call a function on the worker, and pass on its events."""
        import ray
        from ray.exceptions import RayError, RayTaskError

        try:
            result = self._actor.call.remote(function, args, on_event is not None)
            while on_event is not None and not ray.wait([result], timeout=POLL)[0]:
                event = ray.get(self._actor.latest.remote())
                if event is not None:
                    on_event(event)
            outcome: Outcome = ray.get(result)
        except RayTaskError as error:  # the call could not even be read there
            raise WordreelError(
                f"a node of the cluster cannot run this call: {error.cause}",
                NextStep("install the same version of wordreel, with the same extras, on every node"),
            ) from error
        except RayError as error:
            self.stop()
            alive = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
            raise WorkerLost(str(error).splitlines()[0], node_lost=self._node not in alive) from error
        return outcome

    def stop(self) -> None:
        """End the worker."""
        import ray

        if ray.is_initialized():
            ray.kill(self._actor)
