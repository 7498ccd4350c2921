// The grid of moments, and the arrow keys in it.
import { card } from "./card.js";
import { h } from "./dom.js";

const LIKELY = 0.05; // how sure a hit must be not to be a long shot

export function grid(hits, route, name = "Moments") {
  const list = h("ul", { class: "grid", "aria-label": name }, hits.map((hit) => card(hit, route)));
  const from = longShots(hits);
  if (from > 0) list.children[from].before(h("li", { class: "divide" }, `Long shots, each less than ${100 * LIKELY} % sure`));
  list.addEventListener("keydown", (event) => arrows(list, event));
  return list;
}

/** Where the hits begin that are all long shots; 0 where there is nothing better, or no bank to tell. */
function longShots(hits) {
  const last = hits.findLastIndex((hit) => hit.confidence >= LIKELY);
  return last + 1 < hits.length && hits.every((hit) => typeof hit.confidence === "number") ? last + 1 : 0;
}

function arrows(list, event) {
  const links = [...list.querySelectorAll("a.open")];
  const at = links.indexOf(event.target);
  if (at < 0) return;
  const across = columns(links);
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across, Home: -at, End: links.length - 1 - at }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const next = links[at + step];
  if (next) next.focus();
  else if (event.key === "ArrowUp") document.getElementById("query")?.focus();
}

/** How many cards stand in the first row. */
function columns(links) {
  const top = links[0].getBoundingClientRect().top;
  const below = links.findIndex((link) => Math.abs(link.getBoundingClientRect().top - top) > 4);
  return below < 0 ? links.length : below;
}
