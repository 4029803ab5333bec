/* The Account page: its questions in a dialog instead of a page of their own, and an address that says nothing twice. */
"use strict";
(() => {
  const { $ } = allgone;
  const dialog = $("question");
  let opener = null;

  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-ask]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    try {
      const answer = await fetch(link.href, { headers: { "HX-Request": "true", "HX-Current-URL": location.href } });
      if (!answer.ok || answer.headers.has("HX-Redirect")) throw new Error();
      const body = new DOMParser().parseFromString(await answer.text(), "text/html").body;
      dialog.replaceChildren(...body.childNodes);
      opener = link;
      dialog.showModal();
    } catch {
      location.assign(link.href); // the question as a page of its own, or why there is none
    }
  });

  dialog.addEventListener("close", () => {
    dialog.replaceChildren();
    opener?.focus();
    opener = null;
  });

  // What was just made takes the focus, so that it is read out.
  $("made")?.focus();
  // A reload, and a way back to here, load the page as it is then: they say nothing twice, and send no form again.
  if (location.search || location.pathname !== "/account") history.replaceState(null, "", `/account${location.hash}`);
})();
