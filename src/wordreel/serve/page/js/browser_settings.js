// What this browser alone remembers: the theme, and recent searches while that is wanted.

const THEME_KEY = "wordreel.theme";

export const THEMES = { system: "same as my device", light: "light", dark: "dark" };

export function theme() {
  return document.documentElement.dataset.theme ?? "system";
}

export function choose(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem(THEME_KEY, name);
  } catch {
    // Without storage the choice lasts until the page is left.
  }
}

/** Whether things may move by themselves. */
export function still() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

const RECENT_KEY = "wordreel.recent";
const MOST = 8;

/** `{on, queries}`, the newest first. */
export function recent() {
  try {
    const { on = true, queries = [] } = JSON.parse(localStorage.getItem(RECENT_KEY)) ?? {};
    return { on: on !== false, queries: queries.filter((query) => typeof query === "string") };
  } catch {
    return { on: false, queries: [] }; // storage may be forbidden, or hold something else
  }
}

function save(state) {
  try {
    localStorage.setItem(RECENT_KEY, JSON.stringify(state));
  } catch {
    // Without storage nothing is remembered.
  }
}

export function remember(query) {
  const { on, queries } = recent();
  if (on) save({ on, queries: [query, ...queries.filter((other) => other !== query)].slice(0, MOST) });
}

export function forgetAll() {
  save({ ...recent(), queries: [] });
}

/** Turns remembering on or off; off forgets what there is. */
export function turn(on) {
  save({ on, queries: on ? recent().queries : [] });
}
