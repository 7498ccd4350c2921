// Tags and notes on moments of the video that plays: shown, added, removed; a click goes there.
import { api } from "./api.js";
import { button, h, icon, replace } from "./dom.js";
import { clock, sentence } from "./format.js";
import { say } from "./notice.js";

const AROUND = 2; // seconds before and after the second that plays, where no result says what the moment is

/** A section that fills itself; `hit()` is the result that plays, if there is one. */
export function tagsPart(video, view, hit, app, signal) {
  const list = h("ul", { class: "chips tags" });
  const trouble = h("p", { class: "wrong small", role: "alert", hidden: true });
  const complain = (error) => { trouble.hidden = false; replace(trouble, sentence(error.message)); };
  const update = async () => {
    const { annotations } = await api.annotations(video.content, signal);
    replace(list, annotations.map((one) => row(one, video, view, app, () => remove(one))));
  };
  const remove = (one) => api.removeAnnotation(one.id).then(() => { say("Removed"); return update(); }).catch(complain);
  const add = (kind, text) => api.annotate(video.content, { kind, text, ...moment(video, view, hit()) })
    .then(() => { trouble.hidden = true; say(kind === "tag" ? "Tag added" : "Note added"); return update(); }).catch(complain);
  update().catch(() => {}); // the player is as good without
  return h("section", { class: "tagging", "aria-label": "Tags and notes" }, list, !app.status.read_only && form(add), trouble);
}

function moment(video, view, hit) {
  if (video.kind === "image") return {};
  const now = view.now();
  if (hit && now >= hit.start && now <= hit.end) return { start: hit.start, end: hit.end };
  return { start: Math.max(0, now - AROUND), end: Math.min(video.duration, now + AROUND) };
}

function form(add) {
  const words = h("input", { id: "tag", type: "text", placeholder: "A tag or a note for this moment", autocomplete: "off", maxlength: "2000", "aria-label": "A tag or a note for this moment" });
  const put = (kind) => { if (words.value.trim()) { add(kind, words.value.trim()); words.value = ""; } };
  return h("form", { class: "row", on: { submit: (event) => { event.preventDefault(); put("tag"); } } }, words,
    h("button", { class: "tool", type: "submit" }, "Add tag"), button({ class: "tool", on: { click: () => put("note") } }, "Add note"));
}

function row(one, video, view, app, remove) {
  const at = video.kind === "image" ? "" : ` · ${clock(one.start)}`;
  return h("li", { class: `chip ${one.kind}` },
    button({ class: "link", on: { click: () => view.seek(one.start) } }, one.kind === "tag" ? `#${one.text}` : `“${one.text}”`, at),
    !app.status.read_only && button({ class: "round", "aria-label": `Remove ${one.kind} ${one.text}`, on: { click: remove } }, icon("close")));
}
