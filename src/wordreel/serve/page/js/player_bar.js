// What can be done with the moment that plays: go to another hit, share it, find more like it.
import { opened } from "./cards.js";
import { button, h, icon } from "./dom.js";
import { clipButton } from "./exports.js";
import { length, readable } from "./format.js";
import { around } from "./hits.js";
import { say } from "./notice.js";
import { go, here, href } from "./router.js";

/** Plays the hit before (−1) or after (+1) the one that plays; leaves no step to go back to. */
export function step(by) {
  const route = here();
  const { previous, next } = around(route);
  const hit = by < 0 ? previous : next;
  if (hit) go(opened(hit, route), { replace: true });
}

/** Buttons to the hits before and after. */
export function neighbours(route) {
  const { hit, previous, next } = around(route);
  if (!hit || (!previous && !next)) return null;
  const to = (by, there, words, sign, key) => button({ class: "round", disabled: !there, "aria-label": words, title: `${words} (${key})`, on: { click: () => step(by) } }, icon(sign));
  return [to(-1, previous, "Previous result", "previous", "p"), to(1, next, "Next result", "next", "n")];
}

export function actions(video, view, hit) {
  const still = video.kind === "image";
  const like = () => {
    const t = view.now();
    const part = still ? {} : { start: Math.max(0, t - 2).toFixed(2), end: Math.min(video.duration, t + 2).toFixed(2) };
    go({ view: "search", like: video.content, name: video.name, ...part });
  };
  return h("div", { class: "actions" },
    !still && button({ class: "primary", on: { click: like } }, "More like this moment"),
    h("a", { class: still ? "button primary" : "button", "data-route": true, href: href({ view: "search", like: video.content, name: video.name }) },
      still ? "More like this" : "More like the whole video"),
    linkButton(video, view), clipButton(video, view, hit));
}

/** Copies the address of this video at this second. */
function linkButton(video, view) {
  const words = video.kind === "image" ? "Copy link" : "Copy link to this second";
  const copier = button({ class: "copy" }, icon("link"), words);
  copier.addEventListener("click", async () => {
    const t = video.kind === "image" ? "" : view.now().toFixed(1);
    await copy(new URL(href({ ...here(), video: video.content, t }), location.href).href);
    copier.lastChild.textContent = "Link copied";
    say("Link copied");
  });
  return copier;
}

/** By the clipboard, or where a browser keeps it for secure pages, by a selection. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = h("textarea", { class: "unseen", value: text });
    (document.querySelector("dialog[open]") ?? document.body).append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

export function facts(video) {
  const shape = video.width ? `${video.width} × ${video.height}` : "";
  return h("p", { class: "small path" }, h("bdi", {}, readable(video.path)), [video.kind !== "image" && length(video.duration), shape].filter(Boolean).map((fact) => ` · ${fact}`));
}
