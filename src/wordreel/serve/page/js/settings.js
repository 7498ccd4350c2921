// How the page looks, what it remembers, and what wordreel is.
import { api } from "./api.js";
import { choose, recent, theme, THEMES, turn } from "./browser_settings.js";
import { button, h, replace, select } from "./dom.js";
import { count, length, readable } from "./format.js";
import { modelsPart } from "./models.js";
import { failure, say, stale } from "./notice.js";

const KEYS = [
  ["/", "go to the search box"], ["← ↑ → ↓", "move between results"], ["Enter", "open the result"], ["Esc", "close the player"],
  ["n, p", "next, previous result"], ["space, k", "play and pause"], ["j, l", "5 seconds back, forward"], [", .", "a little back, forward"], ["m", "sound off and on"],
];

export function mount(root, app) {
  const running = new AbortController();
  const queries = h("section", {});
  const models = modelsPart(app);
  root.append(h("h1", {}, "Settings"), look(), history(), queries, ranking(), models.element, about(app.status), keys());
  models.update(running.signal);
  showQueries(queries, app, running.signal);
  return { update: () => {}, leave: () => { running.abort(); models.leave(); }, title: () => "settings" };
}

function look() {
  const chosen = select(Object.entries(THEMES), theme(), { id: "theme" });
  chosen.addEventListener("change", () => choose(chosen.value));
  return h("section", {}, h("h2", {}, "Appearance"), h("span", { class: "choice" }, h("label", { for: "theme" }, "Colours"), chosen));
}

/** A box to tick, with its words. */
function check(id, checked, words, props = {}) {
  const box = h("input", { type: "checkbox", id, checked, ...props });
  return { box, element: h("div", { class: "row check" }, box, h("label", { for: id }, words)) };
}

function history() {
  const { box, element } = check("recent", recent().on, "Show my recent searches on the start page");
  box.addEventListener("change", () => { turn(box.checked); say(box.checked ? "Recent searches are shown" : "Recent searches are forgotten"); });
  return h("section", {}, h("h2", {}, "Recent searches"), element,
    h("p", { class: "small" }, "They are kept in this browser alone. Turning this off forgets them."));
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
  replace(container, h("h2", {}, "Learning from searches"), ...parts);
}

function logging(settings, app, container) {
  const { box, element } = check("log", settings.log_queries, "Let wordreel learn from what is searched for here", { disabled: app.status.read_only });
  box.addEventListener("change", () => api.set({ ...settings, log_queries: box.checked }).then(
    () => say(box.checked ? "Searches are kept" : "Searches are not kept"),
    (error) => { box.checked = !box.checked; container.append(failure(error)); }));
  return [element, h("p", { class: "small" }, `Searches of everybody who uses this page are then added to the sample queries “${settings.log_bank ?? "asked"}”. They stay in the library and are never sent anywhere.`)];
}

function ranking() {
  return h("section", {}, h("h2", {}, "Ranking"),
    h("p", { class: "small" }, "For the curious and for researchers: which files turn up too often, how rankings hold them back, and the sample queries that show it."),
    h("a", { class: "button", href: "/?view=ranking", "data-route": true }, "Open Ranking"));
}

function about(status) {
  const facts = [
    ["Version", status.version], ["Library", readable(status.library)], ["Files", `${count(status.videos)}, ${length(status.seconds)} of video and sound`],
    ["Searchable moments", count(status.clips)], ["Model", status.model.name], ["Access", access(status)],
  ];
  return h("section", {}, h("h2", {}, "About"), h("dl", { class: "facts-list" }, facts.map(([name, words]) => [h("dt", {}, name), h("dd", {}, words)])),
    h("p", { class: "small" }, "For programs: ", h("a", { href: "/api/openapi.json" }, "description of the interface"), ", ", h("a", { href: "/metrics" }, "measurements")));
}

function access(status) {
  return `${status.login === "token" ? "with a token" : "from this computer only, without login"}${status.read_only ? ", looking only" : ""}`;
}

function keys() {
  return h("section", {}, h("h2", {}, "Keyboard"), h("dl", { class: "facts-list" }, KEYS.map(([name, words]) => [h("dt", {}, h("kbd", {}, name)), h("dd", {}, words)])));
}
