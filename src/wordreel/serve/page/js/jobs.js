// Work that runs: live progress over server-sent events, with reasons where it failed.
import { api } from "./api.js";
import { button, h, replace } from "./dom.js";
import { base, count, length, plural } from "./format.js";
import { say } from "./live.js";

const OVER = new Set(["done", "failed", "cancelled"]);

/** A list of jobs that keeps itself up to date; `finished(job)` is called for each that ends. */
export function jobList(finished, complain) {
  const element = h("ul", { class: "jobs", "aria-label": "Running work" });
  const watched = new Map();
  const watch = (job) => {
    if (watched.has(job.id)) return;
    const row = h("li", {});
    element.prepend(row);
    const source = new EventSource(`/api/jobs/${encodeURIComponent(job.id)}/events`);
    watched.set(job.id, source);
    const stop = () => { source.close(); watched.delete(job.id); };
    const update = (latest) => {
      draw(row, latest, complain);
      if (!OVER.has(latest.state)) return;
      stop();
      say(`${latest.title}: ${latest.state}`);
      finished(latest);
    };
    for (const name of ["progress", "done"]) source.addEventListener(name, (event) => update(JSON.parse(event.data)));
    draw(row, job, complain);
  };
  return {
    element,
    watch,
    async refresh(signal) {
      const { jobs } = await api.jobs(signal);
      for (const job of jobs) if (!OVER.has(job.state)) watch(job);
    },
    leave() { for (const source of watched.values()) source.close(); },
  };
}

function draw(row, job, complain) {
  const { done = 0, total = 0 } = job.progress ?? {};
  const over = OVER.has(job.state);
  const cancel = () => api.cancel(job.id).catch(complain);
  replace(row,
    h("div", { class: "row" }, h("strong", {}, job.title), h("span", { class: "small" }, words(job)),
      !over && button({ class: "quiet", on: { click: cancel }, "aria-label": `Cancel ${job.title}` }, "Cancel")),
    !over && h("progress", { max: total || null, value: total ? done : undefined, "aria-label": job.title }),
    reasons(job.report?.failed ?? []));
}

function words(job) {
  if (job.state === "failed") return job.error;
  if (OVER.has(job.state)) return outcome(job);
  const { step, done, total, analysis, seconds_left: left } = job.progress ?? {};
  if (!total) return job.state === "queued" ? "waiting for its turn" : "looking…";
  if (step !== "files") return `${step}, ${done} of ${total}`;
  return `${analysis === "quick" ? "quick look, " : ""}${done} of ${plural(total, "file")}${left ? `, about ${length(left)} left` : ""}`;
}

function outcome({ state, report }) {
  if (report?.added === undefined) return state;
  const parts = [[report.added, "added"], [report.updated, "looked at thoroughly"], [report.duplicates, "already there under another name"], [report.skipped, "unchanged"], [report.failures, "failed"]];
  return parts.filter(([number]) => number).map(([number, what]) => `${count(number)} ${what}`).join(", ") || "nothing to add";
}

/** Files that could not be added, and why. */
export function reasons(failures) {
  if (!failures.length) return null;
  return h("ul", { class: "failures" }, failures.map(({ path, reason }) =>
    h("li", {}, h("strong", { title: path }, base(path)), " ", h("span", {}, reason))));
}
