// Recent searches: kept in this browser alone, and only while that is wanted.

const KEY = "wordreel.recent";
const MOST = 8;

/** `{on, queries}`, the newest first. */
export function recent() {
  try {
    const { on = true, queries = [] } = JSON.parse(localStorage.getItem(KEY)) ?? {};
    return { on: on !== false, queries: queries.filter((query) => typeof query === "string") };
  } catch {
    return { on: false, queries: [] }; // storage may be forbidden, or hold something else
  }
}

function save(state) {
  try {
    localStorage.setItem(KEY, JSON.stringify(state));
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
