/* The drawer of a small screen: the sidebar as a popover over the page. The button that opens it needs no script. */
"use strict";
(() => {
  const { $ } = allgone;
  const drawer = $("sidebar");
  const isOpen = () => drawer.matches(":popover-open");
  const isCovered = () => document.querySelector("dialog[open]");

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || isCovered() || !isOpen()) return;
    drawer.hidePopover();
    $("drawer-button")?.focus();
  });
  document.addEventListener("pointerdown", (event) => {
    if (isOpen() && !isCovered() && !drawer.contains(event.target) && !event.target.closest("#drawer-button")) drawer.hidePopover();
  });
  drawer.addEventListener("toggle", (event) => {
    if (event.newState === "open") drawer.querySelector("a[aria-current], #history a, a")?.focus();
  });
  matchMedia("(min-width: 48rem)").addEventListener("change", () => isOpen() && drawer.hidePopover());
})();
