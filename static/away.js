/* When the server does not answer, or the browser has no connection: says so, and what is safe; tries again by itself. */
"use strict";
(() => {
  const { $, announce } = allgone;
  const words = $("away-words");
  const again = $("away-again");
  const WAITS = [5, 10, 20, 30]; // seconds until the next attempt, the last one for good
  let answered = new Date(); // when the server last answered
  let failures = 0;
  let leaving = false;
  let timer;

  function lost() {
    if (leaving) return;
    const what = navigator.onLine ? "The server does not answer." : "No connection.";
    const at = answered.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
    say(`${what} What you see is as it was at ${at}, and nothing is lost. Allgone tries again by itself.`);
    clearTimeout(timer);
    timer = setTimeout(attempt, WAITS[Math.min(failures++, WAITS.length - 1)] * 1000);
  }

  function attempt() {
    if (document.visibilityState === "visible") allgone.poll(); // a hidden page asks when it is seen again
  }

  function found() {
    answered = new Date();
    if (!failures) return;
    failures = 0;
    clearTimeout(timer);
    if (document.activeElement === again) $("main").focus();
    say("");
    announce("Connected again.");
    allgone.tell("back");
  }

  function say(text) {
    if (words.textContent !== text) words.textContent = text;
    again.hidden = !text;
  }

  const isPoll = (ctx) => ctx?.sourceElement?.id === "poll";
  document.addEventListener("htmx:after:request", ({ detail: { ctx } }) => {
    if (isPoll(ctx)) ctx.response.status < 500 ? found() : lost();
  });
  document.addEventListener("htmx:error", ({ detail: { ctx } }) => isPoll(ctx) && !ctx.response && lost());
  window.addEventListener("offline", lost);
  window.addEventListener("beforeunload", () => (leaving = true)); // what it breaks off did not fail
  again.addEventListener("click", () => allgone.poll());
})();
