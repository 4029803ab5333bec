/* The Import page: sending a file with its progress in sight, watching an import, and the question before an undo.
 *
 * Without this script the form posts, the page of an import is looked at again by a link, and the question is a page.
 */
"use strict";
(() => {
  const { $, announce } = allgone;

  // ---- sending a file ----------------------------------------------------------------------------------------
  const form = $("import-form");
  const sending = $("import-sending");
  let request = null;

  /** Bytes in words, as the server writes them. */
  function size(count) {
    const units = ["bytes", "kB", "MB", "GB"];
    let at = 0;
    for (; count >= 1000 && at < units.length - 1; at++) count /= 1000;
    return `${at ? count.toFixed(count < 99.95 ? 1 : 0) : count} ${units[at]}`;
  }

  if (form) {
    const input = form.elements.file;
    const zone = input.closest(".drop");
    // The file begins at once when it is chosen, as the hint says, so that no second button has to be found.
    form.querySelector("button[type=submit]").hidden = true;
    input.addEventListener("change", () => input.files.length && send());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (input.files.length) send();
    });
    for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, () => zone.classList.add("over"));
    for (const name of ["dragleave", "drop"]) zone.addEventListener(name, () => zone.classList.remove("over"));
    // A file that misses the zone must not replace the page.
    for (const name of ["dragover", "drop"]) {
      window.addEventListener(name, (event) => event.target.closest?.(".drop") || event.preventDefault());
    }
    window.addEventListener("beforeunload", (event) => request && event.preventDefault());
    $("import-cancel").addEventListener("click", () => request?.abort());

    function send() {
      const [file] = input.files;
      if (!file.size) return refuse("This file is empty, so nothing was imported. Choose the file that the export gave you.");
      if (file.size > Number(form.dataset.max)) {
        return refuse(`This file has ${size(file.size)}, and this server takes ${size(Number(form.dataset.max))} at most. Nothing was sent. Some exports can be asked for in parts; whoever runs this server can raise the bound, or import the file by the command line.`);
      }
      refuse("");
      const data = new FormData(form);
      const sent = $("import-sent");
      const label = $("import-sent-label");
      request = new XMLHttpRequest();
      request.upload.addEventListener("progress", ({ loaded, total }) => {
        sent.value = (100 * loaded) / total;
        label.textContent = loaded < total ? `Sending ${file.name}: ${size(loaded)} of ${size(total)}` : `${file.name} was sent, and is being stored`;
      });
      request.addEventListener("loadend", () => {
        const { status } = request;
        const there = request.getResponseHeader("HX-Redirect");
        const told = new DOMParser().parseFromString(request.responseText, "text/html").body.textContent.trim();
        const given_up = request.givenUp;
        request = null;
        if (there) return location.assign(there);
        show(false);
        form.reset();
        if (given_up) return announce("Cancelled. Nothing was imported.");
        if (status) return refuse(told || `The server answered ${status}. Nothing was imported.`);
        refuse("The connection broke off before the file had arrived. Nothing was imported, and nothing here was changed. Check your connection, then choose the file again.");
      });
      request.addEventListener("abort", () => (request.givenUp = true));
      request.open("POST", form.action);
      request.setRequestHeader("HX-Request", "true");
      label.textContent = `Sending ${file.name}`;
      sent.value = 0;
      show(true);
      request.send(data);
    }

    function show(under_way) {
      form.hidden = under_way;
      sending.hidden = !under_way;
      if (under_way) $("import-cancel").focus();
      else input.focus();
    }

    /** Says under the zone why nothing was sent or taken; "" takes it back. */
    function refuse(text) {
      $("w-file")?.remove();
      zone.classList.toggle("wrong", Boolean(text));
      input.setAttribute("aria-describedby", text ? "w-file h-file" : "h-file");
      if (!text) return input.removeAttribute("aria-invalid");
      const fault = document.createElement("p");
      Object.assign(fault, { id: "w-file", className: "fault", textContent: text });
      fault.setAttribute("role", "alert");
      zone.append(fault);
      input.setAttribute("aria-invalid", "true");
      form.reset();
    }
  }

  // ---- watching an import ------------------------------------------------------------------------------------
  const live = () => $("import-live");

  function tick() {
    if (live()?.hasAttribute("data-live") && document.visibilityState === "visible") htmx.trigger(live(), "tick");
  }

  if (live()) {
    setTimeout(tick, 300); // a small file is through by then
    setInterval(tick, 1000);
    document.addEventListener("visibilitychange", tick);
    let { state, imported } = live().dataset;

    document.addEventListener("htmx:after:swap", () => {
      const now = live().dataset;
      if (now.imported !== imported || now.state !== state) allgone.poll(); // the list shows what came in
      if (now.state !== state && now.said) {
        announce(now.said);
        // The button that had the focus is gone with what it stopped.
        if (document.activeElement === document.body) $("import-state").focus();
      }
      ({ state, imported } = now);
    });
  }

  // ---- the question before an undo ---------------------------------------------------------------------------
  const dialog = $("undo-dialog");

  document.addEventListener("click", (event) => {
    const link = event.target.closest("#undo-open");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    htmx.ajax("GET", link.getAttribute("href"), { source: dialog, target: "#undo-body", swap: "innerHTML" }).then(() => {
      if (!$("undo-cancel")) return location.assign(link.href); // it was refused: the page says why
      if (!dialog.open) dialog.showModal();
      $("undo-cancel").focus();
    });
  });
  dialog?.addEventListener("close", () => $("undo-open")?.focus());
})();
