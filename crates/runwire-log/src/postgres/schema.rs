//! The tables of a Postgres store.
//!
//! A commit adds one row of `chunk` for each thread: all its records for that thread. The row of a thread has its
//! head, and a writer of the thread has locked it.

use super::connection::PgConnection;
use super::open::PgOpenError;
use crate::Migrated;
use crate::txn::mint;

/// The version of the layout. Until the first release there is one: a store of another is refused.
pub(super) const VERSION: u32 = 4;

const TABLES: &str = "
-- One row.
CREATE TABLE store (
    version     integer NOT NULL,
    -- Distinguishes this life of the store from others: it changes when a backup is restored.
    generation  text,
    -- The last known identity: database, table, server and timeline.
    history     text,
    -- Time of the last heartbeat of any node.
    alive_at    bigint  NOT NULL DEFAULT 0,
    -- Until when no gap between heartbeats is possible: before that, leases expire normally.
    alive_until bigint  NOT NULL DEFAULT 0
);

CREATE TABLE node (
    id         text   PRIMARY KEY,
    -- Its name, for people.
    name       text   NOT NULL,
    -- The version of its program.
    version    text   NOT NULL,
    started_at bigint NOT NULL,
    -- Until when it counts as live.
    seen_until bigint NOT NULL
);

CREATE SEQUENCE thread_id;
CREATE SEQUENCE run_id;

-- Rows that change with every commit leave space on their page, so that no index is touched.
CREATE TABLE thread (
    id         bigint  PRIMARY KEY,
    tenant     text    NOT NULL,
    name       text    NOT NULL,
    parallel   boolean NOT NULL,
    created_at bigint  NOT NULL,
    -- The first seq that is kept, the last seq and its time.
    oldest     bigint  NOT NULL,
    head       bigint  NOT NULL,
    head_at    bigint  NOT NULL,
    -- Messages and state before the oldest seq, as JSON.
    base       text,
    -- Changes with each commit that touches the thread, one of its runs or one of their producers.
    version    bigint  NOT NULL DEFAULT 0,
    deleted_at bigint,
    -- Whether rows of it are to be removed: it is deleted, or was trimmed.
    unpurged   boolean NOT NULL DEFAULT false,
    -- The run whose own rows are stale, and its snapshot: see run_snapshot.rs.
    snapshot_run bigint,
    snapshot   bytea,
    UNIQUE (tenant, name)
) WITH (fillfactor = 70);
CREATE INDEX thread_unpurged ON thread (id) WHERE unpurged;
CREATE INDEX thread_newest ON thread (tenant, id) WHERE deleted_at IS NULL;

CREATE TABLE run (
    id          bigint   PRIMARY KEY,
    tenant      text     NOT NULL,
    name        text     NOT NULL,
    thread      bigint   NOT NULL,
    agent       text,
    -- The request that created it, as JSON.
    request     text     NOT NULL,
    status      text     NOT NULL,
    created_at  bigint   NOT NULL,
    started_at  bigint,
    ended_at    bigint,
    first_seq   bigint,
    last_seq    bigint   NOT NULL,
    -- When its first open interaction expires.
    deadline    bigint,
    -- Its lease, and when that runs out: see rows.rs.
    lease       smallint NOT NULL,
    lease_until bigint   NOT NULL,
    -- The node whose server has started an agent on it.
    owner       text,
    -- The revision of the translation that its cursors are of.
    revision    integer  NOT NULL,
    trimmed     boolean  NOT NULL,
    -- The user message, for lists.
    message     text,
    -- The guard's state and the summary, as JSON.
    head        text,
    UNIQUE (tenant, name)
) WITH (fillfactor = 70);
CREATE INDEX run_of_thread ON run (thread, first_seq);
CREATE INDEX run_open ON run (thread, id) WHERE status IN ('pending', 'running', 'suspended');
CREATE INDEX run_owned ON run (agent, id)
    WHERE owner IS NOT NULL AND status IN ('pending', 'running', 'suspended');
CREATE INDEX run_leased ON run (lease_until) WHERE lease > 0;
CREATE INDEX run_kept ON run (ended_at, id) WHERE NOT trimmed AND first_seq IS NOT NULL AND ended_at IS NOT NULL;
CREATE INDEX run_newest ON run (tenant, id);
CREATE INDEX run_by_status ON run (tenant, status, id);
CREATE INDEX run_by_agent ON run (tenant, agent, id) WHERE agent IS NOT NULL;

CREATE TABLE producer (
    -- 'run' or 'thread', and the number of that.
    scope   text   NOT NULL,
    owner   bigint NOT NULL,
    -- Empty for the anonymous one.
    name    text   NOT NULL,
    epoch   bigint NOT NULL,
    next    bigint NOT NULL,
    -- The decoder, and where the frames go, as JSON.
    decoder text   NOT NULL,
    PRIMARY KEY (scope, owner, name)
) WITH (fillfactor = 70);

CREATE TABLE chunk (
    thread bigint NOT NULL,
    first  bigint NOT NULL,
    last   bigint NOT NULL,
    -- CRC-32 of thread, first, last and body.
    checksum bigint NOT NULL,
    -- The records from first to last, one after the other: see record.rs.
    body   bytea  NOT NULL,
    PRIMARY KEY (thread, last)
);

