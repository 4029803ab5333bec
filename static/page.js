/* The page beside the list: whether its conversation still stands, that no browser shows an old page again, and copying. */
"use strict";
(() => {
  const { $, openId, announce } = allgone;
  let over = !openId; // the open conversation was found to be gone, or there is none

  function checkStanding() {
    if (over || $(`c-${openId}`)) return;
    htmx.ajax("GET", `/conversations/${openId}/standing`, { source: "#standing", target: "#main", swap: "innerHTML" });
  }

  document.addEventListener("allgone:listed", ({ detail: { more } }) => more || checkStanding());
  document.addEventListener("allgone:forgotten", ({ detail: { id } }) => id === openId && checkStanding());

  document.addEventListener("htmx:before:swap", ({ detail: { ctx } }) => {
    if (ctx.sourceElement?.id !== "standing" || ctx.response.status !== 200) return;
    over = true;
    document.title = "Deleted conversation · Allgone";
    history.replaceState(null, "", "/"); // nothing leads back to the dead page
  });

  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
    if (ctx.sourceElement?.id === "standing" && document.activeElement === document.body) $("main").focus();
  });

  // A page that a browser kept alive behind another one may show what is deleted by now: show nothing, load again.
  window.addEventListener("pagehide", (event) => event.persisted && document.body.replaceChildren());
  window.addEventListener("pageshow", (event) => event.persisted && location.reload());

  /** Puts a text on the clipboard; over plain http the browser has none for us, and `source` is selected instead. */
  async function copy(text, source) {
    try {
      await navigator.clipboard.writeText(text);
      announce("Copied.");
    } catch {
      if (source.select) source.select();
      else getSelection().selectAllChildren(source);
      announce("Selected. Copy it with your keyboard or the menu of your browser.");
    }
  }

  document.addEventListener("click", (event) => {
    const source = $(event.target.closest("[data-copy]")?.dataset.copy);
    if (source) copy(source.value ?? source.textContent, source);
  });

  /** What one reads in it, without what its buttons say. */
  function words(source) {
    const buttons = [...source.querySelectorAll("button:not([hidden])")];
    for (const one of buttons) one.hidden = true;
    const text = source.innerText;
    for (const one of buttons) one.hidden = false;
    return text.trim();
  }

  const last = (selector) => [...$("main").querySelectorAll(selector)].at(-1);
  const copies = (keys, says, selector) =>
    allgone.shortcut({ keys, says, group: "In a conversation", when: () => last(selector), run: () => copy(words(last(selector)), last(selector)) });
  copies("mod+shift+;", "Copy the last block of code", "pre.code code");
  copies("mod+shift+c", "Copy the last answer", ".message.assistant .prose");

  allgone.copy = copy;
})();
