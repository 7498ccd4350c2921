// Sample queries (query banks): which there are, and what their checks said.
import { api } from "./api.js";
import { button, h, icon, replace } from "./dom.js";
import { plural } from "./format.js";
import { jobList } from "./jobs.js";
import { METHODS } from "./norms.js";
import { confirmed, failure, stale } from "./notice.js";

/** `{element, update(signal)}`; `changed()` is called after a bank came or went. */
export function banksPart(app, changed) {
  const list = h("div", {});
  const trouble = h("div", { "aria-live": "assertive" });
  const complain = (error) => replace(trouble, failure(error));
  const redo = async () => { await app.refresh(); changed(); };
  const jobs = jobList(app, redo, complain);
  const build = () => api.buildBank({ name: "everyday", source: "builtin" }).then((answer) => { jobs.watch(answer.job); }, complain);
  const update = async (signal) => {
    try {
      const { banks } = await api.banks(signal);
      replace(list, table(banks, app.status.read_only, (name) => drop(name, redo, complain)),
        !app.status.read_only && !banks.some((bank) => bank.name === "everyday")
          && button({ class: "primary", on: { click: build } }, "Add the everyday sample queries"));
    } catch (error) {
      if (!stale(error)) complain(error);
    }
  };
  return { element: h("section", { class: "banks" }, h("h2", {}, "Sample queries"), h("p", { class: "small" }, "They also tell how sure a result is. Researchers call a set of them a query bank."), trouble, jobs.element, list), update };
}

function table(banks, readOnly, remove) {
  if (!banks.length) return h("p", {}, "There are none yet. The everyday ones are common searches; with them results say how sure they are.");
  return h("ul", { class: "table" }, banks.map((bank) => h("li", {},
    h("span", { class: "about" }, h("strong", {}, bank.name), h("span", { class: "small" }, plural(bank.size, "query", "queries"))),
    h("span", { class: "small state" }, state(bank.checked)),
    !readOnly && button({ class: "round", "aria-label": `Remove the sample queries ${bank.name}`, on: { click: () => remove(bank.name) } }, icon("trash")))));
}

function state(checked) {
  if (!checked) return "not checked: tell how sure results are, rank nothing by themselves";
  if (!checked.current) return "changed since their check: rank nothing by themselves";
  return checked.passed ? `passed their check: used for ranking (${METHODS[checked.method] ?? checked.method})` : "failed their check: not used for ranking";
}

async function drop(name, redo, complain) {
  if (!(await confirmed(`Remove the sample queries ${name}?`, "They are deleted, and results may no longer say how sure they are.", "Remove them", "Keep them"))) return;
  api.dropBank(name).then(redo, complain);
}
