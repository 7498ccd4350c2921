"""How fast the thorough pass is, stage by stage, beside another checkout in the same run.

    python benchmarks/add.py CLIPS [--seconds 60] [--height 1080] [--codec h264] [--files 1] [--as-is]
                             [--against CHECKOUT] [--rounds 2] [--footage FOLDER] [--out FILE]

Footage is assembled from the clips of a folder (`benchmarks/footage.py`), scaled up, with their sound; with
`--as-is` the clips themselves are added, as many as fill `--seconds`. `--footage` keeps it for the next run.
`add` runs in processes of their own, this checkout and the other in turns, with all default experts; loading
them is not counted. `times_real_time` and `ratio` are of wall time, `cpu_ratio` is of processor time, the
best of the rounds; `peak_mb` is the most that `add` and its decoders had in memory together. The tracks of
both are compared, and `words_in_common` is the share of the words they read or hear that both have, in order.
`profile` is each stage alone, in this process, on the first ten minutes. `--out` also writes a table.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np

PROFILED = 600.0  # seconds
HERE = Path(__file__).resolve().parents[1]


def cpu_seconds() -> float:
    """Processor time of this process and of the decoders that ended."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in both)


def add_once(folder: Path, library: Path) -> dict[str, Any]:
    """Add a folder with whatever checkout this process has imported, and store the tracks beside it."""
    from wordreel.catalogue.store import LibraryStore
    from wordreel.experts import registry
    from wordreel.ingest.add import add, default_jobs
    from wordreel.media import Fence
    from wordreel.runtime.sessions import shared_by

    with shared_by(default_jobs()):
        experts = [registry.load(name) for name in registry.default_names()]
    with LibraryStore.create_or_open(library) as store:
        began, cpu = time.perf_counter(), cpu_seconds()
        with Fence() as fence:
            report = add(store, [folder], experts, fence)
            fence.probe(next(folder.iterdir()))  # after the last file its decoder has ended, and counts
        seconds, cpu = time.perf_counter() - began, cpu_seconds() - cpu
        assert not report.failed, report.failed
        values: dict[str, Any] = {}
        words: dict[str, list[str]] = {}
        for row in store.tracks():
            track: Any = store.track(row.content, row.expert)
            key = f"{row.expert}/{row.content}"
            if hasattr(track, "values"):
                values[key] = track.values
                words[key] = [word.text for word in track.words]
        np.savez(library / "tracks.npz", **values)
    return {"seconds": seconds, "cpu": cpu, "media": report.media_seconds, "words": words}


