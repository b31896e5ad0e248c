// Conveniences of the dashboard. Everything works without them; nothing here knows what a page is about.
"use strict";
(() => {
  const $ = (name) => document.getElementById(name);
  const main = () => $("main");

  // Times are told from now; the exact moment is their title.
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  function span(seconds) {
    const words = [];
    for (const [size, unit] of units) {
      if (seconds >= size && words.length < 2) { words.push(`${Math.floor(seconds / size)} ${unit}`); seconds %= size; }
      else if (words.length) break;
    }
    return words.join(" ") || "0 s";
  }
  function tellTimes() {
    for (const each of document.querySelectorAll("time[datetime]")) {
      const away = (Date.now() - Date.parse(each.dateTime)) / 1000;
      each.textContent = away < 0 ? `in ${span(-away)}` : away < 1 ? "now" : `${span(away)} ago`;
    }
  }
  setInterval(tellTimes, 10000);

  // How much waits: on the tab, beside the link, and as a notification when there is more of it.
  let waited = null;
  function tellWaiting() {
    const shown = document.querySelector("[data-waiting]");
    const heading = document.querySelector("h1");
    const number = shown ? Number(shown.dataset.waiting) : waited ?? 0;
    document.title = `${number ? `(${number}) ` : ""}${heading ? heading.textContent.trim() : "Service"}`;
    $("badge").hidden = !number;
    $("badge").textContent = number || "";
    if (waited !== null && number > waited && document.hidden && window.Notification?.permission === "granted")
      new Notification("Something waits for you", { body: shown?.dataset.newest ?? "", tag: "service" });
    waited = number;
  }

  // What somebody has typed or ticked stays, whatever else on the page changes.
  const touched = new Map();
  const fields = "input:not([type=hidden]), textarea, select, details";
  const nameOf = (field) => field.id || null;
  document.addEventListener("input", (event) => {
    const field = event.target;
    if (nameOf(field)) touched.set(nameOf(field), { value: field.value, checked: field.checked });
  });
  document.addEventListener("toggle", (event) => {
    if (event.target.tagName === "DETAILS" && nameOf(event.target)) touched.set(nameOf(event.target), { open: event.target.open });
  }, true);
  document.addEventListener("submit", (event) => {
    for (const field of event.target.querySelectorAll(fields)) if (nameOf(field)) touched.delete(nameOf(field));
  });
  function giveBack() {
    for (const [name, had] of touched) {
      const field = $(name);
      if (!field) touched.delete(name);
      else if ("open" in had) { if (field.open !== had.open) field.open = had.open; }
      else if (field.type === "checkbox" || field.type === "radio") field.checked = had.checked;
      else if (field.value !== had.value) field.value = had.value;
    }
  }

  function keepTyped() {
    for (const field of document.querySelectorAll("[data-typed]")) touched.set(field.id, { value: field.value, checked: field.checked });
  }

  function changed() { giveBack(); keepTyped(); tellTimes(); tellWaiting(); }
  document.addEventListener("htmx:after:swap", changed);
  document.addEventListener("htmx:finally:request", changed);  // what came had a title of its own

  // When the bridge is gone, that is said; when it is back, the stream begins again by itself.
  function offline(why) { $("offline").hidden = !why; $("offline").textContent = why; }
  document.addEventListener("htmx:sse:error", (event) => {
    offline(event.detail.status === 401
      ? "This session is over. For a new one, type: service dashboard"
      : "The bridge does not answer; what is shown may be old. In a terminal: service daemon status");
  });
  document.addEventListener("htmx:sse:after:connection", () => offline(""));
  document.addEventListener("htmx:sse:after:message", () => offline(""));
  document.addEventListener("over", () => offline("This session is over. For a new one, type: service dashboard"));

  // Keys. One letter each, never while somebody types.
  const keys = [["?", "This list"], ["j", "Next item"], ["k", "Previous item"], ["/", "Search"], ["n", "Notify me when something waits"]];
  let before = "";
  function move(by) {
    const items = [...main().querySelectorAll("[data-item]")];
    const at = items.findIndex((item) => item.contains(document.activeElement));
    const next = items[Math.max(0, Math.min(items.length - 1, at < 0 ? (by > 0 ? 0 : items.length - 1) : at + by))];
    if (next) { next.tabIndex = -1; next.focus(); next.scrollIntoView({ block: "nearest" }); }
  }
  function press(key) {
    if (before === "g") {
      before = "";
      document.querySelector(`.top nav a[data-key="${CSS.escape(key)}"]`)?.click();
    } else if (key === "g") before = "g";
    else if (key === "?") help();
    else if (key === "j") move(1);
    else if (key === "k") move(-1);
    else if (key === "/") return main().querySelector("input[type=search]")?.focus() === undefined;
    else if (key === "n") window.Notification?.requestPermission();
    else return false;
    return true;
  }
  function help() {
    const links = [...document.querySelectorAll(".top nav a[data-key]")].map((a) => [`g ${a.dataset.key}`, a.firstChild.textContent]);
    $("keys").querySelector("dl").replaceChildren(...[...keys, ...links].flatMap(([key, what]) => {
      const dt = document.createElement("dt"), dd = document.createElement("dd"), code = document.createElement("code");
      code.textContent = key; dt.append(code); dd.textContent = what;
      return [dt, dd];
    }));
    $("keys").showModal();
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    if (press(event.key)) event.preventDefault();
  });
  changed();
})();
