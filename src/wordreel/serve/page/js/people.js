// People in the footage: off until somebody turns it on; then groups of faces that can be named, joined and forgotten.
import { api, media, written } from "./api.js";
import { grid } from "./cards.js";
import { button, h, replace } from "./dom.js";
import { clock, plural, sentence } from "./format.js";
import { keep } from "./hits.js";
import { confirmed, failure, notice, say, stale } from "./notice.js";
import { go, here, href } from "./router.js";

export function mount(root, app) {
  const running = new AbortController();
  const trouble = h("div", { "aria-live": "assertive" });
  const section = h("section", {});
  root.append(h("h1", {}, "People"), trouble, section);
  keep([]);
  const tools = {
    readOnly: app.status.read_only,
    complain: (error) => replace(trouble, failure(error)),
    again: () => update(here()),
    /** Does something, says so, and shows the view anew. */
    act: (work, words) => work.then(() => { replace(trouble); say(words); update(here()); }, (error) => tools.complain(error)),
  };
  const update = async (route) => {
    try {
      const known = await api.people(running.signal);
      const one = known.people.find(({ id }) => String(id) === route.who);
      replace(section, ...(!known.on ? [off(tools)] : one ? await person(one, known.people, route, tools, running.signal) : everybody(known.people, tools)));
    } catch (error) {
      if (!stale(error)) replace(section, failure(error, tools.again));
    }
  };
  return { update, leave: () => running.abort(), title: () => "people" };
}

function off({ readOnly, act }) {
  const words = "wordreel can group the faces in your videos, so that you can name people and search for them with words. "
    + "It is off until you turn it on. Nothing leaves this computer, and you can delete everything at any time.";
  const start = (event) => { event.target.disabled = true; event.target.textContent = "Grouping faces…"; act(api.groupFaces(true), "Faces are grouped"); };
  return notice("People are not looked for", words, !readOnly && button({ class: "primary", on: { click: start } }, "Turn on"));
}

function everybody(people, tools) {
  const chosen = new Set();
  const join = button({ class: "tool", disabled: true }, "Same person");
  join.addEventListener("click", () => { const [first, ...others] = chosen; tools.act(api.mergePeople(first, others), "They are one person now"); });
  const choose = (id, on) => { chosen[on ? "add" : "delete"](id); join.disabled = chosen.size < 2; };
  const forget = async () => {
    if (await confirmed("Forget everybody?", "All groups, names and face data are deleted, and people are no longer looked for. Your videos stay as they are.", "Forget everybody")) {
      tools.act(api.forgetPeople(), "Everybody is forgotten");
    }
  };
  return [
    h("p", { class: "lead" }, "Name somebody, then search for the name together with words. Tick several and press “Same person” where one person was taken for two."),
    !tools.readOnly && h("div", { class: "tools" }, join, button({ class: "tool", on: { click: () => tools.act(api.groupFaces(false), "People are not looked for any more") } }, "Turn off"),
      button({ class: "tool", on: { click: forget } }, "Forget everybody")),
    people.length ? h("ul", { class: "grid small-cards people" }, people.map((one) => card(one, tools, choose))) : notice("Nobody was found", "No face is seen often enough in this library."),
  ];
}

function card(one, tools, choose) {
  const called = one.name || "somebody";
  const box = h("input", { type: "checkbox", "aria-label": `Choose ${called}` });
  box.addEventListener("change", () => choose(one.id, box.checked));
  return h("li", { class: "card" },
    h("a", { class: "open", "data-route": true, href: href({ view: "people", who: one.id }), "aria-label": `${called}, ${plural(one.faces, "moment")}` },
      h("div", { class: "thumb face" }, h("img", { src: one.picture, alt: "", loading: "lazy" }))),
    h("div", { class: "about" }, tools.readOnly ? h("span", { class: "title" }, called) : nameField(one, tools),
      h("div", { class: "row" }, h("span", { class: "small" }, `${plural(one.faces, "moment")} in ${plural(one.videos, "file")}`), !tools.readOnly && box)));
}

function nameField(one, tools) {
  const input = h("input", { type: "text", placeholder: "Who is this?", "aria-label": "Name", value: one.name, autocomplete: "off", maxlength: "100" });
  input.addEventListener("change", () => tools.act(api.namePerson(one.id, input.value.trim()), "The name is saved"));
  return input;
}

/** One person: every moment, with what to do about wrong ones. */
async function person(one, people, route, tools, signal) {
  const { faces } = await api.faces(one.id, signal);
  const hits = asHits(faces);
  keep(hits);
  const forget = async () => {
    if (await confirmed(`Forget ${one.name || "this person"}?`, "The name and the face data are deleted. Your videos stay as they are.", "Forget")) {
      await tools.act(api.forgetPerson(one.id), "Forgotten");
      go({ view: "people" });
    }
  };
  const split = (face) => tools.act(api.splitPerson(one.id, [face.id]), "That is somebody else now");
  const list = grid(hits, { view: "people", who: one.id }, "Moments");
  for (const [at, item] of [...list.element.children].entries()) {
    item.querySelector(".row").append(!tools.readOnly && faces.length > 1 ? button({ class: "quiet", on: { click: () => split(faces[at]) } }, "Somebody else") : "");
  }
  return [h("a", { class: "small", href: "/?view=people", "data-route": true }, "← Everybody"),
    h("div", { class: "row person" }, tools.readOnly ? h("h2", {}, one.name || "Somebody") : nameField(one, tools),
      one.name && h("a", { class: "button primary", "data-route": true, href: href({ view: "search", people: one.name }) }, "Search with words"),
      !tools.readOnly && button({ on: { click: forget } }, "Forget")),
    one.name ? null : h("p", { class: "small" }, sentence("give a name to search for this person together with words")),
    list.element];
}

/** The looks at a person as cards show them: moments without a score. */
function asHits(faces) {
  return faces.map(({ content, start, end, thumb }) => ({
    content, start, end, thumb, name: `${clock(start)} – ${clock(end)}`, path: "", kind: "video", duration: end - start, file: true, why: [],
    media: media(content), preview: `/api/preview/${encodeURIComponent(content)}${written({ start, end })}`,
  }));
}