def tree_memory(root: int) -> float:
    """Megabytes of a process and all it started; shared pages count once."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    total, waiting = 0.0, [root]
    while waiting:
        number = waiting.pop()
        waiting += parents.get(number, [])
        try:
            text = Path(f"/proc/{number}/smaps_rollup").read_text()
        except OSError:
            continue
        total += next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)
    return total / 1024


def run_checkout(checkout: Path, folder: Path, library: Path) -> dict[str, Any]:
    """`add_once` in a process that imports this checkout, with the peak of its memory."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--one-add", str(folder), str(library)],
        env={**os.environ, "PYTHONPATH": str(checkout / "src")},
        stdout=subprocess.PIPE,
        text=True,
    )
    peak = 0.0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.3):
            peak = max(peak, tree_memory(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    printed, _ = process.communicate()
    done.set()
    watcher.join()
    if process.returncode:
        raise SystemExit(f"adding with {checkout} failed")
    return {**json.loads(printed.splitlines()[-1]), "peak_mb": peak}


def differences(ours: Path, theirs: Path) -> dict[str, Any]:
    """Per expert, the smallest cosine between rows of both, or that their rows do not match."""
    found: dict[str, Any] = {}
    with np.load(ours / "tracks.npz") as a, np.load(theirs / "tracks.npz") as b:
        for key in sorted({*a.files, *b.files}):
            expert = key.split("/")[0]
            if key not in a or key not in b or a[key].shape != b[key].shape:
                found[expert] = "other rows"
            elif not isinstance(found.get(expert), str):
                x, y = a[key].astype(np.float64), b[key].astype(np.float64)
                cosine = (x * y).sum(1) / np.maximum(
                    np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1), 1e-12
                )
                found[expert] = min(found.get(expert, 1.0), round(float(cosine.min()), 6))
    return found


def words_in_common(ours: dict[str, list[str]], theirs: dict[str, list[str]]) -> dict[str, float]:
    """Per expert, 2 · common / (ours + theirs) over the words of all files, common ones in the same order."""
    counts: dict[str, list[int]] = {}
    for key in sorted({*ours, *theirs}):
        one, other = (" ".join(words.get(key, [])).split() for words in (ours, theirs))
        same = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
        count = counts.setdefault(key.split("/")[0], [0, 0])
        count[0] += 2 * sum(block.size for block in same)
        count[1] += len(one) + len(other)
    return {expert: round(common / total, 3) for expert, (common, total) in counts.items() if total}


def profile(files: list[Path]) -> tuple[float, dict[str, dict[str, float]]]:
    """The seconds of media, and processor and wall seconds of each stage alone, one thread a network."""
    from wordreel.catalogue.tracks import encode
    from wordreel.experts import ocr_reader, registry
    from wordreel.ingest.expert_runner import ExpertLane, ExpertRunner
    from wordreel.ingest.extract import content_hash
    from wordreel.media import Fence
    from wordreel.media.types import FrameNeed
    from wordreel.runtime.sessions import shared_by
    from wordreel.types import Track
    from wordreel.util.machine import cores

    stages: dict[str, dict[str, float]] = {}

    def stage(name: str, work: Callable[[], Any]) -> Any:
        began, cpu = time.perf_counter(), cpu_seconds()
        result = work()
        stages[name] = {"cpu": cpu_seconds() - cpu, "wall": time.perf_counter() - began}
        return result

    def decode(needs: list[Any]) -> list[list[Any]]:
        with Fence() as fence:  # its end counts the time of the decoders
            windows = [list(fence.stream(path, needs, window=5.0)) for path in files]
            fence.probe(files[0])
            return windows

    with shared_by(cores()):
        experts = [registry.load(name) for name in registry.default_names()]
    needs = list(dict.fromkeys(expert.card.need for expert in experts))
    stage("hashing", lambda: [content_hash(path) for path in files])
    stage("decoding alone", lambda: decode([FrameNeed(0.1, 48)]))
    windows = stage("decoding, scaling and resampling for all experts", lambda: decode(needs))
    parts = [0.0, 0.0]
    plain_read = ocr_reader.read

    def timed_read(engine: Any, *image: Any, **part: Any) -> Any:
        def timed_engine(picture: Any) -> Any:
            began = time.perf_counter()
            result = engine(picture)
            recognition = (result.elapse_list or [0.0])[-1] or 0.0  # empty where nothing was detected
            parts[0] += time.perf_counter() - began - recognition
            parts[1] += recognition
            return result

        return plain_read(timed_engine, *image, **part)

    ocr_reader.read = timed_read
    tracks = []
    runner = ExpertRunner(experts)

    def run_alone(name: str) -> list[Any]:
        outputs: list[Any] = []
        for file in windows:
            lane = ExpertLane(runner, name)
            for window in file:
                part = window.parts[needs.index(runner.experts[name].card.need)]
                if part is not None:
                    lane.push(part, window.end)
            lane.flush()
            lane.close()
            outputs += lane.outputs
        return outputs

    for expert in experts:
        tracks += stage(expert.card.name, lambda: run_alone(expert.card.name))  # noqa: B023
    ocr_reader.read = plain_read
    stages["ocr: detection"] = {"wall": parts[0]}
    stages["ocr: recognition"] = {"wall": parts[1]}
    stage("encoding tracks", lambda: [encode(track) for track in tracks if isinstance(track, Track)])
    return sum(file[-1].end for file in windows), stages


def table(result: dict[str, Any]) -> str:
    """The result as Markdown."""
    lines = [
        f"{result['footage']}; {result['cores']} cores, load average {result['load_average']}.",
        "",
        "| checkout | × real time | processor seconds per second | peak MB |",
        "|---|--:|--:|--:|",
    ]
    lines += [
        f"| {name} | {row['times_real_time']} | {row['cpu_per_second']} | {row['peak_mb']} |"
        for name, row in result["add"].items()
    ]
    if "ratio" in result:
        same = ", ".join(f"{name} {value}" for name, value in result["smallest_cosine"].items())
        common = ", ".join(f"{name} {value:.1%}" for name, value in result["words_in_common"].items())
        lines += [
            "",
            f"Ratio of wall time {result['ratio']}, of processor time {result['cpu_ratio']}; words in"
            f" common: {common}; smallest cosine between rows: {same}.",
        ]
    lines += ["", "| stage | × real time by processor | × real time by wall |", "|---|--:|--:|"]
    lines += [
        f"| {name} | {row.get('cpu_times_real_time', '–')} | {row['wall_times_real_time']} |"
        for name, row in result["profile"].items()
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("clips", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--height", type=int, default=1080)
    parser.add_argument("--codec", choices=["h264", "hevc"], default="h264")
    parser.add_argument("--files", type=int, default=1, help="files of that length")
    parser.add_argument("--as-is", action="store_true", help="add the clips themselves")
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--footage", type=Path, help="keep the assembled footage here")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        folder, what = gather(options, root)
        checkouts = {"this": HERE} | ({"other": options.against.resolve()} if options.against else {})
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in checkouts}
        for number in range(options.rounds):
            for name, checkout in checkouts.items():
                runs[name].append(run_checkout(checkout, folder, root / f"{name}{number}"))
                print(name, {k: v for k, v in runs[name][-1].items() if k != "words"}, file=sys.stderr)
        media = runs["this"][0]["media"]
        best = {
            name: {key: min(one[key] for one in many) for key in ("seconds", "cpu")}
            | {"peak_mb": max(one["peak_mb"] for one in many)}
            for name, many in runs.items()
        }
        result: dict[str, Any] = {
            "footage": f"{media:.0f} seconds of {what}",
            "cores": len(os.sched_getaffinity(0)),
            "load_average": round(os.getloadavg()[0], 1),
            "add": {
                name: {
                    "times_real_time": round(media / row["seconds"], 2),
                    "cpu_per_second": round(row["cpu"] / media, 3),
                    "peak_mb": round(row["peak_mb"]),
                }
                for name, row in best.items()
            },
        }
        if options.against:
            result |= {
                "ratio": round(best["other"]["seconds"] / best["this"]["seconds"], 2),
                "cpu_ratio": round(best["other"]["cpu"] / best["this"]["cpu"], 2),
                "words_in_common": words_in_common(runs["this"][0]["words"], runs["other"][0]["words"]),
                "smallest_cosine": differences(root / "this0", root / "other0"),
            }
        sys.path.insert(0, str(HERE / "src"))
        profiled, stages = profile(first_files(folder))
        result["profile"] = {
            name: {
                f"{kind}_times_real_time": round(profiled / max(value, 1e-3), 1)
                for kind, value in row.items()
            }
            for name, row in stages.items()
        }
    print(json.dumps(result, indent=2))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=2) + "\n")
        options.out.with_suffix(".md").write_text(table(result))


