"""Runs that are killed again and again, each beside one that never was.

As a script it proves the cases that it is told, one line of JSON each. It loads torch once and forks a
process for every attempt: a killed one takes nothing with it.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from functools import partial
from pathlib import Path

import torch
import torch._dynamo  # what an optimiser's first step would load in every process
from safetensors import safe_open
from tests.lab.training import kill_cases
from tests.lab.training.forked import forked
from tests.lab.training.worlds import fork_world

import wordreel.lab.plots
from wordreel.lab.training import logs, loop
from wordreel.lab.training.session import Session
from wordreel.util import atomic

WAYS = ("step", "stepped", "begun", "half", "written", "renamed", "measure", "measured", "logs", "clock")
TIMING = ("seconds", "steps_per_second")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def at_call(number, place, name, before=None, after=None):
    """Let the call `number` of a function be its process's last."""
    old, calls = getattr(place, name), [0]

    def called(*given, **named):
        calls[0] += 1
        if calls[0] == number and before:
            before(*given)
        found = old(*given, **named)
        if calls[0] == number and after:
            after(*given)
        return found

    setattr(place, name, called)


def arm(way, number):
    """Choose where this process dies; "clock" is up to the parent."""

    def gone(*given):
        die()

    def half(path, data):
        with path.open("wb") as out:
            out.write(data[: len(data) // 2])
            out.flush()
        die()

    def begun(path, data):
        path.write_bytes(b"")
        die()

    if way == "step":
        at_call(number, Session, "step", before=gone)
    elif way == "stepped":
        at_call(number, Session, "step", after=gone)
    elif way in ("begun", "half"):
        at_call(number, atomic, "write_and_sync", before=begun if way == "begun" else half)
    elif way == "written":
        at_call(number, atomic, "write_and_sync", after=gone)
    elif way == "renamed":
        at_call(number, atomic, "sync_dir", before=gone)
    elif way == "measure":
        at_call(number, Session, "measure", before=gone)
    elif way == "measured":
        at_call(number, Session, "measure", after=gone)
    elif way == "logs":
        at_call(number, loop, "write_logs", after=gone)
        at_call(2 * number, logs, "_write", before=gone)


def trained(case, folder, save_steps, world=1, doomed=lambda rank: None):
    """One attempt at a run, by one process or by several of one world."""
    made, held = case
    if world == 1:
        doomed(0)
        loop.train(made, held, folder, device="cpu", resume=True, save_steps=save_steps)
        return

    def rank_work(rank):
        doomed(rank)
        try:
            loop.train(made, held, folder, device="cpu", resume=True, save_steps=save_steps)
        except RuntimeError as error:
            print("lost its world:", str(error).splitlines()[0][:90], file=sys.stderr)
            return 7
        return 0

    ends = fork_world(world, rank_work)
    if any(os.WIFSIGNALED(end) and os.WTERMSIG(end) == signal.SIGKILL for end in ends):
        die()  # as the parent would see it of a single process
    if any(ends):
        raise RuntimeError(f"the processes ended with {ends}")


def left_behind(folder):
    """Everything of a run that must not depend on its kills."""
    found = {}
    for part in ("last", "best"):
        for name in ("model.safetensors", "model.json"):
            found[f"{part}/{name}"] = (folder / part / name).read_bytes()
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    found["history"] = [{k: v for k, v in row.items() if k not in TIMING} for row in rows]
    table = [line.split(",") for line in (folder / "log.csv").read_text().splitlines()]
    kept = [place for place, name in enumerate(table[0]) if name not in TIMING]
    found["log.csv"] = [[row[place] for place in kept] for row in table]
    with safe_open(folder / "state.safetensors", "pt") as state:
        facts = json.loads(state.metadata()["wordreel"])
        facts |= facts.pop("run")
        found["state"] = {name: state.get_tensor(name).numpy().tobytes() for name in state.keys()}  # noqa: SIM118
    facts["history"] = found["history"]
    found["facts"] = {k: v for k, v in facts.items() if k not in TIMING}
    return found


def proved(name, folder, seed=0, kills=4):
    """Train whole, train killed, compare; what was done and what differs."""
    chance = random.Random(f"{name} {seed}")
    case = kill_cases.CASES[name](folder)
    world = {"world": 2, "three": 3}.get(name.split()[0], 1)
    began = time.perf_counter()
    if not forked(lambda: trained(case, folder / "whole", 0, world)):
        raise RuntimeError(f"{name}: the whole run was killed")
    seconds = time.perf_counter() - began
    steps = json.loads((folder / "whole/log.jsonl").read_text().splitlines()[-1])["step"]
    whole, killed, differ = left_behind(folder / "whole"), [], []
    for _ in range(5):  # a run that ended before it was killed often enough begins anew
        if len(killed) >= kills:
            break
        shutil.rmtree(folder / "cut", ignore_errors=True)
        done = False
        while not done:
            way = chance.choice(WAYS[:-1] if world > 1 else WAYS)
            number = chance.randint(1, max(2, steps // 4) if "step" in way else 3)
            every, which = chance.choice([1, 1, 2, 3, 5]), chance.randrange(world)
            limit = chance.uniform(0.0, seconds) if way == "clock" else 0.0

            def doomed(rank, way=way, number=number, which=which):
                if rank == which and len(killed) < kills:
                    arm(way, number)

            enough = len(killed) >= kills
            attempt = partial(trained, case, folder / "cut", every, world, doomed)
            done = forked(attempt, 0.0 if enough else limit)
            if not done:
                killed.append(f"{way} {number}")
        cut = left_behind(folder / "cut")
        differ += [key for key in whole if whole[key] != cut[key]]
    again = forked(lambda: trained(case, folder / "cut", 0, world, lambda rank: arm("step", 1)))
    if not again:
        differ.append("resumed when finished, it trained")
    elif left_behind(folder / "cut") != cut:
        differ.append("resumed when finished, it changed")
    return {"case": name, "steps": steps, "killed": killed, "differ": differ, "seconds": round(seconds, 2)}


def main():
    root, seed, kills, *names = sys.argv[1:]
    torch.set_num_threads(1)
    wordreel.lab.plots.line_chart = lambda *given, **named: "<svg/>"  # charts are not compared
    for name in names or kill_cases.CASES:
        folder = Path(root) / name.replace(" ", "_")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            found = proved(name, folder, int(seed), int(kills))
        except (RuntimeError, OSError) as error:
            found = {"case": name, "killed": [], "differ": [str(error)]}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
