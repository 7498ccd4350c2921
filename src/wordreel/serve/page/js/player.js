// One video at its second: the heat of the query, what is said and shown, and more like it.
import { api } from "./api.js";
import { button, h, icon, replace } from "./dom.js";
import { clock, length } from "./format.js";
import { playerKeys } from "./keys.js";
import { failure, stale } from "./notice.js";
import { go, here, href } from "./router.js";
import { screen } from "./screen.js";
import { strip } from "./strip.js";
import { linesOf, transcript } from "./transcript.js";

let open = null; // {content, dialog, seek, stop}

/** Opens, moves or closes the player as the route says. */
export function sync(route) {
  if (!route.video) return shut();
  if (open?.content === route.video) return open.seek(Number(route.t) || 0);
  shut();
  open = build(route);
  return undefined;
}

function shut() {
  if (!open) return;
  const { dialog, stop, before } = open;
  open = null;
  stop();
  dialog.remove();
  if (before?.isConnected) before.focus();
}

function close() {
  const { video, t, ...rest } = here();
  go(rest);
}

function build(route) {
  const running = new AbortController();
  const before = document.activeElement;
  const body = h("div", { class: "stage", "aria-busy": "true" }, h("div", { class: "thumb ghost" }));
  const title = h("h2", { id: "player-title" }, "…");
  const dialog = h("dialog", { class: "player", "aria-labelledby": "player-title" },
    h("header", {}, title, button({ class: "round", "aria-label": "Close the player", on: { click: close } }, icon("close"))), body);
  dialog.addEventListener("close", close); // Escape
  dialog.addEventListener("click", (event) => event.target === dialog && close());
  document.body.append(dialog);
  dialog.showModal();
  const handle = { content: route.video, dialog, before, seek: () => {}, stop: () => running.abort() };
  load(route, handle, title, body, running.signal);
  return handle;
}

async function load(route, handle, title, body, signal) {
  try {
    const video = await api.video(route.video, signal);
    title.textContent = video.name;
    const view = screen(video, Number(route.t) || 0);
    handle.seek = view.seek;
    handle.stop = ((before) => () => { before(); view.stop(); })(handle.stop);
    document.addEventListener("keydown", (event) => playerKeys(event, view.player), { signal });
    const lines = transcript(linesOf(video.words), `${route.q ?? ""} ${route.then ?? ""}`, view.seek);
    const strips = h("div", { class: "strips" });
    view.follow(lines.at);
    replace(body, h("div", { class: "seen" }, view.element, strips, facts(video, view)), aside(video, lines));
    body.removeAttribute("aria-busy");
    await Promise.all([route.q, route.then].map((text) => text && heat(strips, video, text, view, signal)));
  } catch (error) {
    if (stale(error)) return;
    title.textContent = "Not shown";
    replace(body, failure(error, () => { shut(); sync(here()); }));
  }
}

async function heat(strips, video, text, view, signal) {
  if (!(video.duration > 0)) return;
  const match = await api.match(video.content, text, signal);
  const drawn = strip({ name: `Where “${text}” matches`, ...match, duration: video.duration, seek: view.seek });
  view.follow(drawn.at);
  strips.append(drawn.element, best(match.moments, view.seek));
}

/** The best moments as buttons, for those who would rather not aim at a strip. */
function best(moments, seek) {
  if (!moments.length) return "";
  return h("div", { class: "chips" }, moments.slice(0, 5).map(({ start, score }) =>
    button({ class: "chip", on: { click: () => seek(start) } }, clock(start),
      h("span", { class: "bar", "aria-hidden": "true", vars: { "--part": score } }),
      h("span", { class: "unseen" }, `match ${Math.round(100 * score)} of 100`))));
}

function facts(video, view) {
  const like = () => {
    const t = view.now();
    const part = video.kind === "image" ? {} : { start: Math.max(0, t - 2).toFixed(2), end: Math.min(video.duration, t + 2).toFixed(2) };
    go({ view: "search", like: video.content, name: video.name, ...part });
  };
  return h("div", { class: "facts" },
    h("div", { class: "actions" }, button({ class: "primary", on: { click: like } }, "More like this moment"),
      h("a", { class: "button", "data-route": true, href: href({ view: "search", like: video.content, name: video.name }) }, "More like all of it")),
    h("p", { class: "small path" }, video.path, video.kind === "image" ? "" : ` · ${length(video.duration)}`),
    video.words.length > 0 && labels(video.experts));
}

/** What each expert recognised; folded up unless `open`. */
function labels(experts, open = false) {
  const some = experts.filter(({ labels: seen }) => seen.length);
  if (!some.length) return null;
  return h("details", { class: "labels", open }, h("summary", {}, "What was recognised"),
    h("dl", {}, some.map(({ name, labels: seen }) => [h("dt", {}, name), h("dd", {}, seen.join(", "))])));
}

/** The words in step with the video; where there are none, what was recognised has their place. */
function aside(video, lines) {
  const words = video.words.length
    ? [lines.element]
    : [h("p", { class: "small" }, "Nothing is said or written here, as far as the experts can tell."), labels(video.experts, true)];
  return h("section", { class: "aside", "aria-label": "What is said and shown" }, h("h3", {}, "Said and shown"), words);
}
