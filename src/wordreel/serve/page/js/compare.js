// Two rankings side by side, similarity alone and one that holds frequent files back, with every hit that moved marked.
import { opened, still } from "./cards.js";
import { h } from "./dom.js";
import { moment, readable } from "./format.js";
import { href } from "./router.js";
import { confidence, ranking } from "./why.js";

/** Two lists; `answer` is the response to a search with `compare`. */
export function compare(answer, route) {
  const plain = places(answer.plain);
  const normalised = places(answer.hits);
  const moved = answer.hits.filter((hit, at) => plain.get(hit.content) !== at).length;
  const unused = !answer.norm || answer.norm === "none";
  return h("section", { class: "compare" },
    h("p", { class: "small" }, unused
      ? "Both sides are ranked by similarity alone. Choose another ranking under Filters to compare it."
      : [`${moved} of ${answer.hits.length} places differ. Neither side is proven right. `, h("a", { href: "/?view=ranking", "data-route": true }, "What is this?")]),
    h("div", { class: "sides" },
      side("Similarity alone", "", answer.plain, (hit, at) => whereTo(at, normalised.get(hit.content)), route),
      side("Frequent files held back", unused ? "" : ranking(answer.norm), answer.hits, (hit, at) => moves(at, plain.get(hit.content)), route)));
}

const places = (hits) => new Map(hits.map((hit, at) => [hit.content, at]));

function side(title, words, hits, mark, route) {
  return h("div", {}, h("h3", {}, title, " ", h("span", { class: "small" }, words)),
    h("ol", { class: "ranks" }, hits.map((hit, at) => row(hit, at, mark(hit, at), route))));
}

function row(hit, at, mark, route) {
  return h("li", {}, h("span", { class: "place" }, String(at + 1)),
    h("a", { "data-route": true, href: href(opened(hit, route)), "aria-label": `${readable(hit.name)}, ${moment(hit)}` },
      h("div", { class: "thumb" }, still(hit))),
    h("span", { class: "about" }, h("span", { class: "title" }, h("bdi", {}, readable(hit.name))), confidence(hit)), mark);
}

/** On the plain side: where the hit went. */
function whereTo(at, after) {
  if (after === undefined) return h("span", { class: "mark down" }, "drops out");
  return h("span", { class: "mark" }, after === at ? "stays" : `goes to ${after + 1}`);
}

/** On the normalised side: how far it moved. */
function moves(at, before) {
  if (before === undefined) return h("span", { class: "mark up" }, "comes in");
  if (before === at) return h("span", { class: "mark" }, "stays");
  const up = before > at;
  const steps = Math.abs(before - at);
  return h("span", { class: `mark ${up ? "up" : "down"}` }, h("span", { "aria-hidden": "true" }, `${up ? "▲" : "▼"} ${steps}`),
    h("span", { class: "unseen" }, `${steps} ${up ? "up" : "down"}`));
}
