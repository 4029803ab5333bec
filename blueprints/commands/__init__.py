"""`flask --app app COMMAND`: how an operator at a terminal asks (PRODUCT.md 2).

Exit codes: 0 done, 1 refused (one line on standard error says why), 2 usage. `--json` prints one document.
"""

from __future__ import annotations

from flask import Flask

from blueprints.commands import accounts, engines, imports, store, tombstones

GROUPS = (engines.start, engines.database, accounts.user, accounts.token, imports.import_file)
STORE_GROUPS = (store.outbox_group, store.store_group, store.queues, tombstones.tombstones)


def register(app: Flask) -> None:
    """Adds every command to `flask --app app`."""
    for command in (*GROUPS, *STORE_GROUPS):
        app.cli.add_command(command)
