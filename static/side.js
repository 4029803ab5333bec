/* The sidebar: on a small screen a drawer over the page (the button that opens it needs no script), on a large one
 * folded away on request. Folded is a cookie, so that the server draws the next page as this one was left. */
"use strict";
(() => {
  const { $ } = allgone;
  const side = $("sidebar");
  const small = matchMedia("(max-width: 47.99rem)");
  const isDrawer = () => small.matches && !document.body.classList.contains("history-page");
  const isOpen = () => side.matches(":popover-open");
  const isFolded = () => document.body.classList.contains("folded");
  const isCovered = () => document.querySelector("dialog[open]");
  const opener = () => $("drawer-button");

  function fold(folded) {
    document.body.classList.toggle("folded", folded);
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `side=folded; Path=/; Max-Age=${folded ? 31536000 : 0}; SameSite=Lax${secure}`;
    if (folded) opener()?.focus();
    else enter();
  }

  /** The focus into the list, or into what was found in its place: to the open conversation's row, else the first. */
  function enter() {
    const isSeen = (one) => one.getClientRects().length;
    const wanted = ["li a[aria-current]", "li a", "a"].map((one) => [...side.querySelectorAll(one)].find(isSeen));
    wanted.find(Boolean).focus();
  }

  /** Makes the sidebar visible, wherever it is now. */
  function show() {
    if (isDrawer()) isOpen() || side.showPopover();
    else if (isFolded()) fold(false);
  }

  function hide() {
    if (isOpen()) {
      side.hidePopover();
      opener()?.focus();
    } else if (!small.matches && !isFolded()) fold(true);
  }

  document.addEventListener("click", (event) => {
    if (event.target.closest("#fold-button")) hide();
    if (event.target.closest("#drawer-button") && !isDrawer()) {
      event.preventDefault(); // it is no drawer here
      show();
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.shiftKey && !event.defaultPrevented && !isCovered() && isOpen()) hide();
  });
  document.addEventListener("pointerdown", (event) => {
    if (isOpen() && !isCovered() && !side.contains(event.target) && !event.target.closest("#drawer-button")) side.hidePopover();
  });
  // What the drawer covers is out of reach for keys and screen readers too, until right before it closes; the page keeps
  // its heading.
  side.addEventListener("beforetoggle", (event) => {
    for (const part of document.querySelectorAll("#main > :not(.bar), #main > .bar > :not(h1)")) part.inert = event.newState === "open";
  });
  side.addEventListener("toggle", (event) => event.newState === "open" && enter());
  small.addEventListener("change", () => isOpen() && side.hidePopover());
  $("fold-button").hidden = false;

  allgone.side = { show, enter };
  allgone.shortcut({
    keys: "mod+shift+s",
    group: "Anywhere",
    says: "Show or hide the sidebar",
    typing: true,
    run: () => ((isDrawer() ? isOpen() : !isFolded()) ? hide() : show()),
  });
  allgone.shortcut({
    keys: "shift+escape",
    group: "Anywhere",
    says: "Go from the list to the page, and back",
    typing: true,
    run() {
      if (!side.contains(document.activeElement)) {
        show();
        enter();
      } else if (isOpen()) hide();
      else $("main").focus();
    },
  });
})();
