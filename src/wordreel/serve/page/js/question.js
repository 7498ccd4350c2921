// What is searched with in the place of words: a picture, or a moment that others are to be like.
import { sharp, thumb, uploadThumb } from "./api.js";
import { button, h, icon } from "./dom.js";
import { clock, readable } from "./format.js";
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
