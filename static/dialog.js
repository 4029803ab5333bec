/* The question before a deletion: opened, told what went wrong, closed; and where the focus goes with it.
 *
 * A button of the form `ask` opens it for the address in its `formaction`; other scripts call `allgone.ask`.
 */
"use strict";
(() => {
  const { $ } = allgone;
  const dialog = $("delete-dialog");
  const question = $("delete-body");
  let asked = null; // the conversation that the dialog is about
  let opener = null;
  let slow; // until something is shown although no answer has come
  const PATIENCE = 250; // ms

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[form=ask]");
    if (button) {
      event.preventDefault();
      ask(button.getAttribute("formaction"), button);
    } else {
      event.target.closest("[data-close]")?.closest("dialog")?.close();
    }
  });

  /** Opens the question at `address`; the focus comes back to `button` unless what it stands for is gone. */
  function ask(address, button) {
    opener = button;
    asked = address.split("/")[2];
    clearTimeout(slow);
    slow = setTimeout(wait, PATIENCE);
    htmx.ajax("GET", address, { source: dialog, target: question, swap: "innerHTML" });
  }

  function show() {
    if (!dialog.open) dialog.showModal();
    if (!dialog.contains(document.activeElement)) $("delete-cancel")?.focus();
  }

  function wait() {
    question.replaceChildren($("waiting-template").content.cloneNode(true));
    show();
  }

  dialog.addEventListener("close", () => {
    clearTimeout(slow);
    question.replaceChildren(); // it names a title, and may hold a watch over a run
    asked = null;
    if (opener?.isConnected && opener.getClientRects().length) opener.focus();
    opener = null;
  });

  const inDialog = (ctx) => dialog === ctx.sourceElement || dialog.contains(ctx.sourceElement);

  // An answer that comes after the dialog was closed, or after it was opened about another conversation, is not shown.
  document.addEventListener("htmx:after:request", (event) => {
    const { ctx } = event.detail;
    if (!inDialog(ctx) || ctx.request.method !== "GET") return;
    if (asked !== null && ctx.request.action.split("/")[2] === asked) clearTimeout(slow);
    else event.preventDefault();
  });

  document.addEventListener("htmx:after:swap", (event) => {
    const { ctx } = event.detail;
    const target = typeof ctx.target === "string" ? document.querySelector(ctx.target) : ctx.target;
    if (target !== question || ctx.swap === "none" || asked === null) return;
    show();
    if (document.activeElement === dialog || document.activeElement === document.body) $("delete-cancel")?.focus();
  });

  /** Says in the dialog what went wrong. What was asked for was not done, or it is not known. `way` is a button more. */
  function problem(text, way) {
    if (!question.querySelector("#delete-problem")) question.replaceChildren($("problem-template").content.cloneNode(true));
    show();
    $("delete-problem").textContent = text;
    $("delete-way")?.remove();
    if (!way) return;
    const button = Object.assign(document.createElement("button"), { id: "delete-way", type: "button", textContent: way.says });
    button.addEventListener("click", way.run);
    question.querySelector(".actions").append(button);
  }

  /** Not even the question came, so this deleted nothing. */
  function unasked(again) {
    question.replaceChildren($("problem-template").content.cloneNode(true));
    $("delete-title").textContent = navigator.onLine ? "The server does not answer" : "You are offline";
    const until = navigator.onLine ? "once it answers" : "once you are connected";
    problem(`Nothing was deleted by this. Try again ${until}.`, { says: "Try again", run: again });
  }

  /** What a refusal says, and the button that it needs. */
  function refused(text, status) {
    const body = new DOMParser().parseFromString(text, "text/html").body;
    const way = body.querySelector("[data-reload]") && { says: "Load the page again", run: () => location.reload() };
    problem(body.textContent.trim() || `The server answered ${status}. Nothing was deleted.`, way);
  }

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
      allgone.list.forget(id, false);
      return;
    }
    refused(ctx.text, status);
  });

  document.addEventListener("htmx:error", ({ detail: { ctx } }) => {
    if (ctx && inDialog(ctx)) clearTimeout(slow);
    if (!ctx || ctx.response || !inDialog(ctx) || isWatch(ctx)) return;
    const { action, method } = ctx.request;
    if (method === "GET" && asked !== null) return unasked(() => ask(action, opener));
    problem("No answer came from the server, so it is not known whether this was done. Check your connection and try again: deleting twice does no harm.");
  });

  // Captured, so that the dialog is closed before the list gives the focus to a neighbour.
  document.addEventListener("allgone:deleted", () => {
    opener = null;
    if (dialog.open) dialog.close();
  }, true);

  allgone.ask = ask;
  allgone.dialog = { problem, refused, unasked };
  allgone.shortcut({
    keys: ["Delete", "Backspace"],
    group: "In the list",
    says: "Delete the conversation everywhere; asks first",
    within: "#sidebar li",
    run(event) {
      const row = event.target.closest("li");
      const button = row.querySelector("button[form=ask]");
      if (!button) return false;
      return ask(button.getAttribute("formaction"), row.querySelector("a"));
    },
  });
  allgone.shortcut({
    keys: "mod+shift+Backspace",
    group: "In a conversation",
    says: "Delete the open conversation everywhere; asks first",
    when: () => document.querySelector(`#main button[form=ask]`),
    run() {
      const button = document.querySelector(`#main button[form=ask]`);
      ask(button.getAttribute("formaction"), button);
    },
  });
})();
