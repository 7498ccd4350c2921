// A picture or a film as the question: chosen, dropped on the box, or pasted into it.
import { button, h, icon } from "./dom.js";
import { say } from "./live.js";
import { go } from "./router.js";
import { send } from "./upload.js";

/** The button; `form` takes drops and pastes as well, `failed(error)` where a file was refused. */
export function pictureButton(form, failed) {
  const input = h("input", { type: "file", accept: "image/*,video/*", class: "unseen", tabindex: "-1", "aria-label": "A picture to search with" });
  const opener = button({ class: "tool", on: { click: () => input.click() } }, icon("image"), "Picture");
  const take = async ([file]) => {
    if (!file) return;
    opener.disabled = true;
    say(`Sending ${file.name}`);
    try {
      const { upload } = await send(file, () => {}, "query");
      go({ view: "search", image: upload.id, name: upload.name });
    } catch (error) {
      failed(error);
    }
    opener.disabled = false;
    input.value = "";
  };
  input.addEventListener("change", () => take([...input.files]));
  form.addEventListener("dragover", (event) => event.preventDefault());
  form.addEventListener("drop", (event) => { event.preventDefault(); take([...event.dataTransfer.files]); });
  form.addEventListener("paste", (event) => take([...event.clipboardData.files]));
  return h("span", {}, opener, input);
}
