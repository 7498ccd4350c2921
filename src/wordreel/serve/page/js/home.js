// Before anything is asked: what to ask, what is here, or how to begin.
import { api, media, thumb, written } from "./api.js";
import { forgetAll, recent } from "./browser_settings.js";
import { grid } from "./cards.js";
import { button, h } from "./dom.js";
import { length, plural, sentence } from "./format.js";
import { keep } from "./hits.js";
import { notice } from "./notice.js";
import { href } from "./router.js";
import { savedRow } from "./saved.js";

const SHOWN = 12;

/** The parts of the view. */
export async function home(app, signal) {
  const [{ total, items }, { examples }, { saved }] = await Promise.all([
    api.videos({ limit: SHOWN }, signal), api.examples(signal).catch(() => ({ examples: [] })), api.saved(signal).catch(() => ({ saved: [] })), app.refresh()]);
  if (!total) return [empty(app.status.read_only)];
  const { seconds } = app.status;
  const hits = items.map(asHit);
  keep(hits);
  return [missing(app.status), savedRow(saved, app.status.read_only), suggestions("Recent", recent().queries, forgetButton), suggestions("Try", examples),
    h("h2", { class: "kicker" }, `${plural(total, "file")} in the library${seconds ? `, ${length(seconds)} of video and sound` : ""}`),
    grid(hits, { view: "search" }, "Files of the library").element];
}

/** A row of queries that can be clicked; `after()` makes a button for all of them. */
function suggestions(title, queries, after) {
  if (!queries.length) return null;
  const row = h("section", { class: "suggestions", "aria-label": title }, h("h2", { class: "small" }, title),
    h("ul", { class: "chips" }, queries.map((query) => h("li", {}, h("a", { class: "chip", "data-route": true, href: href({ view: "search", q: query }) }, query)))));
  if (after) row.append(after(row));
  return row;
}

function forgetButton(row) {
  return button({ class: "quiet", on: { click: () => { forgetAll(); row.remove(); } } }, "Clear");
}

/** Says so where not everything can be found, and what to do about it. */
export function missing({ problem, clips }) {
  return problem && notice(clips ? "Not everything can be found yet" : "Nothing can be found yet", sentence(problem));
}

/** What an empty library says; `above` where the fields to add with are on the same page. */
export function empty(readOnly, above = false) {
  if (readOnly) return notice("Nothing is here yet", "This library can only be looked at from here. Its owner can add videos to it.");
  if (above) return notice("Nothing is here yet", "Choose a folder, or drop files into the field above.");
  return notice("Add your first videos", "Choose a folder, or drop videos and pictures. They stay where they are, nothing leaves this computer, and the first can be found within a minute.",
    h("a", { class: "button primary", href: "/?view=library", "data-route": true }, "Add videos"));
}

/** A file of the library as a card shows it: from its middle, without a score. */
function asHit(item) {
  const start = item.kind === "video" ? Math.min(item.duration / 3, 30) : 0;
  const end = Math.min(item.duration, start + 4);
  return {
    ...item, start, end, file: true, why: [], thumb: thumb(item.content, start), media: media(item.content),
    preview: `/api/preview/${encodeURIComponent(item.content)}${written({ start, end })}`,
  };
}
