// The token, asked once; the server keeps it in a cookie that scripts cannot read.
import { api } from "./api.js";
import { h, replace } from "./dom.js";

/** Asks in `root` until the server takes the token. */
export function login(root, then) {
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