def first_files(folder: Path) -> list[Path]:
    """The first files of a folder, for the decoded frames of which there is memory: ten minutes."""
    import av

    files, seconds = [], 0.0
    for path in sorted(folder.iterdir()):
        with av.open(str(path)) as opened:
            seconds += (opened.duration or 0) / av.time_base
        files.append(path)
        if seconds >= PROFILED:
            break
    return files


def gather(options: argparse.Namespace, root: Path) -> tuple[Path, str]:
    """The folder to add, and what is in it."""
    from footage import assemble, read_frames

    clips = sorted(
        path for path in options.clips.iterdir() if path.suffix in (".mp4", ".webm", ".mkv", ".avi")
    )
    clips = clips[3::7] + clips  # from all over the folder
    folder = root / "footage"
    folder.mkdir()
    if options.as_is:
        total, count = 0.0, 0
        while total < options.seconds:
            images, rate = read_frames(clips[count])
            total += len(images) / rate
            (folder / clips[count].name).symlink_to(clips[count].resolve())
            count += 1
        return folder, f"{count} clips as they are"
    kept = options.footage or root
    kept.mkdir(parents=True, exist_ok=True)
    for number in range(options.files):
        path = kept / f"{options.height}_{options.codec}_{options.seconds:g}_{number}.mp4"
        if not path.exists():
            assemble(clips[number * 20 :], path, options.seconds, options.height, options.codec)
        (folder / path.name).symlink_to(path.resolve())
    return folder, f"{options.height}p {options.codec} with sound in {options.files} files"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one-add"]:
        print(json.dumps(add_once(Path(sys.argv[2]), Path(sys.argv[3]))))
    else:
        main()
