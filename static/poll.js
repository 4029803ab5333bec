/* When to ask whether the list changed, and what to tell the server that it shows: every 30 s while visible, and at
 * once on focus, return or reconnect. */
"use strict";
(() => {
  const { $ } = allgone;
  const poller = $("poll");
  let soon, next;

  function tellZone() {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (!zone || document.cookie.split("; ").includes(`tz=${zone}`)) return false;
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `tz=${zone}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
    return true;
  }

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

  allgone.poll = poll;
  schedule();
  if (tellZone()) poll();
})();
