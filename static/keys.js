/* Shortcuts: one list, filled by whoever has something to offer, which the handler obeys and the help sheet shows.
 *
 *   allgone.shortcut({ keys, group, says, run, within?, when?, typing?, repeat? })
 *
 *   keys     "mod+shift+s", "/" or several in a list. mod is Cmd on a Mac and Ctrl elsewhere
 *   group    the heading of the sheet under which it stands; `says` is its line there
 *   run      what it does; it is given the event. Only `false` leaves the key to the browser
 *   within   a selector: only while the focus is inside of it
 *   when     a function: only while it says yes; the sheet leaves out what is never possible here
 *   typing   also while somebody types into a field; what has no modifier never is
 *   repeat   also while the key is held down
 *
 * A key that is a character by itself can be switched off in the sheet (WCAG 2.2, 2.1.4), which the browser remembers.
 */
"use strict";
(() => {
  const { $ } = allgone;
  const apple = /Mac|iPhone|iPad/.test(navigator.userAgentData?.platform ?? navigator.platform);
  const OFF = "allgone.single-keys";
  const GROUPS = ["Anywhere", "In the list", "In a conversation"];
  const list = [];

  function remembered() {
    try {
      return localStorage.getItem(OFF);
    } catch {
      return null; // storage is switched off
    }
  }
  let singles = remembered() !== "off";

  function parsed(text) {
    const parts = text.toLowerCase().split(/\+(?=.)/);
    const key = parts.pop();
    return { key, mod: parts.includes("mod"), shift: parts.includes("shift"), single: key.length === 1 && !parts.length };
  }

  allgone.shortcut = (one) => list.push({ ...one, keys: [one.keys].flat().map(parsed) });

  // ---- the handler ---------------------------------------------------------------------------------------------
  const isField = (node) =>
    node instanceof Element && (node.isContentEditable || (node.matches("input, textarea, select") && !node.matches("[type=checkbox], [type=radio], [type=button], [type=submit]")));

  function matches(want, event) {
    const mod = apple ? event.metaKey : event.ctrlKey;
    const other = apple ? event.ctrlKey : event.metaKey;
    if (mod !== want.mod || other || event.altKey) return false;
    const key = event.key.toLowerCase();
    // A letter of another script stands for the Latin one on the same key.
    const letter = /^[a-z]$/.test(want.key) && !/^[\x00-\x7f]+$/.test(key) ? event.code.replace("Key", "").toLowerCase() : key;
    if (letter !== want.key) return false;
    // Which symbols need Shift differs from keyboard to keyboard.
    return event.shiftKey === want.shift || (want.key.length === 1 && !/[a-z]/.test(want.key));
  }

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.keyCode === 229) return;
    const open = document.querySelector("dialog[open]");
    if (open && open !== sheet) return;
    const typing = isField(event.target);
    for (const one of list) {
      if (open && one.run !== toggle) continue;
      if (event.repeat && !one.repeat) continue;
      const want = one.keys.find((keys) => matches(keys, event));
      if (!want || (want.single && !singles)) continue;
      if (typing && !(one.typing && (want.mod || want.shift))) continue;
      if (one.within && !event.target.closest?.(one.within)) continue;
      if (one.when && !one.when()) continue;
      if (one.run(event) === false) continue;
      event.preventDefault();
      return;
    }
  });

  // ---- the sheet -----------------------------------------------------------------------------------------------
  const sheet = $("keys-sheet");
  const NAMES = {
    mod: apple ? "Cmd" : "Ctrl", shift: "Shift", escape: "Esc", arrowdown: "↓", arrowup: "↑", home: "Home", end: "End",
    delete: "Delete", backspace: "Backspace", enter: "Enter",
  };

  const element = (name, ...children) => {
    const made = document.createElement(name);
    made.append(...children);
    return made;
  };
  const cap = (key) => element("kbd", NAMES[key] ?? key.toUpperCase());

  function written({ key, mod, shift }) {
    const caps = [mod && "mod", shift && "shift", key].filter(Boolean).map(cap);
    return caps.flatMap((one, at) => (at ? [" + ", one] : [one]));
  }

  function fill() {
    const groups = GROUPS.map((name) => [name, list.filter((one) => one.group === name && (!one.when || one.when()))]);
    $("keys-list").replaceChildren(
      ...groups.filter(([, ones]) => ones.length).map(([name, ones]) => {
        const rows = ones.map((one) => {
          const keys = one.keys.flatMap((want, at) => (at ? [" or ", ...written(want)] : written(want)));
          const row = element("div", element("dt", one.says), element("dd", ...keys));
          row.classList.toggle("off", !singles && one.keys.every((want) => want.single));
          return row;
        });
        return element("section", element("h3", name), element("dl", ...rows));
      }),
    );
    $("keys-single").checked = singles;
  }

  function toggle() {
    if (sheet.open) return sheet.close();
    fill();
    return sheet.showModal();
  }

  $("keys-single").addEventListener("change", (event) => {
    singles = event.target.checked;
    try {
      if (singles) localStorage.removeItem(OFF);
      else localStorage.setItem(OFF, "off");
    } catch {
      // Storage is switched off: it holds for this page.
    }
    fill();
  });

  const button = $("keys-button");
  button.hidden = false;
  button.addEventListener("click", toggle);
  sheet.addEventListener("click", (event) => event.target === sheet && sheet.close()); // beside it

  allgone.shortcut({ keys: ["?", "mod+/"], group: "Anywhere", says: "Show or hide this sheet", typing: true, run: toggle });

  const box = () => document.querySelector('#sidebar input[type="search"]');
  allgone.shortcut({
    keys: ["/", "mod+k"],
    group: "Anywhere",
    says: "Search your conversations",
    typing: true,
    when: box,
    run() {
      allgone.side.show();
      box().focus();
      box().select();
    },
  });
})();
