/* The browser's own part: what htmx cannot say in attributes.
 *
 *   poll      when to ask whether the list changed, and what to tell the server that it shows
 *   list      taking a told list in, row by row, so that what did not change is not touched
 *   dialog    the question before a deletion, where focus goes, and what is announced
 *   page      the open conversation that was deleted elsewhere; the drawer of a phone; the reader's time zone
 *
 * Nothing is kept: no storage, no history snapshot. Two numbers order the answers. `shown` is the version that the
 * page shows, and a poll sends it. `floor` is the newest version that this tab heard of; an answer from before it is
 * dropped, whenever it comes, and asked for again.
 */
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const nav = () => $("history");
  const poller = $("poll");
  if (!poller) return; // signed out, or an error page

  const openId = document.body.dataset.open || null;
  const deleted = new Set(); // ids deleted in this tab: they never come back
  let floor = shown();

  function shown() {
    return Number($("list-state")?.dataset.version ?? -1);
  }

  // ---- the reader's zone -------------------------------------------------------------------------------------
  function tellZone() {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (!zone || document.cookie.split("; ").includes(`tz=${zone}`)) return false;
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `tz=${zone}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
    return true;
  }

  // ---- poll --------------------------------------------------------------------------------------------------
  let soon, next;

  function poll() {
    clearTimeout(soon);
    // A return to the window tells itself by several events at once: one request.
    soon = setTimeout(() => {
      schedule();
      tellZone(); // a traveller's groups change with the zone
      htmx.trigger(poller, "poll");
    }, 60);
  }

  function schedule() {
    clearInterval(next);
    next = setInterval(() => document.visibilityState === "visible" && poll(), poller.dataset.every * 1000);
  }

  document.addEventListener("htmx:config:request", (event) => {
    if (event.target !== poller) return;
    const { version, day, until } = $("list-state").dataset;
    const body = event.detail.ctx.request.body;
    body.set("version", version);
    body.set("day", day);
    if (until) body.set("until", until);
  });

  window.addEventListener("focus", poll);
  window.addEventListener("online", poll);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && poll());

  // ---- list --------------------------------------------------------------------------------------------------
  htmx.registerExtension("allgone", {
    handle_swap(style, _target, fragment) {
      if (style === "history") return take(fragment, false);
      if (style === "older") return take(fragment, true);
      return false;
    },
  });

  /** Takes a told list in: the whole window, or one more page of it. Returns the nodes that htmx has to look at. */
  function take(fragment, more) {
    const state = fragment.getElementById("list-state");
    const told = fragment.getElementById("history");
    if (!state || !told) return [];
    const version = Number(state.dataset.version);
    if (version < floor) {
      // Asked before something that this tab has seen since. A page is asked for again by its own link.
      if (more) near($("older")); else poll();
      return [];
    }
    for (const id of deleted) told.querySelector(`#c-${CSS.escape(id)}`)?.remove();
    for (const group of told.querySelectorAll(".group")) if (!group.querySelector("li")) group.remove();
    if (openId) told.querySelector(`#c-${CSS.escape(openId)} a`)?.setAttribute("aria-current", "page");

    const active = document.activeElement;
    const neighbour = active?.closest?.("#history li") && neighbourOf(active.closest("li"), told);
    const sentinel = $("older");
    const first = more ? addPage(told) : syncList(told);
    const fresh = syncSentinel(told);
    const held = $("list-state").dataset;
    // A page from another version than the rest: keep the older number, so that the next poll mends the seam.
    held.version = more ? Math.min(shown(), version) : version;
    held.until = state.dataset.until || held.until;
    held.day = more ? held.day : state.dataset.day;
    if (!more) floor = version;

    if (active && active !== document.activeElement) {
      if (active.isConnected) active.focus({ preventScroll: true });
      else if (active === sentinel && first) focusRow(first);
      else if (neighbour) focusRow($(neighbour));
    }
    if (!more && openId) checkStanding();
    return fresh ? [fresh] : [];
  }

  const rowsOf = (root) => [...root.querySelectorAll("li")];

  /** The id of the row that takes the focus when `row` is not in `told`: the next that stays, else the previous. */
  function neighbourOf(row, told) {
    const rows = rowsOf(nav());
    const at = rows.indexOf(row);
    const stays = (other) => told.querySelector(`#${CSS.escape(other.id)}`);
    return (rows.slice(at + 1).find(stays) ?? rows.slice(0, at).reverse().find(stays))?.id;
  }

  function syncList(told) {
    const wanted = new Set([...told.querySelectorAll("[id]")].map((node) => node.id));
    for (const row of rowsOf(nav())) if (!wanted.has(row.id)) row.remove();
    let place = nav().firstElementChild;
    for (const want of [...told.children]) {
      if (want.id === "older") continue;
      while (place && !wanted.has(place.id)) place = place.nextElementSibling;
      const have = want.id && $(want.id);
      if (!have) {
        // A new group is put in empty, so that rows that move into it are moved and not made anew.
        const node = want.cloneNode(!want.querySelector("ul"));
        nav().insertBefore(node, place);
        if (want.querySelector("ul")) {
          node.append(want.querySelector("h2").cloneNode(true), document.createElement("ul"));
          syncRows(node.querySelector("ul"), want);
        }
        continue;
      }
      if (have !== place) move(nav(), have, place);
      place = have.nextElementSibling;
      if (have.querySelector("ul")) syncRows(have.querySelector("ul"), want);
    }
    for (const child of [...nav().children]) if (!wanted.has(child.id)) child.remove();
  }

  function syncRows(list, group) {
    let place = list.firstElementChild;
    for (const want of rowsOf(group)) {
      const have = $(want.id);
      if (!have) {
        list.insertBefore(want, place);
        continue;
      }
      if (have !== place) move(list, have, place);
      place = have.nextElementSibling;
      if (!have.isEqualNode(want)) patch(have, want);
    }
  }

  /** Adds a page's rows below what is there; returns its first new row. */
  function addPage(told) {
    let first = null;
    for (const group of [...told.querySelectorAll(".group")]) {
      const rows = rowsOf(group).filter((row) => !$(row.id));
      if (!rows.length) continue;
      first ??= rows[0];
      const have = $(group.id);
      if (have) have.querySelector("ul").append(...rows);
      else {
        group.querySelector("ul").replaceChildren(...rows);
        nav().insertBefore(group, $("older"));
      }
    }
    return first;
  }

  /** The link to the next page is a new node when it leads elsewhere, and then told to htmx. */
  function syncSentinel(told) {
    const have = $("older");
    const want = told.querySelector("#older");
    if (have && want && have.getAttribute("href") === want.getAttribute("href")) return null;
    have?.remove();
    if (!want) return null;
    nav().append(want);
    watcher.disconnect();
    watcher.observe(want);
    return want;
  }

  // Moving keeps focus, selection and scroll where the browser can; elsewhere focus is given back afterwards.
  function move(parent, node, place) {
    if (parent.moveBefore && node.isConnected) parent.moveBefore(node, place);
    else parent.insertBefore(node, place);
  }

  /** Makes `have` equal to `want`, keeping every node that the two share by place and kind. */
  function patch(have, want) {
    for (const { name, value } of want.attributes) if (have.getAttribute(name) !== value) have.setAttribute(name, value);
    for (const { name } of [...have.attributes]) if (!want.hasAttribute(name)) have.removeAttribute(name);
    const [old, now] = [[...have.childNodes], [...want.childNodes]];
    now.forEach((node, at) => {
      const held = old[at];
      if (!held) have.append(node);
      else if (held.nodeName !== node.nodeName) held.replaceWith(node);
      else if (held.nodeType !== Node.ELEMENT_NODE) held.data !== node.data && (held.data = node.data);
      else if (!held.isEqualNode(node)) patch(held, node);
    });
    old.slice(now.length).forEach((node) => node.remove());
  }

  const near = (link) => link && htmx.trigger(link, "near", {}, false);
  const watcher = new IntersectionObserver(
    (seen) => seen.some((one) => one.isIntersecting) && near($("older")),
    { root: nav(), rootMargin: "0px 0px 600px 0px" },
  );

  function focusRow(row) {
    row?.querySelector("a")?.focus();
  }

  nav().addEventListener("keydown", (event) => {
    const rows = rowsOf(nav());
    const at = rows.indexOf(event.target.closest("li"));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (at < 0 || to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (to === rows.length && $("older")) $("older").focus();
    else focusRow(rows[Math.max(0, Math.min(to, rows.length - 1))]);
  });

  /** Takes one row out, and gives the focus to its neighbour where `refocus` says so. */
  function dropRow(id, refocus) {
    const row = $(`c-${id}`);
    const rows = rowsOf(nav());
    const at = rows.indexOf(row);
    const neighbour = row ? (rows[at + 1] ?? rows[at - 1]) : rows[0];
    if (row) {
      const group = row.closest(".group");
      row.remove();
      if (!group.querySelector("li")) group.remove();
    }
    if (!nav().querySelector("li, #older")) nav().replaceChildren($("empty-template").content.cloneNode(true));
    if (!refocus) return;
    if (neighbour && neighbour.getClientRects().length) focusRow(neighbour);
    else ($("empty") ?? $("main")).focus();
  }

  // ---- dialog ------------------------------------------------------------------------------------------------
  const dialog = $("delete-dialog");
  const question = $("delete-body");
  let asked = null; // the conversation that the dialog is about
  let opener = null;

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[form=ask]");
    if (button) {
      event.preventDefault();
      ask(button);
    } else if (event.target.closest("[data-close]")) {
      dialog.close();
    }
  });

  function ask(button) {
    const address = button.getAttribute("formaction");
    opener = button;
    asked = address.split("/")[2];
    htmx.ajax("GET", address, { source: dialog, target: question, swap: "innerHTML" });
  }

  function show() {
    if (!dialog.open) dialog.showModal();
    if (!dialog.contains(document.activeElement)) $("delete-cancel")?.focus();
  }

  dialog.addEventListener("close", () => {
    question.replaceChildren(); // it names a title, and may hold a watch over a run
    asked = null;
    if (opener?.isConnected && opener.getClientRects().length) opener.focus();
    opener = null;
  });

  document.addEventListener("htmx:after:swap", (event) => {
    const { ctx } = event.detail;
    const target = typeof ctx.target === "string" ? document.querySelector(ctx.target) : ctx.target;
    if (target !== question || ctx.swap === "none" || asked === null) return;
    show();
    if (document.activeElement === dialog || document.activeElement === document.body) $("delete-cancel")?.focus();
  });

  /** Says in the dialog what went wrong. What was asked for was not done, or it is not known. */
  function problem(text) {
    if (!question.querySelector("#delete-problem")) question.replaceChildren($("problem-template").content.cloneNode(true));
    show();
    $("delete-problem").textContent = text;
  }

  const inDialog = (ctx) => dialog === ctx.sourceElement || dialog.contains(ctx.sourceElement);
  const isWatch = (ctx) => ctx.sourceElement.id === "delete-watch";

  document.addEventListener("htmx:response:error", ({ detail: { ctx } }) => {
    if (!inDialog(ctx)) return;
    const { status } = ctx.response;
    if (status === 409) return; // the answer is the question as it stands now, and is swapped in
    if (status === 404) {
      const id = asked;
      problem("This conversation is not there any more: it was deleted elsewhere.");
      $("delete-form")?.remove();
      $("delete-cancel")?.focus();
      forget(id, false);
      return;
    }
    const body = new DOMParser().parseFromString(ctx.text, "text/html").body;
    problem(body.textContent.trim() || `The server answered ${status}. Nothing was deleted.`);
  });

  document.addEventListener("htmx:error", ({ detail: { ctx } }) => {
    if (!ctx || ctx.response || !inDialog(ctx) || isWatch(ctx)) return;
    problem("No answer came from the server, so it is not known whether this was done. Check your connection and try again: deleting twice does no harm.");
  });

  document.addEventListener("allgone:deleted", ({ detail: { id, said, version } }) => {
    floor = Math.max(floor, version);
    opener = null;
    forget(id, true);
    announce(said);
  });

  document.addEventListener("allgone:gone", ({ detail: { id } }) => forget(id, false));

  /** A conversation is gone for certain: its row goes, and it never comes back into this tab. */
  function forget(id, refocus) {
    if (!id) return;
    deleted.add(id);
    if (refocus && dialog.open) dialog.close();
    dropRow(id, refocus);
    if (id === openId) checkStanding();
  }

  let quiet;
  function announce(text) {
    const said = $("said");
    clearTimeout(quiet);
    said.textContent = text;
    quiet = setTimeout(() => (said.textContent = ""), 8000);
  }

  // ---- page --------------------------------------------------------------------------------------------------
  let over = false; // the open conversation was found to be gone

  function checkStanding() {
    if (over || $(`c-${openId}`)) return;
    htmx.ajax("GET", `/conversations/${openId}/standing`, { source: "#standing", target: "#main", swap: "innerHTML" });
  }

  document.addEventListener("htmx:before:swap", ({ detail: { ctx } }) => {
    if (ctx.sourceElement?.id !== "standing" || ctx.response.status !== 200) return;
    over = true;
    document.title = "Deleted conversation · Allgone";
    history.replaceState(null, "", "/"); // nothing leads back to the dead page
  });

  const drawer = $("sidebar");
  const isDrawer = () => drawer.matches(":popover-open");
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || dialog.open || !isDrawer()) return;
    drawer.hidePopover();
    $("drawer-button")?.focus();
  });
  document.addEventListener("pointerdown", (event) => {
    if (isDrawer() && !dialog.open && !drawer.contains(event.target) && !event.target.closest("#drawer-button")) drawer.hidePopover();
  });
  drawer.addEventListener("toggle", (event) => {
    if (event.newState === "open") drawer.querySelector("a[aria-current], #history a, a")?.focus();
  });
  matchMedia("(min-width: 48rem)").addEventListener("change", () => isDrawer() && drawer.hidePopover());

  // A page that a browser kept alive behind another one may show what is deleted by now: show nothing, load again.
  window.addEventListener("pagehide", (event) => event.persisted && document.body.replaceChildren());
  window.addEventListener("pageshow", (event) => event.persisted && location.reload());

  // ---- begin -------------------------------------------------------------------------------------------------
  if ($("older")) watcher.observe($("older"));
  nav().querySelector("[aria-current]")?.scrollIntoView({ block: "center" });
  schedule();
  if (tellZone()) poll();
})();
