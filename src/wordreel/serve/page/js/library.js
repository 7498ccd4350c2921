// The library view: what is in it, what is being added, what failed.
import { dropPlace, folderForm } from "./adding.js";
import { api, sharp, thumb } from "./api.js";
import { quickLook } from "./cards.js";
import { button, h, icon, replace } from "./dom.js";
import { day, length, plural, readable } from "./format.js";
import { keep } from "./hits.js";
import { empty, missing } from "./home.js";
import { jobList, reasons } from "./jobs.js";
import { confirmed, failure, say, stale } from "./notice.js";
import { go, here, href } from "./router.js";

const PAGE = 50;

export function mount(root, app) {
  const running = new AbortController();
  const trouble = h("div", { "aria-live": "assertive" });
  const list = h("section", { class: "files", "aria-label": "Files" });
  const broken = h("section", { "aria-label": "Failures" });
  const complain = (error) => replace(trouble, failure(error));
  const again = () => {
    app.refresh();
    showList(list, here(), app, running.signal, again);
    showFailures(broken, here(), app, running.signal, retry);
  };
  const jobs = jobList(app, again, complain);
  keep([]);
  const retry = () => api.retry().then(started, complain);
  const started = (answer) => { replace(trouble); if (answer.job) jobs.watch(answer.job); else again(); };
  root.append(h("h1", {}, "Library"), missing(app.status) || "", app.status.read_only ? "" : adding(app.status, started, complain), trouble, jobs.element, broken, list);
  jobs.refresh(running.signal).catch((error) => stale(error) || complain(error));
  return {
    update: (route) => {
      showList(list, route, app, running.signal, again);
      showFailures(broken, route, app, running.signal, retry);
    },
    leave: () => { running.abort(); jobs.leave(); },
    title: () => "library",
  };
}

function adding(status, started, complain) {
  return h("div", { class: "adding" }, status.roots.length > 0 && folderForm(status, started, complain),
    dropPlace({ sent: started, failed: (file, error) => complain(Object.assign(error, { message: `${readable(file.name)}: ${error.message}` })) }));
}

/** Files that are not in the library, and why: all of them folded up, or those whose name is looked for. */
async function showFailures(container, { find = "" }, app, signal, retry) {
  const failures = await api.failures(signal).catch(() => []);
  const named = failures.filter(({ path }) => path.toLowerCase().includes(find.toLowerCase()));
  if (!named.length) { replace(container); return; }
  const open = Boolean(find) || (container.querySelector("details")?.open ?? false); // stays as it is when a job ends
  replace(container, h("details", { class: "broken", open },
    h("summary", {}, `${plural(named.length, "file")} could not be added`), reasons(named),
    !app.status.read_only && button({ class: "tool", on: { click: retry } }, "Try again")));
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
    rows.length ? h("ul", { class: "table" }, rows) : h("p", {}, "No file in the library has that in its name."),
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
    h("span", { class: "about" }, h("a", { class: "title", href: open, "data-route": true }, h("bdi", {}, readable(item.name))),
      h("span", { class: "small path", title: readable(item.path) }, uploaded(item, app) ? "uploaded" : h("bdi", {}, readable(item.path)))),
    h("span", { class: "small state" }, state(item)),
    h("span", { class: "small" }, item.kind === "image" ? "picture" : length(item.duration)),
    h("span", { class: "small added" }, item.added_at ? day(item.added_at) : ""),
    !app.status.read_only && button({ class: "round", "aria-label": `Remove ${readable(item.name)}`, on: { click: () => forget(item, app, again) } }, icon("trash")));
}

/** What is to be known of a file before it is searched for; nothing where all is well. */
function state(item) {
  if (item.state === "missing") return h("span", { class: "wrong", title: "The file is no longer where it was. Add its folder again, or remove it here." }, "file not found");
  if (item.state === "preparing") return h("span", { title: "It can be found once the work above is done" }, "being prepared");
  return quickLook(item) || "";
}

const uploaded = (item, app) => item.path.startsWith(`${app.status.library}/`);

function picture(item) {
  if (item.kind === "audio") return icon("sound");
  return h("img", { ...sharp(thumb(item.content, item.duration / 3)), alt: "", loading: "lazy" });
}

async function forget(item, app, again) {
  const file = uploaded(item, app) ? "It was uploaded, so the file is deleted too." : "The file itself stays where it is.";
  const words = `The library forgets it, and search will not find it any more. ${file}`;
  if (!(await confirmed(`Remove ${readable(item.name)}?`, words, "Remove it"))) return;
  try {
    await api.forget(item.content);
    say(`${readable(item.name)} was removed`);
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
