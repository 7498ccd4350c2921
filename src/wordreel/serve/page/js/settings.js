// How the page looks, what the server keeps, and what it is.
import { api } from "./api.js";
import { button, h, replace } from "./dom.js";
import { select } from "./filters.js";
import { count, length } from "./format.js";
import { say } from "./live.js";
import { modelsPart } from "./models.js";
import { failure, stale } from "./notice.js";
import { THEMES, choose, theme } from "./theme.js";

const KEYS = [
  ["/", "to the search box"], ["← ↑ → ↓", "between moments"], ["Enter", "open the moment"], ["Esc", "close the player"],
  ["space, k", "play and pause"], ["j, l", "5 seconds back, on"], [", .", "a little back, on"], ["m", "sound off and on"],
];

export function mount(root, app) {
  const running = new AbortController();
  const section = h("section", {});
  const models = modelsPart(app);
  root.append(h("h1", {}, "Settings"), look(), models.element, section, about(app.status), keys());
  models.update(running.signal);
  showQueries(section, app, running.signal);
  return { update: () => {}, leave: () => { running.abort(); models.leave(); }, title: () => "settings" };
}

function look() {
  const chosen = select(Object.entries(THEMES), theme(), { id: "theme" });
  chosen.addEventListener("change", () => choose(chosen.value));
  return h("section", {}, h("h2", {}, "Look"), h("span", { class: "choice" }, h("label", { for: "theme" }, "Dark or light"), chosen));
}

async function showQueries(container, app, signal) {
  const parts = [];
  try {
    parts.push(...logging(await api.settings(signal), app, container));
  } catch (error) {
    if (stale(error)) return;
    parts.push(failure(error, () => showQueries(container, app, signal)));
  }
  if (app.status.login === "token") parts.push(button({ on: { click: () => api.logout().then(() => location.assign("/")) } }, "Log out"));
  replace(container, h("h2", {}, "Queries"), ...parts);
}

function logging(settings, app, container) {
  const box = h("input", { type: "checkbox", id: "log", checked: settings.log_queries, disabled: app.status.read_only });
  box.addEventListener("change", () => api.set({ ...settings, log_queries: box.checked }).then(
    () => say(box.checked ? "Queries are kept" : "Queries are not kept"),
    (error) => { box.checked = !box.checked; container.append(failure(error)); }));
  return [h("div", { class: "row check" }, box, h("label", { for: "log" }, "Keep what is searched for in the bank ", h("strong", {}, settings.log_bank ?? "log"))),
    h("p", { class: "small" }, "Real queries make the best bank. They stay in the library on this machine.")];
}

function about(status) {
  const facts = [
    ["wordreel", status.version], ["Library", status.library], ["Files", `${count(status.videos)}, ${length(status.seconds)}, ${count(status.clips)} clips`],
    ["Model", status.model.name], ["Experts", status.model.experts.join(", ")], ["Access", access(status)],
  ];
  return h("section", {}, h("h2", {}, "About"), h("dl", { class: "facts-list" }, facts.map(([name, words]) => [h("dt", {}, name), h("dd", {}, words)])),
    h("p", { class: "small" }, h("a", { href: "/api/openapi.json" }, "The API, as OpenAPI"), " · ", h("a", { href: "/metrics" }, "Metrics")));
}

function access(status) {
  return `${status.login === "token" ? "with a token" : "from this machine, without login"}${status.read_only ? ", for reading only" : ""}`;
}

function keys() {
  return h("section", {}, h("h2", {}, "Keys"), h("dl", { class: "facts-list" }, KEYS.map(([name, words]) => [h("dt", {}, h("kbd", {}, name)), h("dd", {}, words)])));
}
