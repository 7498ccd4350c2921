// Where in a video a query matches: heat over time as a strip. Click or use the arrow keys to go there.
import { api } from "./api.js";
import { button, h, s } from "./dom.js";
import { clock, confidenceText, percent } from "./format.js";
import { LIKELY } from "./why.js";

const HEIGHT = 36;

/**
 * A strip over `duration` seconds. `scores` in [0, 1] stand `step` seconds apart, confidences where they are
 * `calibrated`; `seek(seconds)` is called. Gives `{element, at(seconds)}`.
 */
function strip({ name, step, scores, calibrated, duration, seek }) {
  const needle = s("line", { class: "needle", y1: 0, y2: HEIGHT, x1: 0, x2: 0, "vector-effect": "non-scaling-stroke" });
  const drawing = s("svg", { viewBox: `0 0 1000 ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" }, bars(scores, step, duration), needle);
  const slider = h("div", {
    class: "strip", role: "slider", tabindex: "0", "aria-label": name, "aria-valuemin": "0", "aria-valuemax": duration.toFixed(1),
  }, drawing);
  let now = 0;
  const at = (seconds) => {
    now = seconds;
    const x = (1000 * seconds) / duration;
    needle.setAttribute("x1", x);
    needle.setAttribute("x2", x);
    slider.setAttribute("aria-valuenow", seconds.toFixed(1));
    const score = scores[Math.min(scores.length - 1, Math.floor(seconds / step))] ?? 0;
    slider.setAttribute("aria-valuetext", `${clock(seconds)}, ${scoreText(score, calibrated)}`);
  };
  slider.addEventListener("click", (event) => {
    const { left, width } = slider.getBoundingClientRect();
    seek((duration * (event.clientX - left)) / width);
  });
  slider.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -step, ArrowDown: -step, ArrowRight: step, ArrowUp: step, Home: -now, End: duration - now }[event.key];
    if (move === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    seek(Math.min(duration, Math.max(0, now + move)));
  });
  at(0);
  return { element: h("div", { class: "heat" }, h("span", { class: "small" }, name), slider), at };
}

/** "72% sure", or how a score stands in the library where nothing can tell how sure it is. */
function scoreText(score, calibrated) {
  return calibrated ? confidenceText(score) : `match ${Math.round(100 * score)} of 100`;
}

/** One bar for each stretch of equal heat: bars that touch would show a seam. */
function bars(scores, step, duration) {
  const toX = (at) => Math.min(1000, (1000 * at * step) / duration);
  const begins = scores.flatMap((score, at) => (score === scores[at - 1] ? [] : [at]));
  return begins.map((at, n) => {
    const [x, end] = [toX(at), toX(begins[n + 1] ?? scores.length)];
    const tall = Math.max(2, scores[at] * HEIGHT);
    return end > x && s("rect", { x, y: HEIGHT - tall, width: end - x, height: tall, class: "heat-bar", "fill-opacity": (0.12 + 0.88 * scores[at]).toFixed(3) });
  });
}

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
