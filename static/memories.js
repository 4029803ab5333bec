/* The memories formed in the open conversation: each is deleted by its own question, and the focus goes to its neighbour. */
"use strict";
(() => {
  const { $, tell, announce } = allgone;
  const dialog = $("memory-dialog");
  if (!dialog) return;
  const UNKNOWN = "No answer came from the server, so it is not known whether this was done. Check your connection and try again: deleting twice does no harm.";
  let opener = null; // the button that asked
  let neighbour = null; // the id of the row that takes the focus when this one goes

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches(".memories form")) {
      event.preventDefault();
      ask(form);
    } else if (form.id === "forget-form") {
      event.preventDefault();
      forget(form);
    }
  });

  async function told(address, options = {}) {
    const answer = await fetch(address, { ...options, headers: { "HX-Request": "true", "HX-Current-URL": location.href } });
    const elsewhere = answer.headers.get("HX-Redirect");
    if (elsewhere) location.assign(elsewhere);
    return { answer, doc: new DOMParser().parseFromString(await answer.text(), "text/html") };
  }

  async function ask(form) {
    const row = form.closest("li");
    opener = form.querySelector("button");
    neighbour = (row.nextElementSibling ?? row.previousElementSibling)?.id ?? null;
    try {
      const { answer, doc } = await told(form.action);
      if (!answer.ok) return announce(doc.body.textContent.trim());
      dialog.replaceChildren(...doc.body.childNodes);
      dialog.showModal();
      $("forget-cancel").focus();
    } catch {
      announce("No answer came from the server. Nothing was deleted; check your connection and try again.");
    }
  }

  async function forget(form) {
    if (form.classList.contains("sent")) return;
    form.classList.add("sent");
    try {
      const { answer, doc } = await told(form.action, { method: "POST", body: new FormData(form) });
      if (answer.status === 404) problem("This memory is not there any more: it was deleted elsewhere.");
      else if (!answer.ok) problem(doc.body.textContent.trim() || `The server answered ${answer.status}. Nothing was deleted.`);
      else gone(doc);
    } catch {
      problem(UNKNOWN);
    }
    form.classList.remove("sent");
  }

  function problem(text) {
    if ($("forget-problem")) $("forget-problem").textContent = text;
  }

  function gone(doc) {
    const wasOpen = $("memories")?.open;
    opener = null;
    dialog.close();
    $("beside").replaceWith(doc.getElementById("beside"));
    if ($("memories")) $("memories").open = wasOpen;
    const next = (neighbour && $(neighbour)?.querySelector("button")) || $("memories")?.querySelector("button") || $("main");
    next.focus({ preventScroll: next === $("main") });
    announce("Memory deleted.");
    tell("news", { stamp: null });
  }

  dialog.addEventListener("close", () => {
    dialog.replaceChildren(); // it holds the memory's words
    if (opener?.isConnected) opener.focus();
    opener = null;
  });
})();
