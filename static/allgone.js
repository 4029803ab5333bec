/* What the scripts of a page share: one small object, and these events of the document.
 *
 *   allgone:deleted    {id or ids, said, version,   from the server (HX-Trigger) or the select mode: gone everywhere;
 *                       since, owed}                `said` is announced, `owed` files still have bytes
 *   allgone:gone       {id}                         from the server: found to be gone already
 *   allgone:forgotten  {id, refocus}                from the list: the row is out, and never comes back into this tab
 *   allgone:found      {query}                      from the search: it shows what it found, or "" nothing any more
 *   allgone:listed     {more}                       from the list: an answer was taken in; `more`: one more page of it
 *   allgone:back       {}                           from away.js: the server answers again
 *
 * Each script is one concern (docs/design.md), deferred, in the order of layout.html, and asks the others for nothing
 * but what stands here: `openId`, `$`, `announce`, and what each adds under its own name (`poll`, `list`, `ask`).
 * Nothing is kept: no storage, no history snapshot.
 */
"use strict";
(() => {
  let quiet;

  window.allgone = {
    /** The id of the conversation that this page shows, or null. */
    openId: document.body.dataset.open || null,

    $: (id) => document.getElementById(id),

    /** Tells the other scripts what happened. */
    tell(name, detail) {
      document.dispatchEvent(new CustomEvent(`allgone:${name}`, { detail }));
    },

    /** Says something in the page's status line, for the eye and for a screen reader, and takes it back after 8 s; not
     * while the link to `more` is pointed at or has the focus. */
    announce(text, more) {
      const said = document.getElementById("said");
      clearTimeout(quiet);
      said.textContent = text;
      if (more) said.append(" ", Object.assign(document.createElement("a"), { href: more, textContent: "See deletions" }));
      const hush = () => {
        if (said.matches(":hover, :focus-within")) quiet = setTimeout(hush, 2000);
        else said.textContent = "";
      };
      quiet = setTimeout(hush, 8000);
    },
  };

  document.addEventListener("allgone:deleted", ({ detail: { said } }) => said && allgone.announce(said, "/deletions"));
})();
