// How sure a hit is: a bar, a number and a word. The order of hits never contradicts it.
import { h } from "./dom.js";
import { confidenceText, percent } from "./format.js";

export const LIKELY = 0.05; // how sure a hit must be not to be a long shot

export function confidence(hit) {
  const words = sureness(hit);
  const part = hit.like ? hit.score : hit.confidence;
  if (words === null) return h("span", { class: "sure", title: "How sure this is can be told once there are sample queries: Settings, Ranking." }, `match ${hit.score.toFixed(2)}`);
  return h("span", { class: "sure" }, !hit.identical && h("span", { class: "bar", "aria-hidden": "true", vars: { "--part": part } }), words);
}

/** How sure, or for look-alikes how much alike; null where nothing can tell. */
export function sureness(hit) {
  if (hit.identical) return "the same file";
  if (hit.like) return `${percent(Math.max(0, hit.score))} alike`;
  return confidenceText(hit.confidence);
}
