// The picture of the player: a video, a sound or a still, in a place that is kept free for it from the start.
import { api, clip, media, thumb } from "./api.js";
import { h, replace } from "./dom.js";
import { readable, sentence } from "./format.js";
import { notice, stale } from "./notice.js";

const STRETCH = 12; // seconds of a copy that is made while one watches
const EARLY = 5; // seconds that a copy may begin early, where that saves making it anew

/** `{element, player, seek(seconds), move(by), now(), follow(listener), stop()}`. */
export function screen(video, start) {
  return video.kind === "image" ? still(video) : playing(video, start);
}

/** A box of the shape of the picture; the server knows it before the browser does. */
function frame(video, ...children) {
  const { width, height } = video;
  const shape = width && height ? { "--shape": width / height } : {};
  return h("div", { class: `frame ${video.kind}`, vars: shape }, ...children);
}

function still(video) {
  const image = h("img", { class: "screen", src: media(video.content), alt: readable(video.name) });
  const box = frame(video, image);
  image.addEventListener("error", async () => { if (await there(video, box)) image.src = thumb(video.content); }, { once: true });
  const nothing = { paused: true, muted: true, play: () => Promise.resolve(), pause: () => {} };
  return { element: box, player: nothing, seek: () => {}, move: () => {}, now: () => 0, follow: () => {}, stop: () => {} };
}

function playing(video, start) {
  const sound = video.kind === "audio";
  const player = h(sound ? "audio" : "video", {
    class: "screen", controls: true, playsinline: true, preload: "metadata", src: media(video.content), "aria-label": readable(video.name),
    poster: sound ? null : thumb(video.content, start),
  });
  const box = frame(video, player);
  const words = h("div", {});
  let wanted = start; // where to begin once the browser knows the file
  let copies = null; // what is played in place of a file that the browser cannot play
  const from = () => copies?.from() ?? 0;
  const now = () => from() + player.currentTime;
  const seek = (seconds) => {
    wanted = Math.min(Math.max(0, seconds), video.duration);
    if (copies) copies.show(wanted);
    else if (player.readyState > 0) player.currentTime = wanted;
    player.play().catch(() => {}); // a browser may want a press of the button first
  };
  const copied = async () => {
    if (copies || !(await there(video, box))) return;
    copies = copiesOf(video, player, words);
    copies.show(wanted);
  };
  player.addEventListener("loadedmetadata", () => {
    if (!copies && !sound && !player.videoWidth) copied(); // only its sound can be played
    else player.currentTime = wanted - from();
  });
  player.addEventListener("error", () => player.getAttribute("src") && copied());
  player.addEventListener("ended", () => copies && now() + 0.5 < video.duration && seek(now()));
  seek(start);
  return {
    element: h("div", {}, box, words), player, seek, now, move: (by) => seek(now() + by),
    follow: (listener) => { player.addEventListener("timeupdate", () => listener(now())); listener(wanted); },
    stop: () => { copies?.stop(); player.pause(); player.removeAttribute("src"); player.load(); },
  };
}

/** Copies of a few seconds each, fetched one at a time: `{show(seconds), from(), stop()}`. */
function copiesOf(video, player, words) {
  const original = h("a", { href: media(video.content), download: video.name }, "Download the original");
  let running = new AbortController();
  let shown = null; // {from, to, url}
  const show = async (seconds) => {
    if (shown && seconds >= shown.from && seconds < shown.to) { player.currentTime = seconds - shown.from; return; }
    running.abort();
    running = new AbortController();
    replace(words, h("p", { class: "small", role: "status" }, "Your browser cannot play this file. A copy of this moment is being made…"));
    try {
      const to = Math.min(video.duration, seconds + STRETCH);
      const made = await clip(video.content, { start: seconds.toFixed(2), end: to.toFixed(2), playable: true, download: false, tolerance: EARLY }, running.signal);
      if (shown) URL.revokeObjectURL(shown.url);
      shown = { from: made.start, to, url: URL.createObjectURL(made.blob) };
      player.src = shown.url;
      replace(words, h("p", { class: "small" }, "Your browser cannot play this file, so this is a copy, made while you watch. ", original));
      player.play().catch(() => {});
    } catch (error) {
      if (!stale(error)) replace(words, h("p", { class: "small wrong", role: "alert" }, sentence(error.message), " ", original));
    }
  };
  return { show, from: () => shown?.from ?? 0, stop: () => { running.abort(); if (shown) URL.revokeObjectURL(shown.url); } };
}

/** Whether the file can still be had; where not, the box says what happened. */
async function there(video, box) {
  try {
    await api.check(video.content);
    return true;
  } catch (error) {
    gone(video, box, error);
    return false;
  }
}

function gone(video, box, error) {
  box.classList.add("gone");
  const title = { gone: "This file is no longer there", changed: "This file has changed since it was added" }[error.code] ?? "This file cannot be shown";
  const next = error.status === 410 ? "Add its folder again in Library, and the library follows." : error.message;
  replace(box, notice(title, next, h("a", { class: "button", href: "/?view=library", "data-route": true }, "Open Library")));
}
