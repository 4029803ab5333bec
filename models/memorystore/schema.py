"""The two files of a device, and how they come to be as this release needs them: one numbered path.

`memories.sqlite3` holds what is kept, `sync-deletions.sqlite3` what was deleted. Each step is written once and never
changed; a file that is further than the last step here belongs to a newer release and is refused. Deleted words are
overwritten in the file (`secure_delete`) and in the search index, whose own setting that is.
"""

from __future__ import annotations

from typing import Any

from models.errors import InvalidState

MEMORIES = (
    """
    CREATE TABLE memories (
        id INTEGER PRIMARY KEY,
        principal_id BLOB NOT NULL,
        workspace TEXT NOT NULL,
        dataset TEXT NOT NULL,
        key BLOB NOT NULL CHECK (length(key) = 32),
        logical_id BLOB NOT NULL CHECK (length(logical_id) = 16),
        text TEXT NOT NULL,
        words TEXT NOT NULL,
        source TEXT NOT NULL,
        made_at INTEGER NOT NULL,
        recorded_at INTEGER NOT NULL,
        recorded_device BLOB NOT NULL CHECK (length(recorded_device) = 16),
        UNIQUE (principal_id, workspace, dataset, key)
    );
    CREATE INDEX memories_logical_id ON memories (logical_id);
    CREATE TABLE deletions_finished (ticket BLOB PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE workspaces (
        principal_id BLOB NOT NULL, name TEXT NOT NULL, PRIMARY KEY (principal_id, name)
    ) WITHOUT ROWID;
    CREATE TABLE memory_sums (
        principal_id BLOB NOT NULL, workspace TEXT NOT NULL, dataset TEXT NOT NULL, prefix TEXT NOT NULL,
        items INTEGER NOT NULL, total BLOB NOT NULL,
        PRIMARY KEY (principal_id, workspace, dataset, prefix)
    ) WITHOUT ROWID;
    CREATE TABLE memory_sums_stale (
        principal_id BLOB NOT NULL, workspace TEXT NOT NULL, dataset TEXT NOT NULL, prefix TEXT NOT NULL,
        PRIMARY KEY (principal_id, workspace, dataset, prefix)
    ) WITHOUT ROWID;
    CREATE VIRTUAL TABLE memory_words USING fts5 (
        words, content='memories', content_rowid='id',
        tokenize="unicode61 remove_diacritics 0 categories 'L* M* N*'"
    );
    INSERT INTO memory_words (memory_words, rank) VALUES ('secure-delete', 1);
    CREATE TRIGGER memory_made AFTER INSERT ON memories BEGIN
        INSERT INTO memory_words (rowid, words) VALUES (new.id, new.words);
        INSERT OR IGNORE INTO memory_sums_stale
            VALUES (new.principal_id, new.workspace, new.dataset, hex(substr(new.key, 1, 2)));
    END;
    CREATE TRIGGER memory_gone AFTER DELETE ON memories BEGIN
        INSERT INTO memory_words (memory_words, rowid, words) VALUES ('delete', old.id, old.words);
        INSERT OR IGNORE INTO memory_sums_stale
            VALUES (old.principal_id, old.workspace, old.dataset, hex(substr(old.key, 1, 2)));
    END;
    CREATE TRIGGER memory_changed AFTER UPDATE ON memories BEGIN
        INSERT OR IGNORE INTO memory_sums_stale
            VALUES (old.principal_id, old.workspace, old.dataset, hex(substr(old.key, 1, 2)));
        INSERT OR IGNORE INTO memory_sums_stale
            VALUES (new.principal_id, new.workspace, new.dataset, hex(substr(new.key, 1, 2)));
    END;
    """,
)
DELETIONS = (
    """
    CREATE TABLE deletions.deletions_begun (number INTEGER PRIMARY KEY AUTOINCREMENT, ticket BLOB NOT NULL);
    CREATE TABLE deletions.deletion_records (
        principal_id BLOB NOT NULL, workspace TEXT NOT NULL, dataset TEXT NOT NULL,
        key BLOB NOT NULL CHECK (length(key) = 32), deleted_at INTEGER NOT NULL, raised_at INTEGER NOT NULL,
        PRIMARY KEY (principal_id, workspace, dataset, key)
    ) WITHOUT ROWID;
    CREATE TABLE deletions.memory_marks (
        principal_id BLOB NOT NULL, logical_id BLOB NOT NULL CHECK (length(logical_id) = 16),
        redacted_at INTEGER NOT NULL, placed_at INTEGER NOT NULL, workspace TEXT, raised_at INTEGER NOT NULL,
        PRIMARY KEY (principal_id, logical_id)
    ) WITHOUT ROWID;
    CREATE TABLE deletions.deletion_requests (
        principal_id BLOB NOT NULL, pairing BLOB NOT NULL, workspace TEXT NOT NULL, dataset TEXT NOT NULL,
        key BLOB NOT NULL, deleted_at INTEGER NOT NULL, kept INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (principal_id, pairing, workspace, dataset, key)
    ) WITHOUT ROWID;
    CREATE TABLE deletions.deletions_spent (
        principal_id BLOB NOT NULL, workspace TEXT NOT NULL, dataset TEXT NOT NULL, at INTEGER NOT NULL,
        count INTEGER NOT NULL
    );
    CREATE INDEX deletions.deletions_spent_at ON deletions_spent (principal_id, workspace, dataset, at);
    """,
)
_ITEM = """workspace TEXT, dataset TEXT, number INTEGER, key BLOB, logical_id BLOB, made_at INTEGER,
        recorded_at INTEGER, PRIMARY KEY (workspace, dataset, number)"""
SESSION = f"""
    CREATE TEMP TABLE heard ({_ITEM}) WITHOUT ROWID;
    CREATE INDEX heard_key ON heard (workspace, dataset, key);
    CREATE TEMP TABLE told ({_ITEM}) WITHOUT ROWID;
    CREATE INDEX told_key ON told (workspace, dataset, key);
    CREATE TEMP TABLE asked (
        workspace TEXT, dataset TEXT, key BLOB, logical_id BLOB, deleted_at INTEGER, marked INTEGER,
        PRIMARY KEY (workspace, dataset, key)
    ) WITHOUT ROWID;
    CREATE TEMP TABLE asked_marks (
        number INTEGER PRIMARY KEY, workspace TEXT, dataset TEXT, logical_id BLOB, redacted_at INTEGER,
        placed_at INTEGER, placed_in TEXT
    );
    CREATE TEMP TABLE going (
        workspace TEXT, dataset TEXT, key BLOB, logical_id BLOB, deleted_at INTEGER, recorded INTEGER, marked INTEGER,
        PRIMARY KEY (workspace, dataset, key)
    ) WITHOUT ROWID;
"""


def upgrade(connection: Any) -> None:
    """Brings both files of an open SQLite connection to this release, each step in one transaction.

    Raises InvalidState("newer_release") for a file that a newer one wrote; it is not touched.
    """
    for file, steps in (("main", MEMORIES), ("deletions", DELETIONS)):
        (at,) = connection.execute(f"PRAGMA {file}.user_version").fetchone()
        if at > len(steps):
            raise InvalidState(
                "newer_release",
                "These memories were written by a newer release of Allgone. Update it to open them.",
            )
        for number, step in enumerate(steps[at:], start=at + 1):
            connection.executescript(
                f"BEGIN IMMEDIATE; {step} PRAGMA {file}.user_version = {number}; COMMIT;"
            )
    connection.executescript(SESSION)
