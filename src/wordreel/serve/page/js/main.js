// The page: one view at a time under the address, the player above it; the login, and addresses that lead nowhere.
import { api } from "./api.js";
import { h, replace } from "./dom.js";
import { pageKeys } from "./keys.js";
import { mount as library } from "./library.js";
import { failure, notice } from "./notice.js";
import { mount as people } from "./people.js";
import { sync } from "./player.js";
import { mount as ranking } from "./ranking.js";
import { go, start } from "./router.js";
import { mount as search } from "./search.js";
import { mount as settings } from "./settings.js";

const VIEWS = { search, library, people, ranking, settings, lost };
const PLACE = { ranking: "settings" }; // views that belong to another one's place

const root = document.getElementById("view");
const app = {
  status: null,
  async refresh() { app.status = await api.status(); },
  banks: () => app.status.banks.map((bank) => bank.name),
};

let view = null;
let name = "";
let asking = false;

async function begin() {
  asking = false;
  try {
    await app.refresh();
  } catch (error) {
    if (error.status !== 401) replace(root, failure(error, begin));
    return;
  }
  start(show);
}

function show(route) {
  if (asking) return;
  const wanted = VIEWS[route.view] ? route.view : "lost";
  if (wanted !== name) open(wanted);
  view.update({ ...route, view: wanted });
  document.title = `${view.title(route)} · wordreel`;
  sync(route, app);
}

function open(wanted) {
  const first = name === "";
  view?.leave();
  name = wanted;
  root.className = wanted;
  replace(root);
  view = VIEWS[wanted](root, app);
  for (const link of document.querySelectorAll("[data-place]")) {
    if (link.dataset.place === (PLACE[wanted] ?? wanted)) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (wanted === "search" && !matchMedia("(pointer: coarse)").matches) document.getElementById("query").focus();
  else if (!first) root.focus();
}

function ask() {
  if (asking) return;
  asking = true;
  view?.leave();
  name = "";
  sync({}, app);
  login(root, begin);
}

function find() {
  if (name !== "search") go({ view: "search" });
  const box = document.getElementById("query");
  box.focus();
  box.select();
}

/** Asks in `root` until the server takes the token. */
function login(root, then) {
  const input = h("input", { id: "token", type: "password", autocomplete: "current-password", required: true });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const submit = async (event) => {
    event.preventDefault();
    try {
      await api.login(input.value.trim());
      then();
    } catch (error) {
      wrong.textContent = error.message;
      input.select();
    }
  };
  replace(root, h("form", { class: "login", on: { submit } }, h("h1", {}, "Welcome"),
    h("p", {}, "This library is protected. Ask its owner for the token, a kind of password."),
    h("label", { for: "token" }, "Token"), input, wrong, h("button", { class: "primary", type: "submit" }, "Enter")));
  input.focus();
}

/** An address that leads nowhere. */
function lost(root) {
  root.append(notice("There is nothing at this address", "The link may be old, or mistyped.",
    h("a", { class: "button primary", href: "/", "data-route": true }, "Search"), h("a", { class: "button", href: "/?view=library", "data-route": true }, "Library")));
  return { update: () => {}, leave: () => {}, title: () => "not found" };
}

addEventListener("wordreel:login", ask);
addEventListener("keydown", (event) => pageKeys(event, find));
begin();
