// Hubs: videos that answer too many queries, before and after a bank holds them back.
import { api } from "./api.js";
import { banksPart } from "./banks.js";
import { still } from "./card.js";
import { h, replace } from "./dom.js";
import { select } from "./filters.js";
import { percent, plural, sentence } from "./format.js";
import { histogram } from "./histogram.js";
import { methods } from "./norms.js";
import { failure, notice, stale } from "./notice.js";
import { go, here, href } from "./router.js";

const ROWS = [
  ["skewness", "Skewness", (value) => value.toFixed(2)],
  ["largest", "Largest hub", (value) => `${value} times`],
  ["antihub_occurrence", "Never found", percent],
  ["gini", "Gini", (value) => value.toFixed(2)],
  ["robin_hood", "Robin Hood", (value) => value.toFixed(2)],
];

export function mount(root, app) {
  let running = new AbortController();
  const section = h("section", { "aria-live": "polite" });
  const banks = banksPart(app, () => update(here()));
  const controls = h("div", { class: "tools" });
  root.append(h("h1", {}, "Hubness"),
    h("p", { class: "lead" }, "In every search like this a few videos answer too many queries, and many answer none. ",
      "A bank of sample queries shows which, and a method holds them back."),
    controls, section, banks.element);
  const update = async (route) => {
    running.abort();
    running = new AbortController();
    replace(controls, ...choices(route, app));
    await Promise.all([show(section, route, app.banks(), running.signal, () => update(route)), banks.update(running.signal)]);
  };
  return { update, leave: () => running.abort(), title: () => "hubness" };
}

function choices(route, app) {
  const banks = app.banks();
  const method = select(methods(app).filter(([name]) => !["auto", "none"].includes(name)), route.norm ?? "dis", { id: "hub-norm" });
  const bank = select(banks.map((name) => [name, name]), route.bank, { id: "hub-bank" });
  method.addEventListener("change", () => go({ ...here(), norm: method.value }));
  bank.addEventListener("change", () => go({ ...here(), bank: bank.value }));
  return [h("span", { class: "choice" }, h("label", { for: "hub-norm" }, "Method"), method),
    banks.length > 0 && h("span", { class: "choice" }, h("label", { for: "hub-bank" }, "Bank"), bank)];
}

async function show(container, route, banks, signal, again) {
  container.setAttribute("aria-busy", "true");
  try {
    if (!banks.length) {
      replace(container, notice("Nothing to count with yet", "Hubs are seen with a bank of sample queries. Build the everyday bank below."));
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
  const legend = ["plain", "held back"].map((words, at) => h("li", {}, h("span", { class: `key key${at + 1}` }), words));
  const words = `${plural(answer.queries, "query", "queries")} of the bank ${answer.bank}, ${plural(answer.videos, "video")}. ${sentence(answer.note)}`;
  return h("div", { class: "chart" },
    h("figure", {}, h("ul", { class: "legend" }, legend), histogram({ plain: answer.before.histogram, "held back": answer.after.histogram }, answer.edges, answer.k),
      h("figcaption", { class: "small" }, words)),
    numbers(answer.before, answer.after));
}

function numbers(before, after) {
  const head = h("tr", {}, h("td", {}), ["plain", "held back"].map((words) => h("th", { scope: "col" }, words)));
  const rows = ROWS.filter(([name]) => name in before && name in after).map(([name, words, write]) =>
    h("tr", {}, h("th", { scope: "row" }, words), [before, after].map((side) => h("td", {}, write(side[name])))));
  return h("table", { class: "numbers" }, h("thead", {}, head), h("tbody", {}, rows));
}

function hubs(list) {
  const most = Math.max(...list.map((hub) => Math.max(hub.count_before, hub.count_after)), 1);
  return [h("h2", {}, "The hubs themselves"),
    h("ul", { class: "grid small-cards" }, list.map((hub) => h("li", { class: "card" },
      h("a", { class: "open", "data-route": true, href: href({ view: "hubness", video: hub.content }), "aria-label": hub.name },
        h("div", { class: "thumb" }, still(hub))),
      h("div", { class: "about" }, h("span", { class: "title" }, hub.name), times("plain", hub.count_before, most, 1), times("held back", hub.count_after, most, 2)))))];
}

function times(words, number, most, series) {
  return h("span", { class: "times" }, h("span", { class: "small" }, words),
    h("span", { class: `bar tone${series}`, "aria-hidden": "true", vars: { "--part": number / most } }), h("span", { class: "number" }, `${number}×`));
}
