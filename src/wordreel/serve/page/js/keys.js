// Keys of the player and of the page.

const FIELD = "input, textarea, select, [contenteditable]";
const PRESSED = "button, a, summary, [role=slider]"; // they have their own use for space

/** j and l go 5 seconds back and on, k and space play and pause, m mutes, comma and full stop step. */
export function playerKeys(event, player) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches(FIELD)) return;
  const act = {
    j: () => { player.currentTime -= 5; },
    l: () => { player.currentTime += 5; },
    k: () => toggle(player),
    " ": () => toggle(player),
    m: () => { player.muted = !player.muted; },
    ",": () => { player.currentTime -= 0.1; },
    ".": () => { player.currentTime += 0.1; },
  }[event.key];
  if (!act || (event.key === " " && event.target.matches(PRESSED))) return;
  event.preventDefault();
  act();
}

function toggle(player) {
  if (player.paused) player.play().catch(() => {});
  else player.pause();
}

/** "/" goes to the search box. */
export function pageKeys(event, find) {
  if (event.key !== "/" || event.altKey || event.ctrlKey || event.metaKey || event.target.matches(FIELD)) return;
  if (document.querySelector("dialog[open]")) return;
  event.preventDefault();
  find();
}
