//! The tables of a SQLite store.
//!
//! Layout, chosen by measuring (`docs/performance.md`): a commit appends one row to `pending_commits`; later, all
//! records that a thread has gathered there become one row of `chunk`, found by (thread, last seq).

use rusqlite::Connection;

use crate::Migrated;

/// The version of the layout. Until the first release there is one: a store of another is refused.
pub(super) const VERSION: u32 = 6;

const TABLES: &str = "
CREATE TABLE thread (
    id         INTEGER PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    parallel   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    -- The first seq that is kept, and the last seq and time when something was removed.
    oldest     INTEGER NOT NULL DEFAULT 1,
    head       INTEGER NOT NULL DEFAULT 0,
    head_at    INTEGER NOT NULL DEFAULT 0,
    -- Messages and state before the oldest seq, as JSON.
    base       TEXT,
    deleted_at INTEGER,
    -- Whether rows of it are to be removed: it is deleted, or was trimmed.
    unpurged   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, name)
) STRICT;

CREATE TABLE run (
    id         INTEGER PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    thread     INTEGER NOT NULL REFERENCES thread (id),
    agent      TEXT,
    -- The request that created it, as JSON.
    request    TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at   INTEGER,
    first_seq  INTEGER,
    last_seq   INTEGER NOT NULL DEFAULT 0,
    -- When its first open interaction expires.
    deadline   INTEGER,
    -- The revision of the translation that its cursors are of.
    revision   INTEGER NOT NULL,
    trimmed    INTEGER NOT NULL DEFAULT 0,
    -- The guard's state and the summary, as JSON.
    head       TEXT,
    UNIQUE (tenant, name)
) STRICT;
CREATE INDEX run_of_thread ON run (thread, first_seq);
CREATE INDEX run_open ON run (thread, id) WHERE status IN ('pending', 'running', 'suspended');

CREATE TABLE producer (
    -- 'run' or 'thread', and the number of that.
    scope   TEXT    NOT NULL,
    owner   INTEGER NOT NULL,
    -- Empty for the anonymous one.
    name    TEXT    NOT NULL,
    epoch   INTEGER NOT NULL,
    next    INTEGER NOT NULL,
    -- The decoder, and where the frames go, as JSON.
    decoder TEXT,
    PRIMARY KEY (scope, owner, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE chunk (
    id     INTEGER PRIMARY KEY,
    thread INTEGER NOT NULL,
    first  INTEGER NOT NULL,
    last   INTEGER NOT NULL,
    -- CRC-32 of thread, first, last and body.
    checksum INTEGER NOT NULL,
    -- The records from first to last, one after the other: see record.rs.
    body   BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX chunk_of_thread ON chunk (thread, last);

-- What is committed and not yet in the tables above: see pending_commits.rs.
CREATE TABLE pending_commits (
    id       INTEGER PRIMARY KEY,
    -- CRC-32 of id and body.
    checksum INTEGER NOT NULL,
    body     BLOB    NOT NULL
) STRICT;

CREATE TABLE checkpoint (
    run   INTEGER NOT NULL,
    form  TEXT    NOT NULL,
    seq   INTEGER NOT NULL,
    -- The encoder's state, as JSON.
    state TEXT    NOT NULL,
    PRIMARY KEY (run, form, seq)
) STRICT, WITHOUT ROWID;

-- The open interactions.
CREATE TABLE interaction (
    id         INTEGER PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    run        INTEGER NOT NULL REFERENCES run (id),
    -- The interaction's id, and the record that asks it.
    name       TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
    asked_at   INTEGER NOT NULL,
    expires_at INTEGER,
    bytes      INTEGER NOT NULL,
    UNIQUE (run, name)
) STRICT;
CREATE INDEX interaction_asked ON interaction (tenant, asked_at, id);

-- Undelivered messages to subscribers.
CREATE TABLE outbox (
    -- Never reused, so that a late acknowledgement hits no other message.
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    subscriber TEXT    NOT NULL,
    -- Its globally unique id.
    name       TEXT    NOT NULL,
    run        INTEGER NOT NULL REFERENCES run (id),
    kind       TEXT    NOT NULL,
    -- The record that the event is in, when it was written, and the event as JSON.
    seq        INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    event      TEXT    NOT NULL,
    attempts   INTEGER NOT NULL DEFAULT 0,
    due        INTEGER NOT NULL
) STRICT;
CREATE INDEX outbox_due ON outbox (subscriber, due, id);
CREATE INDEX outbox_of_run ON outbox (run);

-- Lists, newest first: every index ends with the row's number.
CREATE INDEX run_newest ON run (tenant);
CREATE INDEX run_by_status ON run (tenant, status);
CREATE INDEX run_by_agent ON run (tenant, agent) WHERE agent IS NOT NULL;
CREATE INDEX thread_newest ON thread (tenant) WHERE deleted_at IS NULL;
CREATE INDEX thread_unpurged ON thread (id) WHERE unpurged;
CREATE INDEX run_kept ON run (ended_at, id) WHERE NOT trimmed AND first_seq IS NOT NULL AND ended_at IS NOT NULL;
";

/// The revision of the translation that new runs are pinned to.
pub(super) const REVISION: u32 = 1;

/// Sets up a connection for writing or checkpointing.
pub(super) fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -16_384)?;
    // A thread of its own checkpoints the write-ahead log (`wal_checkpointer.rs`).
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// What a file is, judged by its version and tables.
pub(super) enum SchemaState {
    /// A store of this version; its tables were made if the file was empty.
    Current(Migrated),
    /// A store of an older version.
    Older(u32),
    /// A store of a newer version.
    Newer(u32),
    /// A database of another program.
    Foreign,
}

/// Makes the tables of an empty file.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<SchemaState> {
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match version {
        0 if connection.prepare("SELECT 1 FROM sqlite_schema")?.exists([])? => Ok(SchemaState::Foreign),
        0 => {
            let transaction = connection.transaction()?;
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
            transaction.commit()?;
            Ok(SchemaState::Current(Migrated { from: 0, to: VERSION }))
        }
        VERSION => Ok(SchemaState::Current(Migrated { from: VERSION, to: VERSION })),
        version if version < VERSION => Ok(SchemaState::Older(version)),
        version => Ok(SchemaState::Newer(version)),
    }
}

/// Checkpoints the write-ahead log completely, and syncs the file.
pub(super) fn checkpoint_wal(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}
