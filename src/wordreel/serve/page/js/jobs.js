// Work that runs: live progress over server-sent events, the files in work, and reasons where one failed.
import { api } from "./api.js";
import { button, h, icon, replace } from "./dom.js";
import { base, count, length, plural, readable } from "./format.js";
import { say } from "./notice.js";

const OVER = new Set(["done", "failed", "cancelled"]);
const STEPS = { embedding: "Making it searchable", checking: "Checking", waiting: "Waiting for another program" };

/** A list of jobs that keeps itself up to date; `finished(job)` is called for each that ends. */
export function jobList(app, finished, complain) {
  const list = h("ul", { class: "jobs", "aria-label": "Work" });
  const pause = h("div", { class: "row" });
  const element = h("div", { class: "work" }, pause, list);
  const watched = new Map();
  const rows = new Map(); // id -> [row, job]
  let paused = false;
  const redraw = () => {
    for (const [row, job] of rows.values()) draw(row, job, paused, complain);
    const working = watched.size > 0;
    replace(pause, working && !app.status.read_only && button({ class: "tool", on: { click: () => setPaused(!paused) } }, icon(paused ? "play" : "pause"), paused ? "Resume" : "Pause"),
      working && paused && h("span", { class: "small", role: "status" }, "Paused. What is done so far is kept."));
  };
  const setPaused = (wanted) => api.pause(wanted).then((answer) => { paused = answer.paused; redraw(); }, complain);
  const watch = (job) => {
    if (watched.has(job.id)) return;
    const row = h("li", {});
    list.prepend(row);
    const source = new EventSource(`/api/jobs/${encodeURIComponent(job.id)}/events`);
    watched.set(job.id, source);
    const update = (latest) => {
      rows.set(job.id, [row, latest]);
      if (OVER.has(latest.state)) {
        source.close();
        watched.delete(job.id);
        say(`${readable(latest.title)}: ${latest.state}`);
        finished(latest);
      }
      redraw();
    };
    for (const name of ["progress", "done"]) source.addEventListener(name, (event) => update(JSON.parse(event.data)));
    update(job);
  };
  return {
    element,
    watch,
    async refresh(signal) {
      const answer = await api.jobs(signal);
      paused = answer.paused;
      for (const job of answer.jobs) if (!OVER.has(job.state)) watch(job);
    },
    leave() { for (const source of watched.values()) source.close(); },
  };
}

function draw(row, job, paused, complain) {
  const over = OVER.has(job.state);
  const cancel = () => api.cancel(job.id).catch(complain);
  const part = fraction(job.progress ?? {});
  replace(row,
    h("div", { class: "row" }, h("strong", {}, h("bdi", {}, readable(job.title))), h("span", { class: "small" }, paused && !over ? "paused" : words(job)),
      !over && button({ class: "quiet", on: { click: cancel }, "aria-label": `Cancel ${readable(job.title)}` }, "Cancel")),
    !over && h("progress", { max: 1, value: part ?? (paused ? 0 : undefined), "aria-label": readable(job.title) }),
    !over && !paused && inWork(job.progress),
    reasons(job.report?.failed ?? []));
}

/** How much is done, from 0 to 1; null where that is not known. */
function fraction({ fraction: bytes, done, total }) {
  return bytes ?? (total ? done / total : null);
}

/** The files that are worked on now, and how. */
function inWork(progress) {
  if (!progress?.current?.length) return null;
  const how = progress.analysis === "quick" ? "quick look" : "closer look";
  return h("ul", { class: "small in-work" }, progress.current.map((name) => h("li", {}, h("bdi", {}, readable(name)), ` · ${how}`)));
}

function words(job) {
  if (job.state === "failed") return job.error;
  if (OVER.has(job.state)) return outcome(job);
  const { step, done, total, seconds_left: left } = job.progress ?? {};
  if (job.state === "queued") return "waiting for its turn";
  if (step === "waiting") return STEPS.waiting;
  if (!total) return "reading the folder…";
  if (step !== "files") return `${STEPS[step] ?? step}, ${count(done)} of ${count(total)}`;
  return `${count(done)} of ${plural(total, "file")} done${left ? `, about ${length(left)} left` : ""}`;
}

function outcome({ state, report }) {
  if (state === "cancelled") return "cancelled; what was done is kept";
  if (report?.added === undefined) return state;
  const parts = [[report.added, "added"], [report.updated, "looked at more closely"], [report.duplicates, "already there under another name"], [report.skipped, "unchanged"], [report.failures, "failed"]];
  return parts.filter(([number]) => number).map(([number, what]) => `${count(number)} ${what}`).join(", ") || "nothing to add";
}

/** Files that could not be added, and why. */
export function reasons(failures) {
  if (!failures.length) return null;
  return h("ul", { class: "failures" }, failures.map(({ path, reason }) =>
    h("li", {}, h("strong", { title: readable(path) }, h("bdi", {}, readable(base(path)))), " ", h("span", {}, reason))));
}
