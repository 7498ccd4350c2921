// Which experts carried a hit: the share each reason has of the score, and how the query was weighed.
import { h } from "./dom.js";
import { clock, percent } from "./format.js";
import { METHODS } from "./norms.js";

/** The whole explanation of a hit. */
export function why(hit) {
  const total = hit.why.reduce((sum, reason) => sum + Math.max(0, reason.share), 0) || 1;
  const weights = Object.entries(hit.weights ?? {}).filter(([, weight]) => weight > 0);
  weights.sort(([, one], [, other]) => other - one);
  return h("div", { class: "why" },
    hit.why.length > 0 && [h("h4", {}, "What carried it"),
      h("ul", { class: "bars" }, hit.why.map((reason) => reasonRow(reason, total)))],
    weights.length > 0 && [h("h4", {}, "How the query was weighed"),
      h("ul", { class: "bars weights" }, weights.map(([name, weight]) => row(name, weight, percent(weight))))],
    h("p", { class: "small" }, `Score ${hit.score.toFixed(3)}, ranked ${ranking(hit.norm)}.`));
}

function reasonRow(reason, total) {
  const item = row(reason.expert, Math.max(0, reason.share) / total, `${reason.share >= 0 ? "+" : "−"}${Math.abs(reason.share).toFixed(2)}`);
  if (reason.what) item.append(h("span", { class: "what" }, reason.what, reason.at ? ` · ${clock(reason.at[0])}` : ""));
  return item;
}

function row(name, part, number) {
  return h("li", {}, h("span", { class: "name" }, name),
    h("span", { class: "bar", "aria-hidden": "true", vars: { "--part": part } }), h("span", { class: "number" }, number));
}

/** What made the order, in words: of "querybank(everyday, 987 queries, method=is, beta=30)" the bank and the method. */
export function ranking(norm) {
  if (!norm || norm === "none") return "plainly, without a bank";
  const [, bank, method] = /^querybank\((.+?), \d+ queries, method=(\w+)/.exec(norm) ?? [];
  return bank ? `with the bank ${bank}, ${METHODS[method] ?? method}` : `with ${norm}`;
}
