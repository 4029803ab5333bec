/* Whether the open conversation has news: one stream of hints while the page is in view, and none while it is not.
 *
 * The browser comes back by itself when a stream breaks; the server then says at once whether anything changed. Where
 * it can give no stream, it says so and is asked again every half minute. A connection that died in silence is noticed
 * by the beats that stay away. Signed out, or the conversation gone: the stream ends, and the list is asked, which
 * knows what to do.
 */
"use strict";
(() => {
  const { $, openId, tell } = allgone;
  const article = $("transcript");
  if (!article) return;
  const BEAT = 40_000; // without a word for so long, a stream is dead; the server says one every 15 s
  const ASKED = 75_000; // the same where we ask every half minute
  const AWAY = 5_000; // out of view for so long, the stream is closed; broken for so long, the reader is told
  const AGAIN = 10_000;
  let source = null;
  let heardAt = 0;
  let isAsked = false;
  let isOver = false;
  let broken, hidden, again;

  function open() {
    if (source || isOver || document.visibilityState !== "visible") return;
    clearTimeout(again);
    heardAt = Date.now();
    source = new EventSource(`/conversations/${openId}/live?seen=${encodeURIComponent(article.dataset.stamp)}`);
    source.addEventListener("open", hears);
    source.addEventListener("beat", hears);
    source.addEventListener("later", () => (isAsked = true));
    source.addEventListener("news", ({ data }) => {
      hears();
      if (data !== article.dataset.stamp) tell("news", { stamp: data });
    });
    source.addEventListener("session_deleted", () => {
      isOver = true;
      close();
      allgone.poll();
    });
    source.addEventListener("error", () => {
      if (source.readyState !== EventSource.CLOSED) {
        if (!isAsked) broken ??= setTimeout(gap, AWAY, true);
        return;
      }
      close();
      allgone.poll();
      again = setTimeout(open, AGAIN);
    });
  }

  function close() {
    source?.close();
    source = null;
    clearTimeout(broken);
    broken = undefined;
  }

  function hears() {
    heardAt = Date.now();
    clearTimeout(broken);
    broken = undefined;
    gap(false);
  }

  function gap(isOpen) {
    const line = $("gap");
    if (!line || line.hidden === !isOpen) return;
    line.hidden = !isOpen;
    line.textContent = isOpen ? "The connection is interrupted. New messages will appear when it is back." : "";
  }

  setInterval(() => {
    if (!source || Date.now() - heardAt < (isAsked ? ASKED : BEAT)) return;
    gap(true);
    close();
    open();
  }, 5_000);

  document.addEventListener("visibilitychange", () => {
    clearTimeout(hidden);
    if (document.visibilityState === "visible") open();
    else hidden = setTimeout(close, AWAY);
  });
  window.addEventListener("online", () => {
    close();
    open();
  });
  window.addEventListener("offline", () => gap(true));
  window.addEventListener("pagehide", close);
  document.addEventListener("htmx:before:swap", ({ detail: { ctx } }) => {
    if (ctx.sourceElement?.id !== "standing" || ctx.response.status !== 200) return;
    isOver = true; // the notice of a deletion takes the page's place
    close();
  });

  open();
})();
