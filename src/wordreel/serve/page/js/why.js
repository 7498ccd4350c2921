// What made a hit match: the part of each reason and, folded up, how the words were weighed.
import { expertWords } from "./experts.js";
import { h } from "./dom.js";
import { clock, percent } from "./format.js";
import { METHODS } from "./norms.js";

/** The whole explanation of a hit. */
export function why(hit) {
  return h("div", { class: "why" }, reasons(hit), details(hit));
}

/** What came closest, strongest first. */
export function reasons(hit) {
  if (!hit.why.length) return null;
  const total = hit.why.reduce((sum, reason) => sum + Math.max(0, reason.share), 0) || 1;
  return [h("h4", {}, hit.like ? "What they have in common" : "Closest to your words, at this moment"),
    h("ul", { class: "bars" }, hit.why.map((reason) => reasonRow(reason, Math.max(0, reason.share) / total)))];
}

function reasonRow(reason, part) {
  const item = row(expertWords(reason.expert), part, percent(part));
  if (reason.what) item.append(h("span", { class: "what" }, reason.what, reason.at ? ` · ${clock(reason.at[0])}` : ""));
  return item;
}

function details(hit) {
  const weights = Object.entries(hit.weights ?? {}).filter(([, weight]) => weight > 0);
  weights.sort(([, one], [, other]) => other - one);
  return h("details", { class: "small" }, h("summary", {}, "In numbers"),
    weights.length > 0 && [h("p", {}, "How much each kind of evidence counted for your words:"),
      h("ul", { class: "bars weights" }, weights.map(([name, weight]) => row(expertWords(name), weight, percent(weight))))],
    h("p", {}, `Similarity ${hit.score.toFixed(3)}. Ranking: ${ranking(hit.norm)}.`));
}

function row(name, part, number) {
  return h("li", {}, h("span", { class: "name" }, name),
    h("span", { class: "bar", "aria-hidden": "true", vars: { "--part": part } }), h("span", { class: "number" }, number));
}

/** What made the order, in words: of "querybank(everyday, 987 queries, method=is, beta=30)" the method and the bank. */
export function ranking(norm) {
  if (!norm || norm === "none") return "by similarity alone";
  const [, bank, method] = /^querybank\((.+?), \d+ queries, method=(\w+)/.exec(norm) ?? [];
  return bank ? `${METHODS[method] ?? method}, with the sample queries “${bank}”` : METHODS[norm] ?? norm;
}
