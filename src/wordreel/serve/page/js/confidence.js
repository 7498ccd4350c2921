// How sure a hit is: a bar, a number and a word.
import { h } from "./dom.js";
import { confidenceText } from "./format.js";

export function confidence(hit) {
  const words = confidenceText(hit.confidence);
  if (words === null) {
    return h("span", { class: "sure", title: "How sure it is needs a query bank of at least 100 queries." },
      `score ${hit.score.toFixed(2)}`);
  }
  return h("span", { class: "sure" },
    h("span", { class: "bar", "aria-hidden": "true", vars: { "--part": hit.confidence } }), words);
}
