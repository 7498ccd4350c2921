// What was recognised in a whole video, beside why it was found: two lists that say how they differ.
import { h } from "./dom.js";
import { expertWords } from "./experts.js";
import { reasons } from "./why.js";

/** What each expert recognised; folded up unless `open`. */
export function recognised(experts, hit, open = false) {
  const some = experts.filter(({ labels }) => labels.length);
  if (!some.length) return null;
  const note = hit?.why.length
    ? "The strongest over the whole video, whatever was asked. What came closest to your words at this moment may be another thing."
    : "The strongest over the whole video.";
  return h("details", { class: "labels", open }, h("summary", {}, "What was recognised"), h("p", { class: "small" }, note),
    h("dl", {}, some.map(({ name, labels }) => [h("dt", {}, expertWords(name)), h("dd", {}, labels.join(", "))])));
}

/** Why the hit that is played was found. */
export function foundBecause(hit) {
  return hit?.why.length ? h("details", { class: "labels because" }, h("summary", {}, "Why it was found"), reasons(hit)) : null;
}
