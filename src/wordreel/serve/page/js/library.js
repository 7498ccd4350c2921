// The library view: what is in it, what is being added, what failed.
import { api, thumb } from "./api.js";
import { confirmed } from "./confirm.js";
import { button, h, icon, replace } from "./dom.js";
import { day, length, plural } from "./format.js";
import { empty, missing } from "./home.js";
import { jobList, reasons } from "./jobs.js";
import { say } from "./live.js";
import { failure, stale } from "./notice.js";
import { quickLook } from "./quick_look.js";
import { go, here, href } from "./router.js";
import { dropPlace } from "./upload.js";

const PAGE = 50;

export function mount(root, app) {
  const running = new AbortController();
  const trouble = h("div", { "aria-live": "assertive" });
  const list = h("section", { class: "files", "aria-label": "Files" });
  const broken = h("section", { "aria-label": "Failures" });
  const complain = (error) => replace(trouble, failure(error));
  const again = () => { app.refresh(); showList(list, here(), app, running.signal, again); showFailures(broken, running.signal); };
  const jobs = jobList(again, complain);
  const started = (answer) => { replace(trouble); if (answer.job) jobs.watch(answer.job); else again(); };
  root.append(h("h1", {}, "Library"), h("p", { class: "small path" }, app.status.library),
    missing(app.status) || "", app.status.read_only ? "" : adding(app.status, started, complain), trouble, jobs.element, broken, list);
  jobs.refresh(running.signal).catch((error) => stale(error) || complain(error));
  showFailures(broken, running.signal);
  return {
    update: (route) => showList(list, route, app, running.signal, again),
    leave: () => { running.abort(); jobs.leave(); },
    title: () => "library",
  };
}

function adding(status, started, complain) {
  const { roots, login } = status;
  const path = h("input", { id: "folder", type: "text", placeholder: `${roots[0] ?? ""}/Videos`, list: "roots", autocomplete: "off", spellcheck: "false" });
  const submit = (event) => {
    event.preventDefault();
    if (path.value.trim()) api.addFolder(path.value.trim()).then((answer) => { path.value = ""; started(answer); }, complain);
  };
  return h("div", { class: "adding" },
    roots.length > 0 && h("form", { on: { submit } }, h("label", { for: "folder" }, `Add a folder of ${login === "token" ? "the server's" : "this"} machine`),
      h("div", { class: "row" }, path, h("button", { class: "primary", type: "submit" }, icon("folder"), "Add")),
      h("datalist", { id: "roots" }, roots.map((root) => h("option", { value: root })))),
    dropPlace({ sent: started, failed: (file, error) => complain(Object.assign(error, { message: `${file.name}: ${error.message}` })) }));
}

async function showFailures(container, signal) {
  const failures = await api.failures(signal).catch(() => []);
  replace(container, failures.length > 0 && h("details", { class: "broken" },
    h("summary", {}, `${plural(failures.length, "file")} could not be added`), reasons(failures)));
}

async function showList(container, route, app, signal, again) {
  const page = Math.max(1, Number(route.page) || 1);
  try {
    const answer = await api.videos({ offset: (page - 1) * PAGE, limit: PAGE, q: route.find, folder: route.folder }, signal);
    if (!answer.total && !route.find && !route.folder) { replace(container, empty(app.status.read_only, true)); return; }
    drawList(container, answer, route, page, app, again);
  } catch (error) {
    if (!stale(error)) replace(container, failure(error, again));
  }
}

function drawList(container, answer, route, page, app, again) {
  const held = container.querySelector("#find");
  const find = held ?? finder(route);
  const rows = answer.items.map((item) => row(item, route, app, again));
  const focused = document.activeElement === find;
  replace(container, h("div", { class: "row head" }, h("h2", {}, plural(answer.total, "file")), find),
    rows.length ? h("ul", { class: "table" }, rows) : h("p", {}, "No file has that in its name."),
    answer.total > PAGE && pages(page, Math.ceil(answer.total / PAGE), route));
  if (focused) find.focus();
}

function finder(route) {
  const input = h("input", { id: "find", type: "search", placeholder: "Part of a name", "aria-label": "Find files by name", value: route.find ?? "" });
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => go({ ...here(), find: input.value.trim(), page: "" }, { replace: true }), 200);
  });
  return input;
}

function row(item, route, app, again) {
  const open = href({ ...route, video: item.content });
  return h("li", { data: { content: item.content } },
    h("a", { class: "small-thumb", href: open, "data-route": true, tabindex: "-1", "aria-hidden": "true" }, picture(item)),
    h("span", { class: "about" }, h("a", { class: "title", href: open, "data-route": true }, item.name),
      h("span", { class: "small path", title: item.path }, uploaded(item, app) ? "uploaded" : item.path)),
    h("span", { class: "small" }, item.kind === "image" ? "picture" : length(item.duration), " ", quickLook(item)),
    h("span", { class: "small added" }, item.added_at ? day(item.added_at) : ""),
    !app.status.read_only && button({ class: "round", "aria-label": `Remove ${item.name}`, on: { click: () => forget(item, app, again) } }, icon("trash")));
}

const uploaded = (item, app) => item.path.startsWith(`${app.status.library}/`);

function picture(item) {
  if (item.kind === "audio") return icon("sound");
  return h("img", { src: thumb(item.content, item.duration / 3), alt: "", loading: "lazy" });
}

async function forget(item, app, again) {
  const file = uploaded(item, app) ? "It was uploaded, so the file is deleted too." : "The file itself stays where it is.";
  const words = `The library forgets it, and search will not find it any more. ${file}`;
  if (!(await confirmed(`Remove ${item.name}?`, words, "Remove it"))) return;
  try {
    await api.forget(item.content);
    say(`${item.name} was removed`);
    again();
  } catch (error) {
    document.querySelector(".files").prepend(failure(error));
  }
}

function pages(page, last, route) {
  const link = (to, words, name) => (to < 1 || to > last ? "" : h("a", { class: "button", href: href({ ...route, page: to }), "data-route": true }, icon(name), words));
  return h("nav", { class: "row pages", "aria-label": "Pages" }, link(page - 1, "Before", "previous"),
    h("span", { class: "small" }, `Page ${page} of ${last}`), link(page + 1, "Next", "next"));
}
