"""Hits as a playlist that plays each moment alone, in VLC and players that know its options."""

from __future__ import annotations

from collections.abc import Sequence

from wordreel.search.hit_lists.moments import ListedMoment


def m3u(moments: Sequence[ListedMoment]) -> str:
    """The playlist as UTF-8 text; files are URLs, so that no name can break a line."""
    lines = ["#EXTM3U"]
    for moment in moments:
        title = f"{moment.name} ({moment.comment})" if moment.comment else moment.name
        lines.append(f"#EXTINF:{moment.end - moment.start:.0f},{title}")
        if moment.kind != "image":
            lines.append(f"#EXTVLCOPT:start-time={moment.start:.3f}")
            lines.append(f"#EXTVLCOPT:stop-time={moment.end:.3f}")
        lines.append(moment.address)
    return "\n".join(lines) + "\n"
