// Before anything is asked: what is here, or how to begin.
import { api, media, thumb, written } from "./api.js";
import { h } from "./dom.js";
import { length, plural } from "./format.js";
import { grid } from "./grid.js";
import { notice } from "./notice.js";

const SHOWN = 12;

export async function home(app, signal) {
  const { total, items } = await api.videos({ limit: SHOWN }, signal);
  if (!total) return empty(app.status.read_only);
  const { seconds } = app.status;
  return [h("h2", { class: "kicker" }, `${plural(total, "file")}${seconds ? `, ${length(seconds)}` : ""} to search`),
    grid(items.map(asHit), { view: "search" }, "Files of the library")];
}

/** What an empty library says; `above` where the fields to add with are on the same page. */
export function empty(readOnly, above = false) {
  if (readOnly) return notice("This library is empty", "It is served for reading only. Add videos on its machine with: wordreel add ~/Videos");
  if (above) return notice("This library is empty", "Add a folder or drop files above, or run: wordreel add ~/Videos");
  return notice("This library is empty", "Add a folder or drop files in the library view, or run: wordreel add ~/Videos",
    h("a", { class: "button primary", href: "/?view=library", "data-route": true }, "Add videos"));
}

/** A file of the library as a card shows it: from its middle, without a score. */
function asHit(item) {
  const start = item.kind === "video" ? Math.min(item.duration / 3, 30) : 0;
  const end = Math.min(item.duration, start + 4);
  return {
    ...item, start, end, file: true, thumb: thumb(item.content, start), media: media(item.content),
    preview: `/api/preview/${encodeURIComponent(item.content)}${written({ start, end })}`,
  };
}
