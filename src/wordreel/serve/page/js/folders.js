// Choosing a folder: typed, or clicked through within the folders that the server allows.
import { api } from "./api.js";
import { button, h, icon, replace } from "./dom.js";
import { plural, readable, sentence } from "./format.js";

/** The form; `started(answer)` is called with the job that adds the folder, `complain(error)` where it was refused. */
export function folderForm(status, started, complain) {
  const { roots, login } = status;
  const path = h("input", { id: "folder", type: "text", placeholder: "~/Videos", autocomplete: "off", spellcheck: "false" });
  const shown = h("div", { class: "browser", id: "folder-browser", hidden: true });
  const add = (wanted) => api.addFolder(wanted).then((answer) => { path.value = ""; shown.hidden = true; started(answer); }, complain);
  const submit = (event) => {
    event.preventDefault();
    if (path.value.trim()) add(path.value.trim());
  };
  const show = (wanted) => browse(shown, wanted, { show, pick: (folder) => { path.value = folder; }, add });
  const opener = button({ class: "tool", "aria-expanded": "false", "aria-controls": "folder-browser" }, icon("folder"), "Browse…");
  opener.addEventListener("click", () => {
    shown.hidden = !shown.hidden;
    opener.setAttribute("aria-expanded", String(!shown.hidden));
    if (!shown.hidden) show(roots.length === 1 ? roots[0] : undefined);
  });
  return h("form", { on: { submit } }, h("label", { for: "folder" }, `Add a folder on ${login === "token" ? "the server" : "this computer"}`),
    h("div", { class: "row" }, path, h("button", { class: "primary", type: "submit" }, "Add")), h("div", {}, opener), shown);
}

async function browse(shown, wanted, { show, pick, add }) {
  shown.setAttribute("aria-busy", "true");
  try {
    const { path, parent, folders, files } = await api.folders(wanted);
    const inside = document.activeElement === document.body || shown.contains(document.activeElement);
    if (path) pick(path);
    const up = path !== null && (parent ? button({ class: "folder", on: { click: () => show(parent) } }, icon("previous"), "Up one level") : null);
    replace(shown, path && h("p", { class: "small path" }, h("bdi", {}, readable(path)), ` · ${contents(folders.length, files)}`),
      h("ul", {}, up && h("li", {}, up), folders.map((folder) => h("li", {},
        button({ class: "folder", on: { click: () => show(folder.path) } }, icon("folder"), h("bdi", {}, readable(folder.name)))))),
      path && button({ class: "primary", on: { click: () => add(path) } }, "Add this folder"));
    if (inside) shown.querySelector("button")?.focus();
  } catch (error) {
    replace(shown, h("p", { class: "wrong", role: "alert" }, sentence(error.message)));
  }
  shown.removeAttribute("aria-busy");
}

function contents(folders, files) {
  const parts = [files && plural(files, "video, sound or picture", "videos, sounds and pictures"), folders && plural(folders, "folder")].filter(Boolean);
  return parts.join(", ") || "empty";
}
