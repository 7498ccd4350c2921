// The grid of moments, and the arrow keys in it.
import { card } from "./card.js";
import { LIKELY } from "./confidence.js";
import { h } from "./dom.js";
import { percent } from "./format.js";

/** `{element, append(hits)}`: cards in order, with a line above those that are long shots. */
export function grid(hits, route, name = "Moments") {
  const shown = [];
  const line = h("li", { class: "divide" }, `Long shots: less than ${percent(LIKELY)} sure each`);
  const element = h("ul", { class: "grid", "aria-label": name });
  const append = (more) => {
    shown.push(...more);
    element.append(...more.map((hit) => card(hit, route)));
    line.remove();
    const from = longShots(shown);
    if (from !== null) element.children[from].before(line);
  };
  append(hits);
  element.addEventListener("keydown", (event) => arrows(element, event));
  return { element, append };
}

/** Where the hits begin that are all long shots; null where none are, or nothing can tell. The best hit is none, the best pair may be. */
function longShots(hits) {
  const from = hits.findLastIndex((hit) => hit.confidence >= LIKELY) + 1;
  const some = from < hits.length && hits.every((hit) => typeof hit.confidence === "number");
  return some && (from > 0 || hits[0].then) ? from : null;
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
