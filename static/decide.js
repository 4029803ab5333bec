/* The forms within a transcript: an approval is decided and a run is stopped in place, each once, without leaving. */
"use strict";
(() => {
  const { $, tell, announce } = allgone;

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("form.decide, form.stop")) return;
    event.preventDefault();
    if (form.classList.contains("sent")) return;
    form.classList.add("sent");
    const body = new FormData(form, event.submitter);
    for (const button of form.querySelectorAll("button")) button.setAttribute("aria-disabled", "true");
    let answer;
    try {
      answer = await fetch(form.action, { method: "POST", body, headers: { "HX-Request": "true", "HX-Current-URL": location.href } });
    } catch {
      return failed(form, "No answer came from the server, so it is not known whether this was done. Try again: doing it twice does no harm.");
    }
    const elsewhere = answer.headers.get("HX-Redirect");
    if (elsewhere) return location.assign(elsewhere);
    const told = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (form.matches(".decide")) decided(form, answer, told);
    else stopped(form, answer, told);
  });

  function decided(form, answer, told) {
    const card = told.querySelector(".approval");
    if (!card) return failed(form, told.body.textContent.trim() || `The server answered ${answer.status}. Nothing was decided.`);
    $(card.id).replaceWith(card);
    card.focus({ preventScroll: true });
    if (answer.ok) announce(card.querySelector("h2").textContent + ".");
    tell("news", { stamp: null });
  }

  function stopped(form, answer, told) {
    if (!answer.ok) return failed(form, told.body.textContent.trim() || `The server answered ${answer.status}. Nothing was stopped.`);
    $("state").focus({ preventScroll: true });
    announce("The run was asked to stop.");
    tell("news", { stamp: null });
  }

  function failed(form, text) {
    form.classList.remove("sent");
    for (const button of form.querySelectorAll("button")) button.removeAttribute("aria-disabled");
    const line = form.parentElement.querySelector(".problem");
    if (line) line.textContent = text;
    else announce(text);
  }
})();
