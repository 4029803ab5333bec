/* Code that can be copied, and texts that unfold: what a transcript gains where scripts run.
 *
 *   allgone.dress(root)   gives each block of code in `root` its button; talk.js calls it for what it puts in
 */
"use strict";
(() => {
  const { $, announce } = allgone;

  allgone.dress = (root) => {
    for (const code of root.querySelectorAll(".prose pre.code, .tool pre.code")) {
      if (code.parentElement.matches(".block")) continue;
      const block = document.createElement("div");
      block.className = "block";
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      code.replaceWith(block);
      block.append(code, button);
    }
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const code = button.parentElement.querySelector("pre");
    try {
      await navigator.clipboard.writeText(code.textContent);
      announce("Copied.");
    } catch {
      getSelection().selectAllChildren(code); // over plain http the browser has no clipboard for us
      announce("Selected. Copy it with your keyboard or the menu of your browser.");
    }
  });

  // A file's text is asked for when its fold is opened first. The event does not bubble, so it is caught on its way.
  document.addEventListener("toggle", async (event) => {
    const fold = event.target;
    if (!fold.open || !fold.dataset.text || fold.dataset.asked) return;
    fold.dataset.asked = "yes";
    const line = fold.querySelector(".whole");
    try {
      const answer = await fetch(fold.dataset.text, { headers: { "HX-Request": "true", "HX-Current-URL": location.href } });
      if (!answer.ok || answer.headers.get("HX-Redirect")) throw answer;
      const told = new DOMParser().parseFromString(await answer.text(), "text/html");
      fold.append(...told.body.childNodes);
      line.remove();
    } catch {
      delete fold.dataset.asked;
      line.textContent = "It could not be loaded. Show as text";
    }
  }, true);

  if ($("transcript")) allgone.dress($("transcript"));
})();
