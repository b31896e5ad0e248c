// Conveniences of the dashboard. Everything works without them; nothing here knows what a page is about.
"use strict";
(() => {
  const $ = (name) => document.getElementById(name), main = () => $("main");

  // Times are told from now; the exact moment is their title.
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  function span(seconds, most = 2) {
    const words = [];
    for (const [size, unit] of units) {
      if (seconds >= size && words.length < most) { words.push(`${Math.floor(seconds / size)} ${unit}`); seconds %= size; }
      else if (words.length) break;
    }
    return words.join(" ") || "0 s";
  }
  function tellTimes() {
    for (const each of document.querySelectorAll("time[datetime]")) {
      const away = (Date.now() - Date.parse(each.dateTime)) / 1000;
      each.textContent = away < 0 ? `in ${span(-away)}` : away < 1 ? "now" : "age" in each.dataset ? span(away, 1) : `${span(away < 60 ? away : away - away % 60)} ago`;
    }
  }
  setInterval(tellTimes, 10000);

  // How much waits: on the tab, beside the link, and as a notification when there is more of it.
  const here = () => document.querySelector("[data-waiting]");  // a page that counts knows it best
  let waited = Number($("badge").textContent);
  function tellWaiting(number) {
    document.title = `${number ? `(${number}) ` : ""}${document.title.replace(/^\(\d+\) /, "")}`;
    $("badge").hidden = !number; $("badge").textContent = number || "";
    if (number > waited && document.hidden && window.Notification?.permission === "granted")
      new Notification("Something waits for you", { body: document.querySelector("[data-newest]")?.dataset.newest ?? "", tag: "service" });
    waited = number;
  }

  // What somebody has typed or ticked stays, whatever else on the page changes.
  const touched = new Map();
  const touch = ({ id, value, checked, tagName }) => { touched.delete(id); touched.set(id, { value, checked, unsent: tagName === "TEXTAREA" }); };  // the newest is last
  document.addEventListener("input", (event) => { if (event.target.id) touch(event.target); });
  document.addEventListener("submit", ({ target, submitter }) => {
    for (const { id } of target.elements) if (touched.has(id)) touched.get(id).unsent = false;
    if (target.method !== "post") return;
    idle(); submitter?.setAttribute("aria-busy", "true");
    places = []; for (let at = target; at && at !== main(); at = at.parentElement) places.push([at, at.nextElementSibling]);
  });
  document.addEventListener("toggle", (event) => {
    if (event.target.tagName === "DETAILS" && event.target.id) touched.set(event.target.id, { open: event.target.open });
  }, true);
  document.addEventListener("htmx:before:swap", ({ detail: { ctx } }) => {
    const form = ctx.sourceElement;
    if (form.tagName === "FORM") $("page").prepend(notes);
    if (form.tagName !== "FORM" || ctx.response?.status >= 400) return;
    for (const field of form.elements) touched.delete(field.id);
    form.reset();
  });
  function giveBack() {
    for (const [name, had] of [...touched].reverse()) {
      const field = $(name);
      if (!field) { touched.delete(name); if (had.unsent && had.value.trim()) keep(had.value); }
      else if ("open" in had) { if (field.open !== had.open) field.open = had.open; }
      else if (field.type === "checkbox" || field.type === "radio") field.checked = had.checked;
      else if (field.value !== had.value) field.value = had.value;
    }
  }

  // Where one field narrows the choices of another, one that is left is chosen.
  document.addEventListener("change", () => {
    for (const choices of document.querySelectorAll("[data-narrowed]")) {
      const left = [...choices.querySelectorAll("input")].filter((input) => input.offsetParent);
      if (left.length && !left.some((input) => input.checked)) left[0].checked = true;
    }
  });

  // What a form came to stands where it was sent, also where the form is gone by then; its button says that it waits.
  const notes = $("notes"); let places = [];
  const idle = () => { for (const each of document.querySelectorAll("[aria-busy]")) each.removeAttribute("aria-busy"); };
  function place() {
    if (!notes.children.length) return;
    const [at, next] = places.find(([at, next]) => at.isConnected || next?.isConnected) ?? [];
    if (at?.isConnected) at.append(notes); else next?.before(notes);
  }

  function changed() {
    giveBack(); place();
    for (const field of document.querySelectorAll("[data-typed]")) touch(field);
    tellTimes();
    if (here()) tellWaiting(Number(here().dataset.waiting));
  }
  document.addEventListener("htmx:after:swap", ({ detail }) => {
    changed(); listen(); if (detail.ctx?.sourceElement.tagName !== "FORM") return;
    show(); if (document.activeElement === document.body) notes.focus({ preventScroll: true });  // its button is gone
  });
  document.addEventListener("htmx:finally:request", () => { idle(); changed(); });  // what came had a title of its own
  addEventListener("pageshow", idle);

  // A text that is copied: its button says so for a moment. Where a browser lets nobody copy, the text is shown.
  document.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-copy]"), text = button?.dataset.copy;
    if (!text) return;
    if (!navigator.clipboard) return tell(text);
    navigator.clipboard.writeText(text).then(() => { button.dataset.copied = ""; setTimeout(() => { delete button.dataset.copied; }, 1500); }, () => tell(text));
  });

  // What a form came to when there is no page to show for it; what was typed stays.
  function make(tag, values, ...inside) {
    const made = Object.assign(document.createElement(tag), values);
    made.append(...inside); return made;
  }
  const note = (text) => make("p", { className: "note no" }, text), tell = (text) => { notes.replaceChildren(note(text)); place(); show(); };
  const show = () => { if (notes.children.length) notes.scrollIntoView({ block: "nearest" }); };
  // What was typed in a field that is gone. Who still types goes on in there, so that their letters are no keys.
  function keep(text) {
    if ([...document.querySelectorAll("textarea")].some((area) => area.value === text)) return;
    const area = make("textarea", { ariaLabel: "What you typed", value: text });
    notes.append(note("This waits for nobody any more. What you typed is kept here, so that you can copy it."), area);
    if (document.activeElement === document.body) area.focus();
  }
  document.addEventListener("trouble", (event) => tell(event.detail.value));
  document.addEventListener("htmx:error", ({ detail }) => {
    if (detail.ctx) tell("The bridge did not answer; look whether it was done before you send it again.");
  });

  // The stream of what changes. A browser has six connections to a bridge for all its tabs together: those that
  // nobody sees hold none, but for one that can tell when something waits.
  const gone = "The bridge does not answer; what is shown may be old. In a terminal: service daemon status";
  const over = "This session is over. For a new one, type: service dashboard";
  const crowded = "Too many pages of this session are open. This one stands still until you come back to it.";
  let stream = null, from = "", again = 0, watches = false;
  function banner(why) { $("offline").hidden = !why; $("offline").textContent = why; }
  function end(why, seconds) {
    stream.close(); stream = null; banner(why);
    if (seconds) again = setTimeout(listen, seconds * 1000);
  }
  function listen() {
    clearTimeout(again);
    const moved = from !== main().dataset.live;  // to another view, or another page
    if (from && moved && main().dataset.live) history.replaceState(null, "", main().dataset.live.replace("/ui/live", "/ui").replace(/.seen=$/, ""));
    if ((document.hidden && !watches) || moved) { stream?.close(); stream = null; }
    if (stream || !main().dataset.live || (document.hidden && !watches)) return;
    from = main().dataset.live; stream = new EventSource(from + main().dataset.seen);
    stream.onopen = () => banner("");
    stream.onmessage = (event) => {
      main().dataset.seen = event.lastEventId;
      htmx.swap({ sourceElement: main(), target: main(), text: event.data, swap: "innerMorph" });
    };
    stream.addEventListener("waiting", (event) => { if (!here()) tellWaiting(Number(event.data)); });
    stream.addEventListener("trouble", (event) => banner(event.data));
    stream.addEventListener("over", () => end(over, 10));
    stream.addEventListener("crowded", () => end(crowded, 0));
    stream.onerror = () => stream.readyState === EventSource.CLOSED ? end(over, 10) : end(gone, 2);
  }
  document.addEventListener("visibilitychange", listen); window.addEventListener("focus", listen);
  navigator.locks?.request("live", () => { watches = true; listen(); return new Promise(() => {}); });

  // Keys. One letter each, never while somebody types.
  const keys = [["?", "This list"], ["j", "Next item"], ["k", "Previous item"], ["/", "Search"], ["1–4", "A view of a task"], ["n", "Notify me when something waits"]];
  let before = "";  // "g", for a second and a half
  function move(by) {
    const items = [...main().querySelectorAll("[data-item]")];
    const at = items.findIndex((item) => item.contains(document.activeElement));
    const next = items[Math.max(0, Math.min(items.length - 1, at < 0 ? (by > 0 ? 0 : items.length - 1) : at + by))];
    if (next) { next.tabIndex = -1; next.focus(); next.scrollIntoView({ block: "nearest" }); }
  }
  const view = (key) => main().querySelector(`.tabs a[data-key="${CSS.escape(key)}"]`);
  function press(key) {
    if (before === "g") {
      before = "";
      document.querySelector(`a[data-key="${CSS.escape(key)}"]`)?.click();
    } else if (key === "g") { before = "g"; setTimeout(() => { before = ""; }, 1500); }
    else if (key === "?") help();
    else if (key === "j" || key === "k") move(key === "j" ? 1 : -1);
    else if (view(key)) view(key).click();
    else if (key === "/") return main().querySelector("input[type=search]")?.focus() === undefined;
    else if (key === "n") window.Notification?.requestPermission();
    else return false;
    return true;
  }
  function help() {
    const links = [...document.querySelectorAll("a[data-key]")].map((a) => [`g ${a.dataset.key}`, a.firstChild.textContent]);
    const lines = [...keys, ...links].flatMap(([key, what]) => [make("dt", {}, make("code", {}, key)), make("dd", {}, what)]);
    $("keys").querySelector("dl").replaceChildren(...lines);
    $("keys").showModal();
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
    if (event.target.closest("input:not([type=checkbox], [type=radio]), textarea, select")) return;
    if (press(event.key)) event.preventDefault();
  });
  changed(); listen();
})();
