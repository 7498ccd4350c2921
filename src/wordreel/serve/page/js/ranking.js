// Files that turn up for too many queries, and what a ranking does about it.
import { api } from "./api.js";
import { banksPart } from "./banks.js";
import { still } from "./cards.js";
import { h, replace, select } from "./dom.js";
import { percent, plural, readable, sentence } from "./format.js";
import { histogram } from "./histogram.js";
import { keep } from "./hits.js";
import { methods } from "./norms.js";
import { failure, notice, stale } from "./notice.js";
import { go, here, href } from "./router.js";

const ROWS = [
  ["largest", "Most often found", (value) => `${value} times`, "the file that answers the most queries"],
  ["antihub_occurrence", "Never found", percent, "files that are among the best for no query at all"],
  ["skewness", "Skewness", (value) => value.toFixed(2), "how lopsided the counts are; 0 is even, above 1 a few files dominate"],
  ["gini", "Gini index", (value) => value.toFixed(2), "inequality of the counts: 0 if all files are found equally often, 1 if one takes all"],
  ["robin_hood", "Robin Hood index", (value) => value.toFixed(2), "the share of finds that would have to move for all files to be found equally often"],
];
const SIDES = ["similarity alone", "held back"];

export function mount(root, app) {
  let running = new AbortController();
  const section = h("section", { "aria-live": "polite" });
  const banks = banksPart(app, () => update(here()));
  const controls = h("div", { class: "tools" });
  keep([]);
  root.append(h("a", { class: "small", href: "/?view=settings", "data-route": true }, "← Settings"), h("h1", {}, "Ranking"),
    h("p", { class: "lead" }, "Some files look a little like everything, so they turn up for almost any words and push better answers down. ",
      "Researchers call them hubs. Sample queries show which files these are, and a ranking method holds them back. ",
      "A method is used by itself only where sample queries were checked against captions and did not make results worse."),
    trial(), h("h2", {}, "Which files turn up too often"), controls, section, banks.element);
  const update = async (route) => {
    running.abort();
    running = new AbortController();
    replace(controls, ...choices(route, app));
    await Promise.all([show(section, route, app.banks(), running.signal, () => update(route)), banks.update(running.signal)]);
  };
  return { update, leave: () => running.abort(), title: () => "ranking" };
}

/** Words to compare two rankings with. */
function trial() {
  const words = h("input", { id: "trial", type: "search", placeholder: "Words to compare with", autocomplete: "off" });
  const submit = (event) => {
    event.preventDefault();
    if (words.value.trim()) go({ view: "search", q: words.value.trim(), compare: "1", norm: here().norm ?? "dis", bank: here().bank });
  };
  return h("form", { class: "trial", on: { submit } }, h("h2", {}, "Compare side by side"),
    h("label", { class: "small", for: "trial" }, "See the same search ranked by similarity alone, and with frequent files held back."),
    h("div", { class: "row" }, words, h("button", { class: "primary", type: "submit" }, "Compare")));
}

function choices(route, app) {
  const banks = app.banks();
  const method = select(methods(app).filter(([name]) => !["auto", "none"].includes(name)), route.norm ?? "dis", { id: "hub-norm" });
  const bank = select(banks.map((name) => [name, name]), route.bank, { id: "hub-bank" });
  method.addEventListener("change", () => go({ ...here(), norm: method.value }));
  bank.addEventListener("change", () => go({ ...here(), bank: bank.value }));
  return [h("span", { class: "choice" }, h("label", { for: "hub-norm" }, "Method"), method),
    banks.length > 0 && h("span", { class: "choice" }, h("label", { for: "hub-bank" }, "Sample queries"), bank)];
}

async function show(container, route, banks, signal, again) {
  container.setAttribute("aria-busy", "true");
  try {
    if (!banks.length) {
      replace(container, notice("Nothing to count with yet", "Add the everyday sample queries below."));
      return;
    }
    const answer = await api.hubness({ bank: route.bank, norm: route.norm ?? "dis" }, signal);
    replace(container, chart(answer), answer.hubs.length > 0 && hubs(answer.hubs));
  } catch (error) {
    if (!stale(error)) replace(container, failure(error, again));
  } finally {
    if (!signal.aborted) container.removeAttribute("aria-busy");
  }
}

function chart(answer) {
  const legend = SIDES.map((words, at) => h("li", {}, h("span", { class: `key key${at + 1}` }), words));
  const words = `${plural(answer.queries, "sample query", "sample queries")} (${answer.bank}), ${plural(answer.videos, "file")}.${answer.note ? ` ${sentence(answer.note)}` : ""}`;
  return h("div", { class: "chart" },
    h("figure", {}, h("ul", { class: "legend" }, legend), histogram({ [SIDES[0]]: answer.before.histogram, [SIDES[1]]: answer.after.histogram }, answer.edges, answer.k),
      h("figcaption", { class: "small" }, words)),
    numbers(answer.before, answer.after));
}

function numbers(before, after) {
  const head = h("tr", {}, h("td", {}), SIDES.map((words) => h("th", { scope: "col" }, words)));
  const rows = ROWS.filter(([name]) => name in before && name in after).map(([name, words, write, meaning]) =>
    h("tr", {}, h("th", { scope: "row" }, words, h("span", { class: "small meaning" }, meaning)), [before, after].map((side) => h("td", {}, write(side[name])))));
  return h("table", { class: "numbers" }, h("thead", {}, head), h("tbody", {}, rows));
}

function hubs(list) {
  const most = Math.max(...list.map((hub) => Math.max(hub.count_before, hub.count_after)), 1);
  return [h("h3", {}, "Found most often"),
    h("ul", { class: "grid small-cards" }, list.map((hub) => h("li", { class: "card" },
      h("a", { class: "open", "data-route": true, href: href({ view: "ranking", video: hub.content }), "aria-label": readable(hub.name) },
        h("div", { class: "thumb" }, still(hub))),
      h("div", { class: "about" }, h("span", { class: "title" }, h("bdi", {}, readable(hub.name))), times(SIDES[0], hub.count_before, most, 1), times(SIDES[1], hub.count_after, most, 2)))))];
}

function times(words, number, most, series) {
  return h("span", { class: "times" }, h("span", { class: "small" }, words),
    h("span", { class: `bar tone${series}`, "aria-hidden": "true", vars: { "--part": number / most } }), h("span", { class: "number" }, `${number}×`));
}
