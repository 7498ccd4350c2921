// Why a hit was found and how sure it is, and what was recognised in its video, in words that people know.
import { h } from "./dom.js";
import { clock, confidenceText, percent } from "./format.js";
import { METHODS } from "./norms.js";

const WORDS = {
  seen: "overall picture", appearance: "things seen", motion: "actions", sound: "sounds", speech: "speech", ocr: "text on screen",
  faces: "faces", shots: "cuts", "speech words": "words spoken", "ocr words": "words on screen",
};

/** What an expert looks for. */
export function expertWords(name) {
  return WORDS[name] ?? name;
}

export const LIKELY = 0.05; // how sure a hit must be not to be a long shot

/** How sure a hit is: a bar, a number and a word. The order of hits never contradicts it. */
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

/** The whole explanation of a hit. */
export function why(hit) {
  return h("div", { class: "why" }, reasons(hit), details(hit));
}

/** What came closest, strongest first. */
function reasons(hit) {
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
