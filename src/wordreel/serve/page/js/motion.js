// A moment that plays while it is looked at: the video itself, or the moving preview where it cannot be played.
import { still } from "./browser_settings.js";
import { h } from "./dom.js";

const WAIT = 140; // ms, so that a pointer passing over the grid starts nothing
const LEAST = 1.5; // s

/** Plays the moment of `hit` in `box` while `card` is hovered or has the focus. */
export function playOn(card, box, hit) {
  if (hit.kind !== "video") return;
  let timer = 0;
  let moving = null;
  const begin = () => {
    clearTimeout(timer);
    if (!moving && !still()) timer = setTimeout(() => { moving = show(box, hit); }, WAIT);
  };
  const end = () => {
    clearTimeout(timer);
    moving?.stop();
    moving = null;
  };
  card.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && begin());
  card.addEventListener("pointerleave", () => !card.contains(document.activeElement) && end());
  card.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && begin());
  card.addEventListener("focusout", end);
}

function show(box, hit) {
  const { start } = hit;
  const end = Math.max(hit.end, start + LEAST);
  const video = h("video", { class: "moving", src: hit.media, playsinline: true, preload: "auto", "aria-hidden": "true", tabindex: "-1" });
  video.muted = true;
  video.addEventListener("loadedmetadata", () => { video.currentTime = start; }, { once: true });
  video.addEventListener("timeupdate", () => { if (video.currentTime >= end) video.currentTime = start; });
  video.addEventListener("ended", () => { video.currentTime = start; video.play().catch(() => {}); });
  video.addEventListener("playing", () => box.classList.add("live"), { once: true });
  video.addEventListener("error", () => video.isConnected && preview(video, box, hit), { once: true });
  box.append(video);
  video.play().catch(() => {});
  return { stop: () => stop(box) };
}

function preview(video, box, hit) {
  const image = h("img", { class: "moving", src: hit.preview, alt: "" });
  image.addEventListener("load", () => box.classList.add("live"), { once: true });
  video.replaceWith(image);
}

function stop(box) {
  box.classList.remove("live");
  for (const moving of box.querySelectorAll(".moving")) {
    moving.removeAttribute("src");
    moving.load?.(); // ends the download
    moving.remove();
  }
}
