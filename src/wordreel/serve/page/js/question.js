// What is searched with in the place of words: a moment that others are to be like, or a picture, which is
// chosen, dropped on the box, or pasted into it.
import { send } from "./adding.js";
import { sharp, thumb, uploadThumb } from "./api.js";
import { button, h, icon } from "./dom.js";
import { clock, readable } from "./format.js";
import { say } from "./notice.js";
import { FILTERS, go } from "./router.js";

/** A chip with the picture and the moment; pressed, it ends the question. Null where words ask. */
export function question(route) {
  if (!route.like && !route.image) return null;
  const filters = Object.fromEntries(FILTERS.filter((name) => route[name]).map((name) => [name, route[name]]));
  const image = h("img", { ...picture(route), alt: "" });
  image.addEventListener("error", () => image.remove(), { once: true });
  return button({ class: "chip strong question", "aria-label": `Stop looking for things like ${words(route)}`, on: { click: () => go({ view: "search", ...filters }) } },
    image, h("span", {}, "Like ", h("bdi", {}, words(route))), icon("close"));
}

function words({ name, start, end }) {
  const called = readable(name ?? "this");
  return start ? `${called}, ${clock(start)} – ${clock(end ?? start)}` : called;
}

function picture({ like, image, start, end }) {
  return sharp(like ? thumb(like, start ? (Number(start) + Number(end ?? start)) / 2 : 0) : uploadThumb(image));
}

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
