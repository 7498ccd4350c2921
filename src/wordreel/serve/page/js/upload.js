// Files by drag and drop or by the file dialog, sent one after the other with their progress.
import { ApiError, written } from "./api.js";
import { button, h, icon } from "./dom.js";

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
