// What is said and shown, in step with the video.
import { still } from "./browser_settings.js";
import { button, h } from "./dom.js";
import { clock } from "./format.js";

/** The words of a video as lines in order of time: what was heard is said, all else is shown. */
export function linesOf(words) {
  return words.map((word) => ({ ...word, from: word.expert === "speech" ? "said" : "shown" }))
    .sort((one, other) => one.start - other.start || one.end - other.end);
}

/**
 * `lines` are `{text, start, end, from}` in order of time, `from` is "said" or "shown"; words of `query` are
 * marked. Gives `{element, at(seconds)}`.
 */
export function transcript(lines, query, seek) {
  const rows = lines.map((line) => h("li", { class: line.from },
    button({ on: { click: () => seek(line.start) } },
      h("span", { class: "time" }, clock(line.start)),
      h("span", { class: "said" }, line.from === "shown" && h("span", { class: "tag" }, "on screen"), marked(line.text, query)))));
  const list = h("ol", { class: "lines" }, rows);
  let current = [];
  const at = (seconds) => {
    const now = lines.flatMap((line, n) => (seconds >= line.start && seconds < Math.max(line.end, line.start + 0.5) ? [n] : []));
    if (now.join() === current.join()) return;
    for (const n of current) rows[n].removeAttribute("aria-current");
    for (const n of now) rows[n].setAttribute("aria-current", "true");
    current = now;
    if (now.length && !list.contains(document.activeElement)) follow(list, rows[now[0]]);
  };
  return { element: list, at };
}

/** Scrolls only the list, never the page. */
function follow(list, row) {
  const top = row.offsetTop - list.offsetTop - list.clientHeight / 3;
  list.scrollTo({ top, behavior: still() ? "auto" : "smooth" });
}

const COMMON = new Set("about and are but did does for from has have into its not that the their then there this was were what when where which who with you your".split(" "));

/** The text with the words of the query marked, but for those that stand in every sentence. */
function marked(text, query = "") {
  const terms = (query.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? []).filter((term) => !COMMON.has(term));
  if (!terms.length) return text;
  return text.split(/([\p{L}\p{N}]+)/u).map((part) => (terms.includes(part.toLowerCase()) ? h("mark", {}, part) : part));
}
