// Moments as cards, the grid of them, and the arrow keys in it.
import { sharp, thumb } from "./api.js";
import { button, h, icon } from "./dom.js";
import { clock, length, moment, percent, readable } from "./format.js";
import { playOn } from "./motion.js";
import { untilDismissed } from "./notice.js";
import { href } from "./router.js";
import { confidence, LIKELY, sureness, why } from "./why.js";

/** The mark of a file that waits for its closer look. */
export function quickLook({ analysis }) {
  return analysis === "quick" && h("span", { class: "small", title: "Analysed by a few of its pictures so far; a closer look follows by itself" }, "quick look");
}

/** A card for `hit`; it opens the player over `route`. */
function card(hit, route) {
  const link = h("a", {
    class: "open", "data-route": true, href: href(opened(hit, route)), "aria-label": label(hit),
  }, picture(hit));
  const reasons = h("div", { hidden: true });
  const box = h("li", { class: "card", data: { content: hit.content } }, link,
    h("div", { class: "about" },
      h("div", { class: "row named" }, h("span", { class: "title", title: readable(hit.path) }, h("bdi", {}, readable(hit.name))), quickLook(hit)),
      h("div", { class: "row" }, hit.file ? fact(hit) : confidence(hit), like(hit), !hit.file && whyButton(hit, reasons)), reasons));
  playOn(link, link.querySelector(".thumb"), hit);
  return box;
}

/** The route that shows a hit in the player. */
export function opened(hit, route) {
  return { ...route, video: hit.content, t: hit.kind === "image" ? "" : hit.start.toFixed(1) };
}

function label(hit) {
  return [readable(hit.name), ...(hit.file ? [] : [badge(hit), sureness(hit)])].filter(Boolean).join(", ");
}

const badge = (hit) => (hit.then ? `${clock(hit.start)}, then ${clock(hit.then.start)}` : moment(hit));

/** What a file of the library says in the place of a score. */
function fact(hit) {
  return h("span", { class: "sure" }, hit.kind === "image" ? "picture" : length(hit.duration));
}

function picture(hit) {
  const box = h("div", { class: `thumb ${hit.kind}` }, still(hit, hit.thumb), hit.then && still(hit, thumb(hit.content, hit.then.start)),
    !hit.file && h("span", { class: "badge" }, badge(hit)));
  if (hit.then) box.classList.add("pair");
  return box;
}

/** A frame; of a file without pictures, a sign. */
export function still(item, source = item.thumb) {
  if (item.kind === "audio") return icon("sound");
  const image = h("img", { ...sharp(source), alt: "", loading: "lazy", decoding: "async" });
  image.addEventListener("error", () => image.remove(), { once: true });
  return image;
}

function like(hit) {
  const route = { view: "search", like: hit.content, name: hit.name };
  if (hit.kind !== "image") Object.assign(route, { start: hit.start.toFixed(2), end: hit.end.toFixed(2) });
  return h("a", { class: "quiet like", "data-route": true, href: href(route), "aria-label": `Like this: ${readable(hit.name)}` }, "Like this");
}

function whyButton(hit, reasons) {
  const opener = button({ class: "quiet", "aria-expanded": "false", "aria-label": `Why? ${readable(hit.name)}` }, "Why?");
  let ignore = () => {};
  const show = (open) => {
    ignore();
    if (!reasons.firstChild) reasons.append(why(hit));
    reasons.hidden = !open;
    opener.setAttribute("aria-expanded", String(open));
    if (open) ignore = untilDismissed([opener, reasons], () => { show(false); opener.focus(); });
  };
  opener.addEventListener("click", () => show(reasons.hidden));
  return opener;
}

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
