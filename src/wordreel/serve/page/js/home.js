// Before anything is asked: what is here, or how to begin.
import { api, media, thumb, written } from "./api.js";
import { h } from "./dom.js";
import { length, plural, sentence } from "./format.js";
import { grid } from "./grid.js";
import { notice } from "./notice.js";

const SHOWN = 12;

export async function home(app, signal) {
  const [{ total, items }] = await Promise.all([api.videos({ limit: SHOWN }, signal), app.refresh()]);
  if (!total) return empty(app.status.read_only);
  const { seconds } = app.status;
  return [missing(app.status), h("h2", { class: "kicker" }, `${plural(total, "file")}${seconds ? `, ${length(seconds)}` : ""} to search`),
    grid(items.map(asHit), { view: "search" }, "Files of the library")];
}

/** Says so where not everything can be found, and what to do about it. */
export function missing({ problem, clips }) {
  return problem && notice(clips ? "Not everything can be found yet" : "Nothing can be found yet", sentence(problem));
}

/** What an empty library says; `above` where the fields to add with are on the same page. */
export function empty(readOnly, above = false) {
  if (readOnly) return notice("This library is empty", "It is served for reading only. Its owner adds videos on the command line: wordreel add FOLDER");
  if (above) return notice("This library is empty", "Add a folder, or drop files into the field above.");
  return notice("This library is empty", "Add a folder of the server's machine, or drop your videos and pictures. They can be searched as soon as they have been looked at.",
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
