// Keys of the player and of the page.

const FIELD = "input, textarea, select, [contenteditable]";
const PRESSED = "button, a, summary, [role=slider]"; // they have their own use for space

/** j and l go 5 seconds back and on, k and space play and pause, m mutes, comma and full stop step; n and p go to other results. */
export function playerKeys(event, { player, move }, step) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.matches(FIELD)) return;
  const act = {
    j: () => move(-5),
    l: () => move(5),
    k: () => toggle(player),
    " ": () => toggle(player),
    m: () => { player.muted = !player.muted; },
    ",": () => move(-0.1),
    ".": () => move(0.1),
    n: () => step(1),
    p: () => step(-1),
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
