// Query banks: which there are, and what their checks said.
import { api } from "./api.js";
import { confirmed } from "./confirm.js";
import { button, h, icon, replace } from "./dom.js";
import { plural } from "./format.js";
import { jobList } from "./jobs.js";
import { failure, stale } from "./notice.js";

/** `{element, update(signal)}`; `changed()` is called after a bank came or went. */
export function banksPart(app, changed) {
  const list = h("div", {});
  const trouble = h("div", { "aria-live": "assertive" });
  const complain = (error) => replace(trouble, failure(error));
  const redo = async () => { await app.refresh(); changed(); };
  const jobs = jobList(redo, complain);
  const build = () => api.buildBank({ name: "everyday", source: "builtin" }).then((answer) => { jobs.watch(answer.job); }, complain);
  const update = async (signal) => {
    try {
      const { banks } = await api.banks(signal);
      replace(list, table(banks, app.status.read_only, (name) => drop(name, redo, complain)),
        !app.status.read_only && !banks.some((bank) => bank.name === "everyday")
          && button({ class: "primary", on: { click: build } }, "Build the everyday bank"));
    } catch (error) {
      if (!stale(error)) complain(error);
    }
  };
  return { element: h("section", { class: "banks" }, h("h2", {}, "Banks"), trouble, jobs.element, list), update };
}

function table(banks, readOnly, remove) {
  if (!banks.length) return h("p", {}, "There is no bank yet. The everyday bank holds common queries and gives hits their confidence.");
  return h("ul", { class: "table" }, banks.map((bank) => h("li", {},
    h("span", { class: "about" }, h("strong", {}, bank.name), h("span", { class: "small" }, plural(bank.size, "query", "queries"))),
    h("span", { class: "small state" }, state(bank.checked)),
    !readOnly && button({ class: "round", "aria-label": `Remove the bank ${bank.name}`, on: { click: () => remove(bank.name) } }, icon("trash")))));
}

function state(checked) {
  if (!checked) return "not checked, so it ranks nothing by itself";
  if (!checked.current) return "changed since its check, so it ranks nothing by itself";
  return checked.passed ? `passed its check: used, with ${checked.method}` : "failed its check: not used";
}

async function drop(name, redo, complain) {
  if (!(await confirmed(`Remove the bank ${name}?`, "Its queries and its check are lost. Searches that asked for it by name will fail.", "Remove it"))) return;
  api.dropBank(name).then(redo, complain);
}
