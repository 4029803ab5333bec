/* The open conversation's transcript: earlier and later parts as one scrolls, and what is new.
 *
 *   allgone:news    {stamp}   from live.js and decide.js: the conversation changed; what is new is asked for here
 *
 * Everything comes as HTML from one route, /part, and is put in once, by the number in its id: a hint that comes twice,
 * late or not at all costs a request, never a message. What is put in above moves nothing that is in view. The page
 * follows the end only for a reader who is at the end.
 */
"use strict";
(() => {
  const { $, openId } = allgone;
  const article = $("transcript");
  if (!article) return;
  const here = `/conversations/${openId}`;
  const events = $("events");
  const END = "9007199254740991"; // above every message: only how things stand
  const main = $("main");
  const scroller = () => (getComputedStyle(main).overflowY === "visible" ? document.scrollingElement : main);
  const isAtEnd = (box) => box.scrollHeight - box.scrollTop - box.clientHeight < 120;
  const toEnd = () => {
    const box = scroller();
    box.scrollTop = box.scrollHeight;
  };

  // ---- asking ------------------------------------------------------------------------------------------------
  async function ask(query) {
    const answer = await fetch(`${here}/part?${query}`, { headers: { "HX-Request": "true", "HX-Current-URL": location.href } });
    const elsewhere = answer.headers.get("HX-Redirect");
    if (elsewhere) location.assign(elsewhere);
    if (answer.status === 204) allgone.poll(); // it is gone: the list knows, and the notice of the deletion follows
    if (!answer.ok || answer.status === 204 || elsewhere) throw answer;
    const told = new DOMParser().parseFromString(await answer.text(), "text/html");
    allgone.dress(told);
    return { doc: told, state: told.getElementById("told").dataset };
  }

  /** The told things that are not here yet. */
  const fresh = (told) => [...told.doc.getElementById("told-events").children].filter((node) => !$(node.id));

  // ---- up and down -------------------------------------------------------------------------------------------
  /** Changes what is above or below the view without moving what is in it. */
  function keep(change) {
    const box = scroller();
    const mark = firstInView();
    const at = mark?.getBoundingClientRect().top;
    box.classList.add("held"); // the browser's own anchoring would do it a second time
    change();
    if (mark) box.scrollTop += mark.getBoundingClientRect().top - at;
    requestAnimationFrame(() => box.classList.remove("held"));
  }

  function firstInView() {
    const all = events.children;
    let [low, high] = [0, all.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (all[middle].getBoundingClientRect().bottom > 60) high = middle;
      else low = middle + 1;
    }
    return all[low];
  }

  const under = { earlier: false, later: false }; // way

  async function more(way) {
    const line = $(way);
    const link = line?.querySelector("a");
    if (!link || under[way]) return;
    under[way] = true;
    line.classList.add("loading");
    try {
      const told = await ask(new URL(link.href).search.slice(1));
      const nodes = fresh(told);
      const focused = document.activeElement === link;
      if (way === "earlier") keep(() => events.prepend(...nodes));
      else events.append(...nodes);
      const on = way === "earlier" ? told.state.before : told.state.after;
      if (on) link.href = way === "earlier" ? `?before=${on}` : `?after=${on}`;
      else {
        keep(() => line.remove());
        if (focused) focusOn(way === "earlier" ? events.firstElementChild : nodes[0]);
        if (way === "later") article.dataset.last = told.state.last;
      }
      link.textContent = way === "earlier" ? "Show earlier messages" : "Show later messages";
      requestAnimationFrame(watch);
    } catch {
      link.textContent = "They could not be loaded. Try again";
    } finally {
      under[way] = false;
      line.classList.remove("loading");
    }
  }

  function focusOn(node) {
    if (!node) return;
    if (node.tabIndex < 0) node.tabIndex = -1;
    node.focus({ preventScroll: true });
  }

  let watcher;

  /** Looks anew which ends of the transcript are near: an observer tells only of changes. */
  function watch() {
    watcher?.disconnect();
    const box = scroller();
    watcher = new IntersectionObserver(
      (seen) => seen.forEach((one) => one.isIntersecting && more(one.target.id)),
      { root: box === main ? main : null, rootMargin: "1200px 0px" },
    );
    for (const way of ["earlier", "later"]) if ($(way)) watcher.observe($(way));
  }

  article.addEventListener("click", (event) => {
    const way = event.target.closest("#earlier a, #later a[href^='?']")?.parentElement.id;
    if (!way) return;
    event.preventDefault();
    more(way);
  });

  // ---- news --------------------------------------------------------------------------------------------------
  let asking = false;
  let wanted = null; // the stamp that was last heard of while an answer was under way

  document.addEventListener("allgone:news", ({ detail: { stamp } }) => catchUp(stamp));

  async function catchUp(stamp) {
    wanted = stamp ?? "";
    if (asking) return;
    asking = true;
    try {
      while (wanted !== null && wanted !== article.dataset.stamp) {
        wanted = null;
        const told = await ask(`after=${$("later") ? END : article.dataset.last}`);
        takeIn(told);
        if (told.state.after) wanted = ""; // there is more of it
        else if (wanted !== null) await new Promise((go) => setTimeout(go, 100));
      }
    } catch (fault) {
      if (fault.status !== 204) setTimeout(catchUp, 5000, ""); // no hint comes twice, so this one is not forgotten
    } finally {
      asking = false;
    }
  }

  function takeIn(told) {
    const box = scroller();
    const atEnd = isAtEnd(box);
    const nodes = fresh(told);
    for (const node of told.doc.getElementById("told-updates").children) update(node);
    if (nodes.length && $("nothing")) $("nothing").remove();
    for (const node of nodes) joinFold(node) || events.append(node);
    refresh("state", told.doc);
    keep(() => refresh("beside", told.doc));
    if (!$("later")) article.dataset.last = told.state.after || told.state.last;
    const isNews = nodes.length > 0 || ($("later") && told.state.stamp.split(".")[0] !== article.dataset.stamp.split(".")[0]);
    article.dataset.stamp = told.state.stamp;
    if (atEnd && !$("later")) toEnd();
    else if (isNews) $("fresh").hidden = false;
    say(nodes);
  }

  /** What a sub-agent does next goes into the fold that is open at the end. */
  function joinFold(node) {
    const last = events.lastElementChild;
    if (!node.matches(".nested") || !last?.matches(".nested")) return false;
    const inner = [...node.querySelector(".inner").children].filter((one) => !$(one.id));
    last.querySelector(".inner").append(...inner);
    last.querySelector(".count").textContent = last.querySelector(".inner").children.length;
    return true;
  }

  /** A tool that got its result, an approval that was decided: in place, as open as it was. */
  function update(node) {
    const call = node.dataset.call;
    const have = call === undefined ? $(node.id) : [...events.querySelectorAll("[data-call]")].find((one) => one.dataset.call === call);
    if (!have || have.className + bare(have) === node.className + bare(node)) return;
    if (node.dataset.approval && have.className === node.className) return; // as decided here; it may say more
    const focused = have.contains(document.activeElement);
    have.className = node.className;
    have.replaceChildren(...node.childNodes);
    if (focused) (have.querySelector("summary") && call !== undefined ? have.querySelector("summary") : have).focus({ preventScroll: true });
  }

  const bare = (node) => node.innerHTML.replace(/name="csrf_token" value="[^"]*"/g, "");

  function refresh(id, doc) {
    const [have, want] = [$(id), doc.getElementById(id)];
    for (const fold of have.querySelectorAll("details[open]")) if (fold.id) want.querySelector(`#${fold.id}`)?.setAttribute("open", "");
    if (have.className + bare(have) === want.className + bare(want)) return;
    const active = have.contains(document.activeElement) ? document.activeElement : null;
    const near = active?.closest("[id]")?.id;
    have.replaceWith(want);
    if (!active) return;
    const place = $(near) ?? want;
    focusOn(place.querySelector(active.localName) ?? place.querySelector("summary") ?? place);
  }

  // Said once for a burst, not for each piece of it; a whole message is read when its reader goes there.
  let soon;
  const heard = [];

  function say(nodes) {
    for (const node of nodes) {
      if (node.matches(".message")) heard.push(node.querySelector("h2").textContent);
      if (node.matches(".approval.pending")) heard.push("approval");
    }
    if (!heard.length) return;
    clearTimeout(soon);
    soon = setTimeout(() => {
      const asked = heard.includes("approval");
      const who = heard.filter((one) => one !== "approval");
      const said = who.length > 1 ? `${who.length} new messages.` : who.length ? `New message from ${who[0]}.` : "";
      const line = $("heard");
      if (line) line.textContent = `${said}${asked ? " Something waits for your approval." : ""}`.trim();
      heard.length = 0;
    }, 1500);
  }

  $("fresh").addEventListener("click", (event) => {
    if ($("later")) return; // the newest part is a page of its own
    event.preventDefault();
    $("fresh").hidden = true;
    toEnd();
    focusOn(events.lastElementChild);
  });

  const scrolled = () => {
    const fresh = $("fresh"); // not there any more when the conversation was deleted and the page says so
    if (fresh && !fresh.hidden && !$("later") && isAtEnd(scroller())) fresh.hidden = true;
  };
  main.addEventListener("scroll", scrolled, { passive: true });
  document.addEventListener("scroll", scrolled, { passive: true });

  // ---- jumping -----------------------------------------------------------------------------------------------
  function goTo(node) {
    for (let fold = node.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    node.scrollIntoView({ block: "center" });
    focusOn(node);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.jump");
    const node = link && $(`e-${link.dataset.seq}`);
    if (!node) return;
    event.preventDefault();
    goTo(node);
  });

  // ---- what a search found ----------------------------------------------------------------------------------
  /** Marks the words in the message without touching it, and goes to the first of them. */
  function markWords(node, words) {
    if (!node || !words.length || !window.Highlight) return;
    const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&"));
    const UNSPACED = /^[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/u;
    // At the beginning of a word; scripts that write no spaces have none.
    const any = escaped.sort((a, b) => b.length - a.length).map((word) => (UNSPACED.test(word) ? word : `(?<![\\p{L}\\p{M}\\p{N}])${word}`));
    const spoken = new RegExp(any.join("|"), "gu");
    const walker = document.createTreeWalker(node.querySelector(".prose") ?? node, NodeFilter.SHOW_TEXT);
    const ranges = [];
    while (walker.nextNode()) {
      for (const match of walker.currentNode.data.matchAll(spoken)) {
        const range = new Range();
        range.setStart(walker.currentNode, match.index);
        range.setEnd(walker.currentNode, match.index + match[0].length);
        ranges.push(range);
      }
    }
    if (!ranges.length) return;
    CSS.highlights.set("found", new Highlight(...ranges));
    const go = () => {
      const seen = ranges[0].getBoundingClientRect();
      if (seen.top < 80 || seen.bottom > innerHeight - 80) scroller().scrollTop += seen.top - innerHeight / 3;
    };
    go();
    // Until it has loaded, the browser goes to the message that the address names, and that may be a long one.
    if (document.readyState !== "complete") addEventListener("load", () => requestAnimationFrame(go), { once: true });
  }

  // ---- begin -------------------------------------------------------------------------------------------------
  history.scrollRestoration = "manual";
  if (article.dataset.at) {
    const node = $(`e-${article.dataset.at}`);
    goTo(node);
    if (article.dataset.said) markWords(node, JSON.parse(article.dataset.said));
  } else if (!location.hash && !location.search) toEnd();
  watch();
  matchMedia("(min-width: 48rem)").addEventListener("change", watch);
})();
