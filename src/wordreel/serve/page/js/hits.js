// The results on the screen, for the player: what comes before and after, how sure it was, and why.

let shown = [];
let changed = () => {};

/** What is on the screen now, in order. */
export function keep(hits) {
  shown = hits;
  changed();
}

/** Calls `listener` whenever other results come; one listener at a time. */
export function onResults(listener) {
  changed = listener;
}

/** `{hit, previous, next}` of what a route plays; the hit itself is undefined where it is not on the screen. */
export function around({ video, t }) {
  let at = shown.findIndex((hit) => hit.content === video && (hit.kind === "image" || hit.start.toFixed(1) === t));
  if (at < 0) at = shown.findIndex((hit) => hit.content === video);
  return at < 0 ? {} : { hit: shown[at], previous: shown[at - 1], next: shown[at + 1] };
}
