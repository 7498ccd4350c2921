// The search view: a box that answers as you type.
import { api } from "./api.js";
import { remember } from "./browser_settings.js";
import { grid } from "./cards.js";
import { compare } from "./compare.js";
import { button, h, replace } from "./dom.js";
import { exportMenu } from "./exports.js";
import { filterFields } from "./filters.js";
import { plural, readable, sentence, took } from "./format.js";
import { keep } from "./hits.js";
import { home } from "./home.js";
import { failure, notice, say, stale, waiting } from "./notice.js";
import { FILTERS, go } from "./router.js";
import { saveSearch } from "./saved.js";
import { box } from "./searchbox.js";
import { ranking } from "./why.js";

const PAGE = 24;
const MEANT = 2000; // ms that results are looked at before their query counts as meant

/** Builds the view in `root`; `update(route)` shows another query. */
export function mount(root, app) {
  const results = h("section", { class: "results", "aria-label": "Results" });
  const place = placeKeeper(results);
  const form = box(app, place.down);
  root.append(form.element, form.chosen, results);
  let running = new AbortController();
  let last = null;
  let meant = 0;
  const update = async (route) => {
    form.show(route);
    const wanted = JSON.stringify({ ...route, video: "", t: "" });
    if (route.video && route.q && wanted === last) remember(route.q);
    if (wanted === last) return; // only the player opened or closed
    last = wanted;
    clearTimeout(meant);
    running.abort();
    running = new AbortController();
    root.classList.toggle("waiting", !asks(route));
    const done = await show(results, route, app, { signal: running.signal, place, again: () => { last = null; update(route); } });
    if (!done) return;
    form.settled();
    if (route.q) meant = setTimeout(() => remember(route.q), MEANT);
  };
  return { update, leave: () => { clearTimeout(meant); running.abort(); }, title: (route) => route.q || (route.like || route.image ? "more like this" : "search") };
}

const asks = (route) => Boolean(route.q || route.like || route.image);

/** Fills the results; true where they were not replaced by newer ones. */
async function show(results, route, app, { signal, place, again }) {
  if (!results.firstChild) replace(results, waiting());
  results.setAttribute("aria-busy", "true");
  try {
    const parts = await (asks(route) ? answer(route, app, signal) : home(app, signal));
    place.fill(parts);
  } catch (error) {
    if (stale(error)) return false;
    place.fill([failure(error, again)]);
  }
  results.removeAttribute("aria-busy");
  return true;
}

function answer(route, app, signal) {
  return route.compare && route.q ? comparison(route, app, signal) : hitsOf(route, app, signal);
}

/** Results come while keys are pressed: the focus stays at its place, and an arrow pressed early is not lost. */
function placeKeeper(results) {
  let early = false;
  const links = () => [...results.querySelectorAll("a.open")];
  return {
    down() {
      if (results.hasAttribute("aria-busy")) early = true;
      else links()[0]?.focus();
    },
    fill(parts) {
      const at = links().findIndex((link) => link.parentNode.contains(document.activeElement));
      const inside = early || results.contains(document.activeElement);
      early = false;
      replace(results, ...parts);
      if (!inside) return;
      const now = links();
      (now[Math.min(Math.max(at, 0), now.length - 1)] ?? document.getElementById("query")).focus();
    },
  };
}

/** The request body of a route. */
function query(route, offset = 0) {
  const body = { ...filterFields(route), limit: PAGE, offset };
  for (const name of ["then", "norm", "bank", "image"]) if (route[name]) body[name] = route[name];
  if (route.q) body.text = route.q;
  if (route.moments) body.moments = true;
  if (route.like) Object.assign(body, { like: route.like }, middle(route));
  return body;
}

/** The second that stands for the moment of a route. */
const middle = ({ start, end }) => (start ? { second: (Number(start) + Number(end || start)) / 2 } : {});

async function hitsOf(route, app, signal) {
  const found = await api.search(query(route), signal);
  keep(found.hits);
  if (!found.hits.length) {
    say("Nothing was found");
    return [...notices(found), nothing(route)];
  }
  const list = grid(found.hits, route);
  say(`${plural(found.hits.length, "moment")} found`);
  return [h("div", { class: "summary" }, summary(found, route, app)), ...notices(found, route.norm), list.element, found.hits.length === PAGE && more(list, route, found.hits)];
}

/** What of the words was not understood, and what is doubtful about a ranking that was chosen. */
function notices(found, chosen) {
  return [...found.notices, ...(chosen && found.note ? [found.note] : [])].map((text) => h("p", { class: "hint", role: "note" }, sentence(text)));
}

function summary(found, route, app) {
  const searched = `${plural(found.total_estimate, "file")} searched in ${took(found.took.total_ms)}`;
  return [h("span", {}, searched), route.norm && h("span", {}, `Ranking: ${ranking(found.norm)}`), exportMenu(route), !app.status.read_only && !route.image && saveSearch(query(route), route.q ?? readable(route.name ?? ""))];
}

async function comparison(route, app, signal) {
  keep([]);
  if (!app.banks().length) {
    return [notice("Comparing rankings needs sample queries", "They show which videos turn up too often. Settings, Ranking adds them.",
      h("a", { class: "button primary", href: "/?view=ranking", "data-route": true }, "Open Ranking"))];
  }
  const { norm, bank } = route;
  const { min_confidence: _, ...filters } = filterFields(route); // two rankings are compared, nothing is left out
  const found = await api.search({ ...filters, text: route.q, ...(norm && { norm }), ...(bank && { bank }), limit: 12, compare: true }, signal);
  keep(found.hits);
  say("Two rankings are shown side by side");
  return [...notices(found, true), compare(found, route)];
}

function more(list, route, hits) {
  const opener = button({ class: "more" }, "Show more");
  opener.addEventListener("click", async () => {
    opener.disabled = true;
    try {
      const { hits: further } = await api.search(query(route, hits.length));
      const all = [...hits, ...further];
      list.append(further);
      keep(all);
      list.element.querySelectorAll("a.open")[hits.length]?.focus();
      opener.replaceWith(further.length === PAGE ? more(list, route, all) : "");
    } catch (error) {
      opener.replaceWith(failure(error, () => list.element.parentNode.querySelector(".notice").replaceWith(more(list, route, hits))));
    }
  });
  return opener;
}

function nothing(route) {
  const filtered = FILTERS.filter((name) => route[name]);
  if (!filtered.length) return notice("Nothing like that is here", "Say it with other words, or add the videos that show it.");
  const bare = Object.fromEntries(Object.entries(route).filter(([name]) => !FILTERS.includes(name)));
  return notice("Nothing passes the filters", "There may be matches among the files that the filters leave out.",
    button({ class: "primary", on: { click: () => go(bare) } }, "Search without filters"));
}
