/* Search: asks as one types, shows what was found in place of the list, and leads back to it.
 *
 * An answer is taken only while the field still holds what it answers, so a late one never overwrites a newer. Rows of
 * conversations that are gone are taken out of what is shown, and of whatever comes later. The address says what is
 * searched for, so that the way back from a result leads to the others.
 */
"use strict";
(() => {
  const { $, tell } = allgone;
  const field = $("q");
  const region = $("found");
  const gone = new Set();
  let waiting, asking;

  const wanted = () => field.value.trim();
  const shown = () => $("results")?.dataset.q ?? "";

  function say(text) {
    $("found-said").textContent = text;
  }

  function put(...nodes) {
    // Whatever left this tab stays out of it.
    for (const node of nodes) for (const id of gone) node.querySelector?.(`#f-${CSS.escape(id)}`)?.remove();
    return nodes;
  }

  async function fetched(address) {
    asking?.abort();
    asking = new AbortController();
    const answer = await fetch(address, { headers: { "HX-Request": "true" }, signal: asking.signal });
    const there = answer.headers.get("HX-Redirect");
    if (there) {
      location.assign(there);
      return null;
    }
    if (!answer.ok) throw new Error(String(answer.status));
    const held = document.createElement("template");
    held.innerHTML = await answer.text();
    return held.content;
  }

  async function ask() {
    clearTimeout(waiting);
    const query = wanted();
    if (query === shown() && region.childElementCount) return;
    if (!query) return clear();
    region.classList.add("asking");
    try {
      const found = await fetched(`/history/search?${new URLSearchParams({ q: query })}`);
      if (!found || wanted() !== query) return;
      region.replaceChildren(...put(...found.childNodes));
      markOpen();
      watch();
      region.scrollTop = 0;
      say($("found-count")?.textContent ?? "");
      remember(query);
      tell("found", { query });
    } catch (fault) {
      if (fault.name === "AbortError") return;
      failed("The search did not answer. Your conversations are safe.");
    }
    if (wanted() === query) region.classList.remove("asking");
  }

  /** Says in the region what went wrong, with the one thing to do about it. */
  function failed(text) {
    const note = document.createElement("p");
    note.className = "found-hint";
    note.setAttribute("role", "alert");
    note.textContent = `${text} `;
    const again = document.createElement("button");
    again.type = "button";
    again.className = "quiet";
    again.textContent = "Search again";
    again.addEventListener("click", () => {
      field.focus();
      ask();
    });
    note.append(again);
    region.replaceChildren(note);
    region.classList.remove("asking");
  }

  function clear() {
    clearTimeout(waiting);
    asking?.abort();
    const held = region.contains(document.activeElement);
    region.replaceChildren();
    region.classList.remove("asking");
    field.value = "";
    say("");
    remember("");
    if (held) field.focus();
    tell("found", { query: "" });
  }

  function remember(query) {
    const address = new URL(location.href);
    if (query) address.searchParams.set("q", query);
    else for (const name of ["q", "cursor", "apart"]) address.searchParams.delete(name);
    if (address.href !== location.href) history.replaceState(null, "", address);
  }

  function markOpen() {
    if (allgone.openId) $(`f-${allgone.openId}`)?.querySelector("a").setAttribute("aria-current", "page");
  }

  // ---- further pages --------------------------------------------------------------------------------------------
  const watcher = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && more(false), {
    root: region,
    rootMargin: "0px 0px 400px 0px",
  });

  function watch() {
    watcher.disconnect();
    if ($("found-more")) watcher.observe($("found-more"));
  }

  async function more(byHand) {
    const link = $("found-more");
    const query = shown();
    if (!link || link.ariaBusy) return;
    link.ariaBusy = "true";
    watcher.disconnect();
    try {
      const found = await fetched(`/history/search${link.search}`);
      if (!found || shown() !== query || !link.isConnected) return;
      put(found);
      const first = found.querySelector("li");
      for (const group of found.querySelectorAll(".group")) {
        const have = region.querySelector(`.group[data-key="${CSS.escape(group.dataset.key)}"]`);
        if (have) {
          have.querySelector("ul").append(...group.querySelectorAll("li"));
          group.remove();
        }
      }
      const focused = document.activeElement === link;
      link.replaceWith(found);
      if (focused || byHand) allgone.list.focusRow(first);
      markOpen();
      watch();
      tell("found", { query });
    } catch (fault) {
      link.ariaBusy = null;
      if (fault.name !== "AbortError") link.textContent = "Not loaded. Try again";
    }
  }

  // ---- what the reader does -------------------------------------------------------------------------------------
  field.addEventListener("input", (event) => {
    if (event.isComposing) return;
    clearTimeout(waiting);
    if (!wanted()) return clear();
    waiting = setTimeout(ask, 180);
  });
  field.addEventListener("compositionend", () => (waiting = setTimeout(ask, 180)));
  $("search").addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });

  let before = null; // where the focus was when the field was entered
  field.addEventListener("focus", ({ relatedTarget }) => {
    if (relatedTarget && !region.contains(relatedTarget)) before = relatedTarget;
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") {
      const first = region.querySelector("li") ?? (region.childElementCount ? null : allgone.list.rows()[0]);
      if (!first) return;
      event.preventDefault();
      allgone.list.focusRow(first);
    } else if (event.key === "Escape" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      event.stopPropagation();
      if (field.value) return clear();
      if (before?.isConnected && before.getClientRects().length) before.focus();
      else allgone.side.enter();
    }
  });
  region.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    clear();
    field.focus();
  });
  region.addEventListener("click", (event) => {
    const link = event.target.closest("li a");
    const place = (address) => address.split("#")[0];
    if (link && !event.defaultPrevented && !event.ctrlKey && !event.metaKey && place(link.href) === place(location.href)) {
      // Another search led to the message that is open: its address is here already, its marks are not.
      event.preventDefault();
      history.replaceState(null, "", link.href);
      location.reload();
      return;
    }
    if (event.target.closest("#found-more")) {
      event.preventDefault();
      more(true);
    } else if (event.target.closest(".found-clear") && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      clear();
      field.focus();
    }
  });

  // ---- what is gone ---------------------------------------------------------------------------------------------
  function drop(row, refocus) {
    const rows = [...region.querySelectorAll("li")];
    const at = rows.indexOf(row);
    const held = refocus || row.contains(document.activeElement);
    const group = row.closest(".group");
    row.remove();
    if (!group.querySelector("li")) group.remove();
    const said = $("found-count");
    const left = rows.length - 1;
    if (/^\d+ conversations?$/.test(said?.textContent)) {
      said.textContent = left ? `${left} conversation${left === 1 ? "" : "s"}` : "No conversation holds these words any more.";
    }
    if (held) ((rows[at + 1] ?? rows[at - 1])?.querySelector("a") ?? field).focus();
  }

  document.addEventListener("allgone:forgotten", ({ detail: { id, refocus } }) => {
    gone.add(id);
    const row = $(`f-${id}`);
    if (row) drop(row, refocus);
  });
  // The list learned of a change: what was found may have changed with it, and nothing moves under the reader but what
  // is gone.
  document.addEventListener("allgone:listed", async ({ detail: { more: page } }) => {
    const query = shown();
    if (page || !query) return;
    let found;
    try {
      const answer = await fetch(`/history/search?${new URLSearchParams({ q: query })}`, { headers: { "HX-Request": "true" } });
      if (!answer.ok || answer.headers.get("HX-Redirect")) return;
      found = new DOMParser().parseFromString(await answer.text(), "text/html");
    } catch {
      return; // the next poll asks again
    }
    if (shown() !== query || !found.getElementById("results")) return;
    // A row that is missing is gone where the answer reaches as far down as it did.
    const whole = !found.getElementById("found-more");
    const rows = [...region.querySelectorAll("li")];
    const last = [...found.querySelectorAll("li")].at(-1)?.id;
    const reach = whole ? rows.length : rows.findIndex((row) => row.id === last);
    rows.slice(0, Math.max(reach, 0)).forEach((row) => found.getElementById(row.id) || drop(row, false));
  });

  markOpen();
  watch();
  region.querySelector("[aria-current]")?.scrollIntoView({ block: "center" });
})();
