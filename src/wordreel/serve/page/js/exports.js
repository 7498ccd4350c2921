// Taking results elsewhere: a list for a spreadsheet, an editor or a player, and a moment as a clip of its own.
import { clip, exportAddress } from "./api.js";
import { button, h, icon, replace } from "./dom.js";
import { filterFields } from "./filters.js";
import { clock, sentence } from "./format.js";
import { say, untilDismissed } from "./notice.js";

const FORMATS = [["csv", "Table for a spreadsheet (CSV)"], ["edl", "Edit list for video editors (EDL)"], ["otio", "Timeline for video editors (OTIO)"], ["m3u", "Playlist for media players (M3U)"]];
const MOST = 200; // results of a list
const LENGTH = 6; // seconds of a clip whose end is not known

/** Links that save the results of a route as a list. */
export function exportMenu(route) {
  const { q: text, then, image, like, start, end, norm, bank, moments } = route;
  const second = like && start ? (Number(start) + Number(end || start)) / 2 : "";
  const asked = { ...filterFields(route), text, then, image, like, second, norm, bank, moments: moments ? "true" : "", limit: MOST };
  const opener = h("summary", {}, "Save this list");
  const menu = h("details", { class: "menu" }, opener,
    h("ul", {}, FORMATS.map(([format, words]) => h("li", {}, h("a", { href: exportAddress({ ...asked, format }), download: "" }, words)))));
  let ignore = () => {};
  opener.addEventListener("click", () => { // which opens or closes it next
    ignore();
    if (!menu.open) ignore = untilDismissed([menu], () => { menu.open = false; opener.focus(); });
  });
  return menu;
}

/** A button that saves the moment of `hit()`, or where there is none, what plays now. */
export function clipButton(video, view, hit) {
  if (video.kind === "image") return null;
  const words = h("span", {}, "Save clip");
  const trouble = h("span", { class: "wrong small", role: "alert" });
  const saver = button({ class: "save-clip" }, icon("download"), words);
  const moment = () => {
    const { start, end } = hit() ?? { start: Math.max(0, view.now() - 1), end: view.now() - 1 + LENGTH };
    return { start: start.toFixed(2), end: Math.min(video.duration, Math.max(end, start + 1)).toFixed(2) };
  };
  const known = hit();
  if (known) words.textContent = `Save clip ${clock(known.start)} – ${clock(known.end)}`;
  saver.addEventListener("click", async () => {
    saver.disabled = true;
    replace(trouble);
    try {
      save(await clip(video.content, moment()));
      say("The clip is saved");
    } catch (error) {
      replace(trouble, sentence(error.message));
    }
    saver.disabled = false;
  });
  return [saver, trouble];
}

/** Hands a file to the browser's downloads. */
function save({ blob, name }) {
  const url = URL.createObjectURL(blob);
  const link = h("a", { href: url, download: name, hidden: true });
  (document.querySelector("dialog[open]") ?? document.body).append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser reads it after the click
}