CREATE TABLE checkpoint (
    run   bigint NOT NULL,
    form  text   NOT NULL,
    seq   bigint NOT NULL,
    -- The encoder's state, as JSON.
    state text   NOT NULL,
    PRIMARY KEY (run, form, seq)
);

-- The open interactions.
CREATE TABLE interaction (
    id         bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    tenant     text   NOT NULL,
    run        bigint NOT NULL,
    -- The interaction's id, and the record that asks it.
    name       text   NOT NULL,
    seq        bigint NOT NULL,
    asked_at   bigint NOT NULL,
    expires_at bigint,
    bytes      bigint NOT NULL,
    UNIQUE (run, name)
);
CREATE INDEX interaction_asked ON interaction (tenant, asked_at, id);

-- Undelivered messages to subscribers.
CREATE TABLE outbox (
    id         bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    subscriber text   NOT NULL,
    -- Its globally unique id.
    name       text   NOT NULL,
    run        bigint NOT NULL,
    kind       text   NOT NULL,
    -- The record that the event is in, when it was written, and the event as JSON.
    seq        bigint NOT NULL,
    at         bigint NOT NULL,
    event      text   NOT NULL,
    attempts   bigint NOT NULL DEFAULT 0,
    due        bigint NOT NULL
);
CREATE INDEX outbox_due ON outbox (subscriber, due, id);
CREATE INDEX outbox_of_run ON outbox (run);
";

/// The revision of the translation that new runs are pinned to.
pub(super) const REVISION: i32 = 1;

/// Advisory lock: only one node creates the tables. The number is unique to Runwire.
const CREATING: &str = "SELECT pg_advisory_xact_lock(7420742074207420)";

/// Makes the tables of an empty store, and returns the versions before and after.
pub(super) fn migrate(connection: &PgConnection) -> Result<Migrated, PgOpenError> {
    // A user who may not create tables may use them, and nobody waits if there is nothing to do.
    let mut found = version(connection)?;
    if found == 0 {
        connection.run("BEGIN")?;
        connection.run(CREATING)?;
        found = version(connection)?;
        if found == 0 {
            refuse_others(connection)?;
            connection.run(TABLES)?;
            let sql = "INSERT INTO store (version, generation) VALUES ($1, $2)";
            connection.execute(sql, &[&(VERSION as i32), &mint()])?;
            connection.run("COMMIT")?;
            return Ok(Migrated { from: 0, to: VERSION });
        }
        connection.run("COMMIT")?;
    }
    match found {
        VERSION => Ok(Migrated { from: VERSION, to: VERSION }),
        found if found < VERSION => Err(PgOpenError::Older { found, needed: VERSION }),
        found => Err(PgOpenError::Newer { found, known: VERSION }),
    }
}

/// Returns the version of a store; 0 is one without tables.
fn version(connection: &PgConnection) -> Result<u32, PgOpenError> {
    // A store has both columns from its first commit on.
    let sql = "SELECT to_regclass('store') IS NOT NULL, (SELECT count(*) = 2 FROM pg_attribute \
               WHERE attrelid = to_regclass('store') AND NOT attisdropped AND (attname::text, atttypid) \
               IN (('version', 'integer'::regtype), ('generation', 'text'::regtype)))";
    let row = connection.one(sql, &[])?;
    match (row.get(0), row.get(1)) {
        (false, _) => return Ok(0),
        (true, false) => return Err(PgOpenError::Others("store".to_owned())),
        (true, true) => {}
    }
    let row = connection.first("SELECT version FROM store", &[])?;
    Ok(row.map_or(0, |row| row.get::<_, i32>(0) as u32))
}

/// Refuses a database in which the names of new tables are taken.
fn refuse_others(connection: &PgConnection) -> Result<(), PgOpenError> {
    let sql = "SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace \
               WHERE nspname = current_schema() AND relname = ANY($1) \
               UNION SELECT typname FROM pg_type JOIN pg_namespace ON pg_namespace.oid = typnamespace \
               WHERE nspname = current_schema() AND typname = ANY($1) ORDER BY 1";
    let names: Vec<&str> = table_names().collect();
    let found = connection.query(sql, &[&names])?;
    let found: Vec<&str> = found.iter().map(|row| row.get(0)).collect();
    match found.is_empty() {
        true => Ok(()),
        false => Err(PgOpenError::Others(found.join(", "))),
    }
}

/// Lists the tables, sequences and indexes of a store.
fn table_names() -> impl Iterator<Item = &'static str> {
    TABLES.lines().filter_map(|line| line.strip_prefix("CREATE ")?.split([' ', ';']).nth(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_a_store_has_is_known_by_name() {
        let names: Vec<_> = table_names().collect();
        for name in
            ["store", "node", "thread_id", "thread", "thread_unpurged", "run", "chunk", "outbox_of_run"]
        {
            assert!(names.contains(&name), "{name} is not among {names:?}");
        }
        assert_eq!(names.len(), TABLES.matches("CREATE ").count());
    }
}
