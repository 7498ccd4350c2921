// Which model answers: those of the library, and larger ones that can be downloaded.
import { api } from "./api.js";
import { button, h, replace } from "./dom.js";
import { jobList } from "./jobs.js";
import { confirmed, failure, stale } from "./notice.js";

/** `{element, update(signal), leave()}` */
export function modelsPart(app) {
  const list = h("div", { class: "model-list" });
  const trouble = h("div", { "aria-live": "assertive" });
  const complain = (error) => replace(trouble, failure(error));
  const update = async (signal) => {
    try {
      const { models } = await api.models(signal);
      const rows = (some) => h("ul", { class: "table" }, some.map((model) => row(model, app.status.read_only, use)));
      const [here, elsewhere] = [models.filter((model) => !model.download), models.filter((model) => model.download)];
      replace(list, rows(here), elsewhere.length > 0 && h("details", {}, h("summary", {}, `${elsewhere.length} more that can be downloaded`), rows(elsewhere)));
      await jobs.refresh(signal);
    } catch (error) {
      if (!stale(error)) complain(error);
    }
  };
  const jobs = jobList(app, async () => { await app.refresh(); update(); }, complain);
  const use = async (model) => {
    if (model.download && !(await agreed(model))) return;
    replace(trouble);
    api.useModel({ model: model.key, download: model.download > 0 }).then((answer) => jobs.watch(answer.job), complain);
  };
  const words = "What reads your words and looks at your videos. Another model may find other things; after a switch the videos are analysed again, which can take a while.";
  return { element: h("section", { class: "models" }, h("h2", {}, "Search model"), h("p", { class: "small" }, words), trouble, jobs.element, list), update, leave: () => jobs.leave() };
}

function row(model, readOnly, use) {
  const facts = [model.download && `${size(model.download)} to download`, model.speed, model.licence && `licence: ${model.licence}`].filter(Boolean).join(", ");
  return h("li", {},
    h("span", { class: "about" }, h("strong", {}, model.name), h("span", { class: "small" }, model.title)),
    h("span", { class: "small state" }, model.in_use ? "in use" : facts),
    !readOnly && !model.in_use ? button({ "aria-label": `Use ${model.name}`, on: { click: () => use(model) } }, "Use") : h("span", {}));
}

function agreed(model) {
  const words = `${size(model.download)} are downloaded to the computer that holds the library. Licence: ${model.licence}. Searches go on with the present model until the videos have been analysed again.`;
  return confirmed(`Download ${model.name}?`, words, "Download it", "Not now");
}

const size = (bytes) => `${Math.round(bytes / 1e6)} MB`;
