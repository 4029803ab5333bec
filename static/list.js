/* The list of the history: taking a told list in, row by row, so that what did not change is not touched; its pages;
 * its rows and where the focus goes when one leaves.
 *
 * Two numbers order the answers. `shown` is the version that the page shows, and a poll sends it. `floor` is the newest
 * version that this tab heard of; an answer from before it is dropped, whenever it comes, and asked for again.
 */
"use strict";
(() => {
  const { $, openId, tell } = allgone;
  const nav = () => $("history");
  const LISTS = "#history, .found"; // what arrows walk through
  const deleted = new Set(); // ids deleted in this tab: they never come back
  let floor = shown();

  function shown() {
    return Number($("list-state")?.dataset.version ?? -1);
  }

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
      if (more) near($("older")); else allgone.poll();
      return [];
    }
    allgone.list.dress?.(told);
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

    standIn();
    if (active && active !== document.activeElement) {
      if (active.isConnected) active.focus({ preventScroll: true });
      else if (active === sentinel && first) focusRow(first);
      else if (neighbour) focusRow($(neighbour));
    }
    tell("listed", { more });
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

  /** The rows of the list that has the focus: the history, or what a search found. */
  const rowsHere = (event) => rowsOf(event.target.closest(LISTS));

  function step(by) {
    return (event) => {
      const rows = rowsHere(event);
      const to = rows.indexOf(event.target.closest("li")) + by;
      if (to === rows.length && nav().contains(event.target) && $("older")) $("older").focus();
      else focusRow(rows[Math.max(0, Math.min(to, rows.length - 1))]);
    };
  }

  const inList = { group: "In the list", within: `:is(${LISTS}) li` };
  allgone.shortcut({ ...inList, keys: "ArrowDown", says: "Next conversation", repeat: true, run: step(1) });
  allgone.shortcut({ ...inList, keys: "ArrowUp", says: "Previous conversation", repeat: true, run: step(-1) });
  allgone.shortcut({ ...inList, keys: "Home", says: "First conversation", run: (event) => focusRow(rowsHere(event)[0]) });
  allgone.shortcut({ ...inList, keys: "End", says: "Last of those loaded", run: (event) => focusRow(rowsHere(event).at(-1)) });

  /** What stands there when no row is left, and no further page that may have one. */
  function standIn() {
    if (!nav().querySelector("li, #older, #empty")) nav().replaceChildren($("empty-template").content.cloneNode(true));
  }

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
    standIn();
    if (!refocus) return;
    if (neighbour && neighbour.getClientRects().length) focusRow(neighbour);
    else ($("empty") ?? $("main")).focus();
  }

  /** A conversation is gone for certain: its row goes, and it never comes back into this tab. */
  function forget(id, refocus) {
    if (!id) return;
    deleted.add(id);
    dropRow(id, refocus);
    tell("forgotten", { id, refocus });
  }

  document.addEventListener("allgone:deleted", ({ detail: { id, ids = [id], version } }) => {
    floor = Math.max(floor, version);
    ids.forEach((one, at) => forget(one, at === ids.length - 1));
  });
  document.addEventListener("allgone:gone", ({ detail: { id } }) => forget(id, false));

  // A page of the list that was not answered is asked for again once somebody answers.
  document.addEventListener("allgone:back", () => {
    watcher.disconnect();
    if ($("older")) watcher.observe($("older"));
  });

  if ($("older")) watcher.observe($("older"));
  nav().querySelector("[aria-current]")?.scrollIntoView({ block: "center" });

  allgone.list = { rows: () => rowsOf(nav()), focusRow, forget };
})();
