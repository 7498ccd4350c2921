// The search view: a box that answers as you type.
import { api } from "./api.js";
import { box } from "./searchbox.js";
import { compare } from "./compare.js";
import { button, h, replace } from "./dom.js";
import { filterFields } from "./filters.js";
import { count, plural } from "./format.js";
import { grid } from "./grid.js";
import { home } from "./home.js";
import { say } from "./live.js";
import { failure, notice, stale, waiting } from "./notice.js";
import { FILTERS, go } from "./router.js";
import { ranking } from "./why.js";

const PAGE = 24;

/** Builds the view in `root`; `update(route)` shows another query. */
export function mount(root, app) {
  const form = box(app);
  const results = h("section", { class: "results", "aria-label": "Results" });
  root.append(form.element, results);
  let running = new AbortController();
  let last = null;
  const update = async (route) => {
    form.show(route);
    const wanted = JSON.stringify({ ...route, video: "", t: "" });
    if (wanted === last) return; // only the player opened or closed
    last = wanted;
    running.abort();
    running = new AbortController();
    root.classList.toggle("waiting", !asks(route));
    await show(results, route, app, running.signal, () => { last = null; update(route); });
  };
  return { update, leave: () => running.abort(), title: (route) => route.q || (route.like ? "more like this" : "search") };
}

const asks = (route) => Boolean(route.q || route.like || route.image);

async function show(results, route, app, signal, again) {
  if (!results.firstChild) replace(results, waiting());
  results.setAttribute("aria-busy", "true");
  try {
    if (!asks(route)) replace(results, await home(app, signal));
    else if (route.compare && route.q) await showCompare(results, route, app, signal);
    else await showHits(results, route, signal);
  } catch (error) {
    if (stale(error)) return;
    replace(results, failure(error, again));
  }
  results.removeAttribute("aria-busy");
}

/** The request body of a route. */
function query(route, offset = 0) {
  const body = { ...filterFields(route), limit: PAGE, offset };
  for (const name of ["then", "norm", "bank", "image"]) if (route[name]) body[name] = route[name];
  if (route.q) body.text = route.q;
  if (route.moments) body.moments = true;
  if (route.like) body.like = { content: route.like, ...seconds(route, "start"), ...seconds(route, "end") };
  return body;
}

const seconds = (route, name) => (route[name] ? { [name]: Number(route[name]) } : {});

async function showHits(results, route, signal) {
  const answer = await api.search(query(route), signal);
  if (!answer.hits.length) {
    say("Nothing was found");
    replace(results, nothing(route));
    return;
  }
  const list = grid(answer.hits, route);
  const head = h("div", { class: "summary" }, h("span", {}, summary(answer)));
  if (answer.note) head.append(h("details", {}, h("summary", {}, `Ranked ${ranking(answer.norm)}`), answer.note));
  replace(results, head, list, answer.hits.length === PAGE && more(list, route, answer.hits.length));
  say(`${plural(answer.hits.length, "moment")} found`);
}

function summary(answer) {
  return `The best of ${plural(answer.total_estimate, "file")}, in ${count(Math.round(answer.took.total_ms))} ms`;
}

async function showCompare(results, route, app, signal) {
  if (!app.banks().length) {
    replace(results, notice("Side by side needs a query bank", "A bank of sample queries shows which videos turn up too often. Hubness builds one.",
      h("a", { class: "button primary", href: "/?view=hubness", "data-route": true }, "To the banks")));
    return;
  }
  const { norm, bank } = route;
  const { min_confidence: _, ...filters } = filterFields(route); // two rankings are compared, nothing is left out
  const answer = await api.compare({ ...filters, text: route.q, norm, bank, limit: 12 }, signal);
  replace(results, compare(answer, route));
  say("Plain and normalised results are shown side by side");
}

function more(list, route, offset) {
  const opener = button({ class: "more" }, "Show more");
  opener.addEventListener("click", async () => {
    opener.disabled = true;
    try {
      const { hits } = await api.search(query(route, offset));
      const added = [...grid(hits, route).children];
      list.append(...added);
      added[0]?.querySelector("a").focus();
      opener.replaceWith(hits.length === PAGE ? more(list, route, offset + PAGE) : "");
    } catch (error) {
      opener.replaceWith(failure(error, () => list.parentNode.querySelector(".notice").replaceWith(more(list, route, offset))));
    }
  });
  return opener;
}

function nothing(route) {
  const filtered = FILTERS.filter((name) => route[name]);
  if (!filtered.length) return notice("Nothing like that is here", "Say it with other words, or add the videos that show it.");
  const bare = Object.fromEntries(Object.entries(route).filter(([name]) => !FILTERS.includes(name)));
  return notice("Nothing passes the filters", "There may be matches among the videos that the filters leave out.",
    button({ class: "primary", on: { click: () => go(bare) } }, "Search without filters"));
}
