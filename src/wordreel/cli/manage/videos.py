"""`wordreel list`, `show` and `remove`: what is in the library."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wordreel.cli.console.common import (
    JsonOption,
    OpenLibrary,
    clock,
    count_of,
    long_time,
    print_result,
    printable,
)
from wordreel.cli.console.terminal import linked, padded
from wordreel.errors import LibraryError, NextStep

MOST_CLIPS = 12  # listed line by line
ASKS_ABOVE = 5  # files that are removed without a question


def list_videos(
    library: OpenLibrary,
    failures: Annotated[
        bool, typer.Option("--failures", help="List what could not be added, and why.")
    ] = False,
    sort: Annotated[
        Literal["path", "date"], typer.Option("--sort", help="By path, or by date, the newest first.")
    ] = "path",
    as_json: JsonOption = False,
) -> None:
    """List the files of the library.

    Example: wordreel list --sort date
    """
    stats = library.store.stats()
    if failures:
        rows = [{"path": failure.path, "reason": failure.reason} for failure in library.store.failures()]
        lines = [f"{printable(row['path'])}: {printable(row['reason'])}" for row in rows]
        print_result(as_json, rows, [*lines, f"{len(rows)} files could not be added."])
        return
    facts, lines = [], []
    by_date = sort == "date"
    videos = sorted(library.videos(), key=lambda video: video.paths)
    if by_date:
        videos.sort(key=lambda video: video.captured, reverse=True)
    for video in videos:
        names = ("content", "paths", "size", "analysis", "captured", "captured_from")
        facts.append({name: getattr(video, name) for name in names} | asdict(video.info))
        kinds = {"image": "picture", "features": "features"}
        length = kinds.get(video.info.kind) or kinds.get(video.info.container) or clock(video.info.duration)
        quick = "  (quick look)" if video.analysis == "quick" else ""
        day = f"{video.captured[:10]:<12}" if by_date else ""
        lines += [f"{day}{length:>10}  {linked(path)}{quick}" for path in video.paths]
    files, clips = count_of(stats.files, "file"), count_of(stats.clips, "clip")
    failed = count_of(stats.failures, "failure")
    lines += [
        f"{files}, {long_time(stats.seconds)} of media, {clips}, {stats.words} lines of words, {failed}"
    ]
    if stats.quick:
        lines += [f"{count_of(stats.quick, 'file')} known by key frames alone."]
        lines += ["→ run the thorough pass: `wordreel add --thorough`"]
    print_result(as_json, facts, lines)


def show(
    file: Annotated[Path, typer.Argument(help="A file of the library.")],
    library: OpenLibrary,
    every: Annotated[bool, typer.Option("--all", help="List every clip of a long video.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show one file: its clips, what the experts recognised, and its spoken and on-screen words.

    Example: wordreel show ~/Videos/party.mp4
    """
    facts = library.describe(file)
    info: dict[str, Any] = facts["info"]
    size = f", {info['width']} × {info['height']}" if info["width"] else ""
    length = "" if info["kind"] == "image" else f", {clock(info['duration'])}"
    quick = ", quick look only" if facts["analysis"] == "quick" else ""
    lines = [f"{printable(facts['path'])}: {info['kind']} ({info['container']}){length}{size}{quick}"]
    if facts["captured"]:
        date = facts["captured"].replace("T", " ")
        lines += [f"  {'recorded':<12} {date} (from the {facts['captured_from']})"]
    for expert in facts["experts"]:
        labels = "; ".join(expert["labels"]) if expert["labels"] else f"{expert['rows']} rows"
        labels += f" ({expert['eyes']})" if expert.get("eyes") else ""
        lines += [f"  {expert['name']:<12} {expert['reason'] or labels}"]
    clips = facts["clips"]
    if len(clips) > MOST_CLIPS and not every:
        first, last = clips[0]["start"], clips[-1]["end"]
        lines += [f"  {len(clips)} clips {clock(first)} – {clock(last)}  (--all lists them)"]
    else:
        lines += [f"  clip {clock(clip['start'])} – {clock(clip['end'])}" for clip in clips]
    for caption in facts["captions"]:
        lines += [f"  {padded(printable(caption['split']), 12)} {printable(caption['text'])}"]
    for words in facts["words"]:
        lines += [f"  {clock(words['start'])}  {words['expert']}: {printable(words['text'])}"]
    print_result(as_json, facts, lines)


def remove(
    library: OpenLibrary,
    paths: Annotated[list[Path] | None, typer.Argument(help="Files and folders to remove.")] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="Remove the files that are gone from their folders.")
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Delete tags and notes too; else they return with the file.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the files, remove none.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove many files, or tags, without asking.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove files from the library. The media themselves are never touched.

    Folders that are not there now (a disk not plugged in) stay unless you name them.

    Example: wordreel remove ~/Videos/old
    """
    if not paths and not missing:
        raise typer.BadParameter("name files or folders, or give --missing")
    for named in paths or ():
        if not library.remove(named, dry_run=True):
            raise LibraryError(
                f"{printable(named)} is not in the library", NextStep("see what is", command="list")
            )
    absent = library.missing() if missing else None
    asked = library.remove(*(paths or ()), dry_run=True) + (absent.gone if absent else [])
    listed = list(dict.fromkeys(asked))
    if not dry_run:
        if (len(listed) > ASKS_ABOVE or (forget and listed)) and not yes:
            _confirm(listed, forget)
        listed = library.remove(*paths, forget=forget) if paths else []
        listed += library.remove_missing(forget) if missing else []
    lines = [f"{'would remove' if dry_run else 'removed'} {printable(path)}" for path in listed]
    lines += [f"{count_of(len(listed), 'file')} {'would be ' if dry_run else ''}removed."]
    for folder, count in absent.absent.items() if absent else ():
        lines += [f"{printable(folder)} is not there now; {count_of(count, 'file')} in it stayed."]
    print_result(as_json, listed, lines)


def _confirm(paths: Sequence[str], forget: bool) -> None:
    for path in paths[:ASKS_ABOVE]:
        typer.echo(printable(path), err=True)
    if len(paths) > ASKS_ABOVE:
        typer.echo(f"and {len(paths) - ASKS_ABOVE} more", err=True)
    if not sys.stdin.isatty():
        typer.echo("There is no terminal to ask on; agree with --yes.", err=True)
        raise typer.Exit(1)
    tags = ", and delete their tags and notes" if forget else ""
    typer.confirm(f"Remove {count_of(len(paths), 'file')} from the library{tags}?", abort=True, err=True)
