// The picture of the player: a video, a sound or a still, with what to do when the browser cannot play it.
import { media, thumb, written } from "./api.js";
import { h } from "./dom.js";

/** `{element, player, seek(seconds), now(), follow(listener), stop()}`. */
export function screen(video, start) {
  return video.kind === "image" ? still(video) : playing(video, start);
}

function still(video) {
  const nothing = { paused: true, play: () => Promise.resolve(), pause: () => {} };
  return {
    element: h("img", { class: "screen", src: media(video.content), alt: video.name }),
    player: nothing, seek: () => {}, now: () => 0, follow: () => {}, stop: () => {},
  };
}

function playing(video, start) {
  const sound = video.kind === "audio";
  const player = h(sound ? "audio" : "video", {
    class: "screen", controls: true, playsinline: true, preload: "metadata", src: media(video.content), "aria-label": video.name,
    poster: sound ? null : thumb(video.content, start),
  });
  let wanted = start;
  const seek = (seconds) => {
    wanted = seconds;
    if (player.readyState > 0) player.currentTime = seconds;
    player.play().catch(() => {}); // a browser may want a press of the button first
  };
  player.addEventListener("loadedmetadata", () => { player.currentTime = wanted; }, { once: true });
  const box = h("div", {}, player);
  player.addEventListener("error", () => box.replaceChildren(...unplayable(video, start)), { once: true });
  seek(start);
  return {
    element: box, player, seek, now: () => player.currentTime,
    follow: (listener) => { player.addEventListener("timeupdate", () => listener(player.currentTime)); listener(wanted); },
    stop: () => { player.pause(); player.removeAttribute("src"); player.load(); },
  };
}

function unplayable(video, start) {
  const end = Math.min(video.duration, start + 5);
  const moving = `/api/preview/${encodeURIComponent(video.content)}${written({ start, end })}`;
  return [
    video.kind === "video" && h("img", { class: "screen", src: moving, alt: `A moving preview of ${video.name}` }),
    h("p", { class: "small" }, "This browser cannot play the file itself. ", h("a", { href: media(video.content), download: video.name }, "Download it"),
      " to see it in another player."),
  ].filter(Boolean);
}
