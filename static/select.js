/* Select mode: many conversations, one question, one confirmation.
 *
 * What is selected are ids, not rows, so polls, pages and searches keep it. Each row is given a checkbox while the mode
 * lasts, also the rows of an answer before they are compared with those shown, so that equal lists stay equal. Many are
 * deleted in several bounded requests, each conversation in its own transaction: what is kept stays selected, by name.
 */
"use strict";
(() => {
  const { $, tell, announce } = allgone;
  const form = $("many");
  const side = $("sidebar");
  const dialog = $("delete-dialog");
  const question = $("delete-body");
  const TOGETHER = 100; // of one request
  const chosen = new Map(); // id to title
  let on = false;
  let anchor = null; // the id that a range begins at

  const idOf = (row) => row.id.slice(2);
  const rows = () => [...side.querySelectorAll(".found li, #history li")].filter((row) => row.getClientRects().length);
  const titleOf = (row) => row.querySelector("a").innerText.trim();

  // ---- rows -----------------------------------------------------------------------------------------------------
  function dress(row) {
    let box = row.querySelector(".pick");
    if (!box) {
      box = document.createElement("input");
      box.type = "checkbox";
      box.className = "pick";
      box.setAttribute("aria-label", `Select ${row.querySelector("a").textContent.trim()}`);
      row.prepend(box);
    }
    box.checked = chosen.has(idOf(row));
  }
  const all = () => side.querySelectorAll(".found li, #history li");
  allgone.list.dress = (told) => on && told.querySelectorAll("li").forEach(dress);

  function choose(row, yes) {
    if (yes) chosen.set(idOf(row), titleOf(row));
    else chosen.delete(idOf(row));
    for (const prefix of ["c-", "f-"]) {
      const box = $(prefix + idOf(row))?.querySelector(".pick");
      if (box) box.checked = yes;
    }
  }

  function range(row, yes) {
    const shown = rows();
    const from = shown.findIndex((one) => idOf(one) === anchor);
    const to = shown.indexOf(row);
    if (from < 0) return choose(row, yes);
    shown.slice(Math.min(from, to), Math.max(from, to) + 1).forEach((one) => choose(one, yes));
  }

  function toggle(row, extend) {
    const yes = extend || !chosen.has(idOf(row));
    if (extend) range(row, yes);
    else choose(row, yes);
    anchor = idOf(row);
    count();
  }

  function count() {
    const number = chosen.size;
    const hidden = [...chosen.keys()].filter((id) => !$(`c-${id}`) && !$(`f-${id}`)).length;
    $("many-count").textContent = `${number.toLocaleString("en")} selected${hidden ? ` (${hidden} not shown)` : ""}`;
    $("many-delete").disabled = !number;
  }

  // ---- the mode -------------------------------------------------------------------------------------------------
  function begin() {
    on = true;
    side.classList.add("selecting");
    all().forEach(dress);
    $("many-begin").hidden = true;
    $("many-on").hidden = false;
    count();
    const here = document.activeElement.closest?.("#sidebar li");
    if (here) return;
    (side.querySelector("#history a[aria-current]") ?? rows()[0]?.querySelector("a") ?? $("many-end")).focus();
  }

  function end(refocus = true) {
    on = false;
    chosen.clear();
    anchor = null;
    side.classList.remove("selecting");
    side.querySelectorAll(".pick").forEach((box) => box.remove());
    $("many-begin").hidden = false;
    $("many-on").hidden = true;
    if (refocus) $("many-begin").focus();
  }

  $("many-begin").addEventListener("click", begin);
  $("many-end").addEventListener("click", () => end());
  $("many-all").addEventListener("click", everything);

  /** Selects all there are, also those that are not loaded; where they can't be asked for, says which it has. */
  async function everything() {
    rows().forEach((row) => choose(row, true));
    count();
    const query = $("results")?.dataset.q ?? "";
    if (!$(query ? "found-more" : "older")) return;
    const button = $("many-all");
    button.ariaBusy = "true";
    try {
      const answer = await fetch(`/deletions/choices?${new URLSearchParams({ q: query })}`, { headers: { "HX-Request": "true" } });
      if (!answer.ok || answer.headers.get("HX-Redirect")) throw answer;
      const { held, more } = await answer.json();
      if (!on) return;
      for (const [id, title] of held) if (!chosen.has(id)) chosen.set(id, title || "Untitled");
      count();
      if (more) announce(`The newest ${held.length.toLocaleString("en")} are selected; that is the most at once.`);
    } catch {
      announce("Only those that are loaded are selected: the server did not answer.");
    } finally {
      button.ariaBusy = null;
    }
  }

  // Captured: in this mode a row is chosen, not opened.
  side.addEventListener("click", (event) => {
    const row = on && event.target.closest(".found li, #history li");
    if (!row || event.ctrlKey || event.metaKey) return;
    const box = event.target.closest(".pick");
    if (!box) event.preventDefault();
    event.stopPropagation();
    if (!box) return toggle(row, event.shiftKey);
    const yes = box.checked;
    if (event.shiftKey) range(row, yes);
    else choose(row, yes);
    anchor = idOf(row);
    count();
  }, true);

  document.addEventListener("keydown", (event) => {
    if (!on || event.defaultPrevented || document.querySelector("dialog[open]") || event.altKey) return;
    if (event.target.matches("input:not(.pick), textarea, select") || event.target.isContentEditable) return;
    const row = event.target.closest?.("#sidebar li");
    const mod = event.ctrlKey || event.metaKey;
    if (event.key === " " && row && !mod) toggle(row, event.shiftKey);
    else if (event.key.toLowerCase() === "a" && mod && !event.shiftKey) everything();
    else if (event.key === "Delete" && !mod) chosen.size && ask();
    else if (event.key === "Escape" && !event.shiftKey) end();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }, true);

  const inMode = { group: "In the list", when: () => on, run: () => false };
  allgone.shortcut({ ...inMode, keys: "Space", says: "Select, or take back; with Shift up to here" });
  allgone.shortcut({ ...inMode, keys: "mod+a", says: "Select all" });
  allgone.shortcut({ ...inMode, keys: "Escape", says: "Leave the selection" });

  // ---- what changes meanwhile -----------------------------------------------------------------------------------
  document.addEventListener("allgone:forgotten", ({ detail: { id } }) => on && chosen.delete(id) && count());
  document.addEventListener("allgone:found", () => on && (all().forEach(dress), count()));
  let listed = new Set();
  document.addEventListener("allgone:listed", () => {
    const now = new Set(allgone.list.rows().map(idOf));
    if (on) {
      for (const id of chosen.keys()) if (listed.has(id) && !now.has(id)) chosen.delete(id); // deleted elsewhere
      count();
    }
    listed = now;
  });
  listed = new Set(allgone.list.rows().map(idOf));

  // ---- the question and the deletion ----------------------------------------------------------------------------
  async function send(address, ids) {
    const body = new URLSearchParams();
    body.set("csrf_token", form.elements.csrf_token.value);
    for (const id of ids) body.append("id", id);
    const answer = await fetch(address, { method: "POST", body, headers: { "HX-Request": "true" } });
    const there = answer.headers.get("HX-Redirect");
    if (there) {
      location.assign(there);
      return new Promise(() => {}); // the page is leaving
    }
    if (!answer.ok) throw Object.assign(new Error(), { html: await answer.text(), status: answer.status });
    return answer;
  }

  const NO_ANSWER = "No answer came from the server, so it is not known whether this was done. Check your connection and try again: deleting twice does no harm.";
  const told = (html) => new DOMParser().parseFromString(html, "text/html").body.textContent.trim();
  const wordsOf = ({ html, status }) => (html === undefined ? NO_ANSWER : told(html) || `The server answered ${status}.`);

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });

  async function ask() {
    const before = document.activeElement;
    try {
      const answer = await send("/deletions/question", chosen.keys());
      question.innerHTML = await answer.text();
    } catch ({ html, status }) {
      if (html === undefined) allgone.dialog.unasked(ask);
      else allgone.dialog.refused(html, status);
      return $("delete-cancel").focus();
    }
    if (!dialog.open) dialog.showModal();
    $("delete-cancel").focus();
    dialog.addEventListener("close", () => on && (before.isConnected && before.getClientRects().length ? before : $("many-end")).focus(), { once: true });
    $("many-confirm")?.addEventListener("click", erase);
  }

  async function erase({ target: button }) {
    let left = button.closest("[data-ids]").dataset.ids.split(" ");
    const total = left.length;
    const gone = [];
    const kept = {};
    let [version, since, owed] = [0, null, 0];
    let fault = "";
    let stopped = false;
    const stop = () => (stopped = true);
    button.disabled = true;
    $("delete-problem").textContent = "";
    $("delete-cancel").textContent = "Stop";
    dialog.addEventListener("close", stop, { once: true });
    const bar = $("many-bar");
    bar.max = total;
    const tellProgress = () => {
      bar.value = gone.length;
      bar.labels[0].textContent = `${gone.length.toLocaleString("en")} of ${total.toLocaleString("en")} deleted`;
      $("many-progress").hidden = total <= TOGETHER;
    };
    tellProgress();
    while (left.length && !stopped) {
      try {
        const told = await (await send("/deletions", left.slice(0, TOGETHER))).json();
        gone.push(...told.gone);
        Object.assign(kept, told.kept);
        version = Math.max(version, told.version);
        since ??= told.since;
        owed = told.owed;
        left = [...told.left, ...left.slice(TOGETHER)];
        tellProgress();
      } catch (one) {
        fault = wordsOf(one);
        break;
      }
    }
    dialog.removeEventListener("close", stop);
    const names = Object.entries(kept).map(([id, why]) => [chosen.get(id) || "Untitled", why]);
    const whole = !fault && !names.length && !left.length;
    const number = gone.length.toLocaleString("en");
    let said = `${number} conversation${gone.length === 1 ? "" : "s"} deleted: gone from this server, and from each client and device as it next connects.`;
    if (owed) said += ` ${owed.toLocaleString("en")} file${owed === 1 ? "" : "s"} still being erased.`;
    if (whole) end(false);
    if (gone.length) {
      const closed = new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
      const open = dialog.open;
      tell("deleted", { ids: gone, said, version, since, owed });
      if (open) await closed; // and with it, emptied
    }
    if (on) count();
    if (whole || stopped) return;
    report(gone.length ? said : "", names, fault, left.length);
  }

  /** What was kept, by name and with the reason; it stays selected. */
  function report(said, names, fault, left) {
    const heading = document.createElement("h2");
    heading.id = "delete-title";
    heading.textContent = said ? "Not all were deleted" : "Nothing was deleted";
    const text = document.createElement("div");
    text.id = "delete-text";
    const line = (words) => text.append(Object.assign(document.createElement("p"), { textContent: words }));
    if (said) line(said);
    if (fault) line(fault);
    if (left) line(`${left.toLocaleString("en")} ${left === 1 ? "was" : "were"} not tried, and ${left === 1 ? "stays" : "stay"} selected.`);
    if (names.length) {
      const list = document.createElement("ul");
      list.className = "which";
      for (const [title, why] of names.slice(0, 10)) {
        const item = document.createElement("li");
        const name = document.createElement("bdi");
        name.dir = "auto";
        name.textContent = title;
        item.append(name, why === "active_run_exists" ? ": a run is active" : ": it failed, try again");
        list.append(item);
      }
      if (names.length > 10) list.append(Object.assign(document.createElement("li"), { textContent: `and ${names.length - 10} more` }));
      text.append(list);
    }
    const actions = document.createElement("div");
    actions.className = "actions";
    const close = Object.assign(document.createElement("button"), { id: "delete-cancel", type: "button", textContent: "Close" });
    close.dataset.close = "";
    actions.append(close);
    question.replaceChildren(heading, text, actions);
    if (!dialog.open) dialog.showModal();
    close.focus();
    announce(said || "Nothing was deleted.");
  }

  // Nothing to select, no button.
  const settle = () => (form.hidden = !on && !rows().length && !allgone.list.rows().length);
  for (const name of ["listed", "found", "forgotten"]) document.addEventListener(`allgone:${name}`, settle);
  settle();
})();
