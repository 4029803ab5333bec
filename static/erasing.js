/* What is left after a deletion: how many files still have bytes, until all are erased. Asked for while some are, each
 * time later than before; several deletions in a row are told as one. */
"use strict";
(() => {
  const { $, announce } = allgone;
  const line = $("erasing");
  const FIRST = 1000;
  const LAST = 30_000; // milliseconds between two questions
  let since = null;
  let again, wait;

  const files = (number) => `${number.toLocaleString("en")} file${number === 1 ? "" : "s"}`;

  function show(owed, blocked) {
    const waits = blocked === owed;
    line.hidden = false;
    line.classList.toggle("blocked", waits);
    line.firstElementChild.textContent = waits
      ? `${files(blocked)} can't be erased until an operator acts. `
      : `${files(owed)} still being erased. `;
  }

  function over() {
    clearTimeout(again);
    since = null;
    line.hidden = true;
  }

  async function look() {
    clearTimeout(again);
    if (!since) return;
    if (document.visibilityState === "visible") {
      try {
        const answer = await fetch(`/deletions/progress?${new URLSearchParams({ since })}`, { headers: { "HX-Request": "true" } });
        if (answer.headers.get("HX-Redirect") || answer.status === 400) return over();
        if (answer.ok) {
          const { owed, blocked } = await answer.json();
          if (!owed) {
            over();
            announce("All erased: no file is left.");
            return;
          }
          show(owed, blocked);
        }
      } catch {
        // Asked again: the rows are safe in the outbox.
      }
    }
    wait = Math.min(wait * 1.5, LAST);
    again = setTimeout(look, wait);
  }

  document.addEventListener("allgone:deleted", ({ detail }) => {
    if (!detail.owed || !detail.since) return;
    if (!since || detail.since < since) since = detail.since;
    wait = FIRST;
    show(detail.owed, 0);
    clearTimeout(again);
    again = setTimeout(look, wait);
  });
  document.addEventListener("visibilitychange", () => since && document.visibilityState === "visible" && look());
})();
