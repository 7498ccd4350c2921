// Adding files: by drag and drop or the file dialog, or a folder, typed or clicked through.
import { api, ApiError, written } from "./api.js";
import { button, h, icon, replace } from "./dom.js";
import { plural, readable, sentence } from "./format.js";
import { say } from "./notice.js";

/** A zone to drop files on; `sent(answer)` after each, `failed(file, error)` where one was refused. */
export function dropPlace({ sent, failed }) {
  const input = h("input", { type: "file", multiple: true, accept: "video/*,audio/*,image/*", class: "unseen", tabindex: "-1", "aria-label": "Files to upload" });
  const bar = h("progress", { max: 1, value: 0, hidden: true, "aria-label": "Uploading" });
  const words = h("p", { class: "small", role: "status" });
  const zone = h("div", { class: "drop" }, icon("upload"),
    h("p", {}, "Drop videos, sounds or pictures here, or ", button({ class: "link", on: { click: () => input.click() } }, "choose files")), input, bar, words);
  const take = async (files) => {
    for (const [n, file] of [...files].entries()) {
      bar.hidden = false;
      words.textContent = `Sending ${file.name} (${n + 1} of ${files.length})`;
      await send(file, (part) => { bar.value = part; }).then(sent, (error) => failed(file, error));
    }
    bar.hidden = true;
    words.textContent = "";
    input.value = "";
  };
  input.addEventListener("change", () => take([...input.files]));
  listen(zone, take);
  return zone;
}

function listen(zone, take) {
  const over = (event) => { event.preventDefault(); zone.classList.add("over"); };
  const out = () => zone.classList.remove("over");
  zone.addEventListener("dragenter", over);
  zone.addEventListener("dragover", over);
  zone.addEventListener("dragleave", out);
  zone.addEventListener("drop", (event) => { event.preventDefault(); out(); take([...event.dataTransfer.files]); });
}

function refused({ status, response }) {
  return new ApiError(response?.error?.message ?? `The server answered ${status}.`, { status, code: response?.error?.code });
}

/** fetch() tells nothing about what was sent so far, XMLHttpRequest does. */
export function send(file, progress, purpose = "add") {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/api/uploads${written({ name: file.name, purpose })}`);
    request.setRequestHeader("X-Wordreel", "1");
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.responseType = "json";
    request.upload.addEventListener("progress", (event) => progress(event.total ? event.loaded / event.total : 0));
    request.addEventListener("error", () => reject(new ApiError("The connection broke off. Try again.")));
    request.addEventListener("load", () => {
      if (request.status < 400) resolve(request.response);
      else reject(refused(request));
    });
    request.send(file);
  });
}

/** The form; `started(answer)` is called with the job that adds the folder, `complain(error)` where it was refused. */
export function folderForm(status, started, complain) {
  const { roots, login } = status;
  const path = h("input", { id: "folder", type: "text", placeholder: "~/Videos", autocomplete: "off", spellcheck: "false" });
  const shown = h("div", { class: "browser", id: "folder-browser", hidden: true });
  const later = h("input", { type: "checkbox", id: "watch" });
  const watched = watchedFolders(complain);
  const add = (wanted) => api.addFolder(wanted).then((answer) => {
    if (later.checked) api.watch(wanted, true).then(watched.show, complain);
    path.value = "";
    later.checked = false;
    shown.hidden = true;
    started(answer);
  }, complain);
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
    h("div", { class: "row" }, path, h("button", { class: "primary", type: "submit" }, "Add")), h("div", {}, opener), shown,
    h("div", { class: "row check" }, later, h("label", { for: "watch" }, "Watch it: add what comes later by itself")), watched.element);
}

/** The watched folders, each with a box that turns it off; one that is turned off stays until the list is shown again. */
function watchedFolders(complain) {
  const element = h("fieldset", { class: "watched", hidden: true });
  const row = (folder, n) => {
    const box = h("input", { type: "checkbox", id: `watched-${n}`, checked: true });
    box.addEventListener("change", () => api.watch(folder, box.checked).then(
      () => say(box.checked ? `${readable(folder)} is watched` : `${readable(folder)} is no longer watched`),
      (error) => { box.checked = !box.checked; complain(error); }));
    return h("div", { class: "row check" }, box, h("label", { for: box.id }, h("bdi", {}, readable(folder))));
  };
  const show = ({ folders }) => {
    element.hidden = !folders.length;
    replace(element, h("legend", { class: "small" }, "Watched while wordreel serves this page"), folders.map(row));
  };
  api.watched().then(show, () => {});
  return { element, show };
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
