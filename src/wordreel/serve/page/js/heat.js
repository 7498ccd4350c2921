// The strips of the player: one for each question, with its best moments as buttons.
import { api } from "./api.js";
import { LIKELY } from "./confidence.js";
import { button, h } from "./dom.js";
import { clock, percent } from "./format.js";
import { scoreText, strip } from "./strip.js";

const SHOWN = 5;

/** Asks where `text` matches and puts the strip into `strips`; no moment is shown surer than its `hit` was. */
export async function heat(strips, video, text, { route, hit, view, signal }) {
  if (!(video.duration > 0)) return;
  const match = capped(await api.match(video.content, { text, norm: route.norm, bank: route.bank }, signal), hit);
  const drawn = strip({ name: title(match, text), ...match, duration: video.duration, seek: view.seek });
  view.follow(drawn.at);
  strips.append(drawn.element, best(match, view.seek));
}

function capped(match, hit) {
  const most = match.calibrated && typeof hit?.confidence === "number" ? hit.confidence : 1;
  return {
    ...match, scores: match.scores.map((score) => Math.min(score, most)),
    moments: match.moments.map((moment) => ({ ...moment, score: Math.min(moment.score, most) })),
  };
}

function title({ calibrated, scores }, text) {
  return calibrated && Math.max(...scores) < LIKELY ? `Nothing here clearly matches “${text}”` : `Where “${text}” matches`;
}

/** The best moments as buttons, for those who would rather not aim at a strip. */
function best({ moments, calibrated }, seek) {
  if (!moments.length) return "";
  return h("div", { class: "chips" }, moments.slice(0, SHOWN).map(({ start, score }) =>
    button({ class: "chip", on: { click: () => seek(start) } }, clock(start),
      h("span", { class: "bar", "aria-hidden": "true", vars: { "--part": score } }),
      h("span", { class: "small", "aria-hidden": "true" }, calibrated && score < 0.01 ? "<1%" : percent(score)),
      h("span", { class: "unseen" }, scoreText(score, calibrated)))));
}
