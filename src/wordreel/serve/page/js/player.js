// One video at its second: the heat of the query, what is said and shown, and more like it.
import { api } from "./api.js";
import { button, h, icon, replace } from "./dom.js";
import { readable } from "./format.js";
import { heat } from "./heat.js";
import { around, onResults } from "./hits.js";
import { playerKeys } from "./keys.js";
import { failure, stale } from "./notice.js";
import { actions, facts, neighbours, step } from "./player_bar.js";
import { closeOver, here } from "./router.js";
import { screen } from "./screen.js";
import { tagsPart } from "./tags.js";
import { linesOf, transcript } from "./transcript.js";
import { foundBecause, recognised } from "./why.js";

let open = null; // {content, dialog, seek, stop}

/** Opens, moves or closes the player as the route says. */
export function sync(route, app) {
  if (!route.video) return shut();
  if (open?.content === route.video) return open.seek(Number(route.t) || 0);
  const before = open?.before;
  shut();
  open = build(route, before ?? document.activeElement, app);
  return undefined;
}

function shut() {
  if (!open) return;
  const { dialog, stop, before } = open;
  open = null;
  onResults(() => {});
  stop();
  dialog.remove();
  if (before?.isConnected) before.focus();
}

function build(route, before, app) {
  const running = new AbortController();
  const body = h("div", { class: "stage" }, h("div", { class: "seen", "aria-busy": "true" }, h("div", { class: "thumb ghost" })));
  const title = h("h2", { id: "player-title" }, "…");
  const others = h("span", { class: "neighbours" }, neighbours(route));
  const dialog = h("dialog", { class: "player", "aria-labelledby": "player-title" },
    h("header", {}, title, others, button({ class: "round", "aria-label": "Close the player", on: { click: closeOver } }, icon("close"))), body);
  dialog.addEventListener("close", () => dialog.isConnected && closeOver()); // Escape
  dialog.addEventListener("click", (event) => event.target === dialog && closeOver());
  document.body.append(dialog);
  dialog.showModal();
  const handle = { content: route.video, dialog, before, seek: () => {}, stop: () => running.abort() };
  const loaded = load(route, app, handle, title, body, running.signal);
  onResults(async () => { // they may come after the player, at an address that was followed
    replace(others, neighbours(here()));
    await loaded;
    const { hit } = around(here());
    if (!dialog.querySelector(".because")) dialog.querySelector(".aside")?.append(foundBecause(hit) ?? "");
  });
  return handle;
}

async function load(route, app, handle, title, body, signal) {
  const { hit } = around(route);
  if (hit) title.textContent = readable(hit.name);
  try {
    const video = await api.video(route.video, signal);
    title.textContent = readable(video.name);
    const view = screen(video, Number(route.t) || 0);
    handle.seek = view.seek;
    handle.stop = ((before) => () => { before(); view.stop(); })(handle.stop);
    document.addEventListener("keydown", (event) => playerKeys(event, view, step), { signal });
    const lines = transcript(linesOf(video.words), `${route.q ?? ""} ${route.then ?? ""}`, view.seek);
    const strips = h("div", { class: "strips" });
    view.follow(lines.at);
    replace(body, h("div", { class: "seen" }, view.element, strips, actions(video, view, () => around(here()).hit), tagsPart(video, view, () => around(here()).hit, app, signal), facts(video)), aside(video, lines, hit));
    await Promise.all([route.q, route.then].map((text) => text && heat(strips, video, text, { route, hit: route.then ? null : hit, view, signal })));
  } catch (error) {
    if (stale(error)) return;
    title.textContent = "Not shown";
    replace(body, failure(error, () => { shut(); sync(here(), app); }));
  }
}

/** The words in step with the video; where there are none, what was recognised has their place. */
function aside(video, lines, hit) {
  const words = video.words.length ? lines.element : h("p", { class: "small" }, "No speech and no text on screen was found.");
  return h("section", { class: "aside", "aria-label": "What is said and shown" }, h("h3", {}, "Said and shown"), words,
    foundBecause(hit), recognised(video.experts, hit, !video.words.length));
}
