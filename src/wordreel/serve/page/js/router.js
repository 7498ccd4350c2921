// The address holds all that is shown, so back, forward, reload and sharing work.

export const FILTERS = [
  "kind", "folder", "after", "before", "min_duration", "max_duration", "has_speech", "has_text", "expert", "min_confidence", "tags", "people",
];

let render = null;

/** The address as a plain object; what is not given is not in it. */
export function here() {
  return routeOf(location);
}

function routeOf({ pathname, search }) {
  const route = Object.fromEntries([...new URLSearchParams(search)].filter(([, value]) => value !== ""));
  return { view: "search", ...route, ...(pathname === "/" ? {} : { view: "lost" }) };
}

/** The address of a route. */
export function href(route) {
  const { view, ...rest } = route;
  const given = Object.entries({ view: view === "search" ? "" : view, ...rest });
  const query = new URLSearchParams(given.filter(([, value]) => value !== "" && value !== undefined && value !== null));
  return `/${query.size ? `?${query}` : ""}`;
}

/** Shows `route`; `replace` leaves no step to go back to, as for each letter of a query. `state` is kept with the step. */
export function go(route, { replace = false, state = {} } = {}) {
  const address = href(route);
  if (address === location.pathname + location.search) return;
  if (replace) history.replaceState({ ...history.state, ...state }, "", address);
  else history.pushState({ over: opensPlayer(route), ...state }, "", address);
  render(here());
}

const opensPlayer = (route) => Boolean(route.video) && !here().video;

/** Leaves the player: back to the step that opened it, or where there is none, to the same place without it. */
export function closeOver() {
  const { video, t, ...rest } = here();
  if (!video) return;
  if (history.state?.over) history.back();
  else go(rest, { replace: true });
}

/** Calls `show(route)` now and whenever the address changes. */
export function start(show) {
  if (!render) {
    addEventListener("popstate", () => render(here()));
    document.addEventListener("click", follow);
  }
  render = show;
  render(here());
}

function follow(event) {
  const link = event.target.closest?.("a[data-route]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  go(routeOf(new URL(link.href)));
}
