//! Lists of runs, threads and open interactions, newest first, and the checkpoints of a run.

use runwire_model::Timestamp;
use runwire_model::dialect::Encoder;
use runwire_model::run::Status;

use super::{Column, LoadedRun, Sql, SqlRow, Value, readable_rows, to_i64};
use crate::ReadFormat;
use crate::error::LogError;
use crate::info::{LatestRun, RunInfo, RunQuery, ThreadInfo};
use crate::interaction::{InboxCursor, InteractionQuery};
use crate::key::RunKey;
use crate::query::{InboxRow, ReadRows};
use crate::unreadable_rows::UnreadableTable;

/// The statement of a list of runs: the index that it uses, and the conditions with their values.
pub(crate) struct RunListing<'a> {
    pub(crate) index: &'static str,
    pub(crate) filter: String,
    pub(crate) values: Vec<Value<'a>>,
}

impl<'a> RunListing<'a> {
    /// Makes the statement with the given filters; returns `None` if no run can match.
    pub(crate) fn of<S: Sql>(sql: &S, query: &'a RunQuery) -> Result<Option<Self>, LogError> {
        let (mut conditions, mut values) = (Vec::<String>::new(), Vec::<Value<'a>>::new());
        let mut add = |condition: &dyn Fn(&str) -> String, value: Value<'a>| {
            values.push(value);
            conditions.push(condition(&format!("?{}", values.len())));
        };
        add(&|value| format!("run.tenant = {value}"), query.tenant.as_str().into());
        if let Some(before) = &query.before {
            let id = sql.row_id("run", &query.tenant, before).map_err(Into::into)?;
            let id = id.ok_or_else(|| LogError::RunUnknown(before.clone()))?;
            add(&|value| format!("run.id < {value}"), id.into());
        }
        if let Some(thread) = &query.thread {
            let id = sql.row_id("thread", &query.tenant, thread).map_err(Into::into)?;
            let Some(id) = id else { return Ok(None) };
            add(&|value| format!("run.thread = {value}"), id.into());
        }
        if let Some(agent) = &query.agent {
            add(&|value| format!("run.agent = {value}"), Value::AnyText(agent));
        }
        if let Some(since) = query.since {
            add(&|value| format!("run.created_at >= {value}"), since.0.into());
        }
        if let Some(until) = query.until {
            add(&|value| format!("run.created_at < {value}"), until.0.into());
        }
        if let Some(prefix) = &query.prefix {
            let columns = ["run.name", "run.agent", "thread.name"];
            let any = |value: &str| columns.map(|column| S::starts_with(column, value)).join(" OR ");
            add(&|value| format!("({})", any(value)), Value::AnyText(prefix));
        }
        add(
            &|value| format!("thread.deleted_at IS NULL ORDER BY run.id DESC LIMIT {value}"),
            query.limit.into(),
        );
        if !query.statuses.is_empty() {
            let names: Vec<String> =
                query.statuses.iter().map(|status| format!("'{}'", status.as_str())).collect();
            conditions.insert(0, format!("run.status IN ({})", names.join(", ")));
        }
        Ok(Some(Self { index: index_for(query), filter: conditions.join(" AND "), values }))
    }
}

/// Chooses the index of a list. Each returns the newest run first, so that the query ends when the page is full; only
/// the runs of one thread, and open runs, are few enough to be sorted.
fn index_for(query: &RunQuery) -> &'static str {
    let open = query.statuses.iter().all(|status| !status.is_closed());
    match &query.statuses[..] {
        _ if query.thread.is_some() => "run_of_thread",
        [_] => "run_by_status",
        [_, ..] if open => "run_by_status",
        _ if query.agent.is_some() => "run_by_agent",
        _ => "run_newest",
    }
}

/// Lists runs. Unreadable ones are reported, and listed as far as their own rows say, or passed over; a query for one
/// alone returns the error.
pub(crate) fn runs<R: ReadRows>(reader: &R, query: &RunQuery) -> Result<Vec<RunInfo>, LogError> {
    let Some(listing) = RunListing::of(reader.sql(), query)? else { return Ok(Vec::new()) };
    let RunListing { index, filter, values } = listing;
    let runs = reader.sql().run_heads(index, &filter, &values).map_err(Into::into)?;
    let mut listed = Vec::with_capacity(runs.len());
    for run in runs {
        match run {
            LoadedRun::Head(mut run) => match reader.update_run(&mut run) {
                Ok(()) => listed.push(run.info()),
                Err(failure @ LogError::Damaged(_)) => reader.unreadable().insert_run(run.id, &failure),
                Err(failure) => return Err(failure),
            },
            LoadedRun::Damaged { id, failure, stale } => {
                reader.unreadable().insert_run(id, &Into::<LogError>::into(failure));
                listed.extend(stale.map(|run| run.info()));
            }
        }
    }
    Ok(listed)
}

/// Lists up to `limit` threads created before `before`. Unreadable ones are reported and passed over.
pub(crate) fn threads<R: ReadRows>(
    reader: &R,
    tenant: &str,
    before: Option<&str>,
    limit: usize,
) -> Result<Vec<ThreadInfo>, LogError> {
    let before = match before {
        Some(before) => {
            let id = reader.sql().row_id("thread", tenant, before).map_err(Into::into)?;
            id.ok_or_else(|| LogError::ThreadUnknown(before.to_owned()))?
        }
        None => i64::MAX,
    };
    let sql = format!(
        "SELECT id FROM thread {} WHERE tenant = ?1 AND id < ?2 AND deleted_at IS NULL AND name <> '' \
         ORDER BY id DESC LIMIT ?3",
        <R::Sql as Sql>::indexed_by("thread_newest")
    );
    readable_rows(reader.unreadable(), UnreadableTable::Thread, limit, before, |before| {
        let values = [tenant.into(), before.into(), limit.into()];
        let ids = reader.sql().rows(&sql, &values, |row| row.int(0)).map_err(Into::into)?;
        let row = |id: i64| match reader.thread_info(id) {
            Ok(info) => Ok((id, id, Ok(info))),
            Err(failure @ LogError::Damaged(_)) => Ok((id, id, Err(failure))),
            Err(failure) => Err(failure),
        };
        ids.into_iter().map(row).collect::<Result<_, LogError>>()
    })
}

/// Lists open interactions, one more than the page has, to know whether there is a next one. Unreadable ones are
/// reported and passed over.
pub(crate) fn inbox_rows<R: ReadRows>(
    reader: &R,
    query: &InteractionQuery,
) -> Result<Vec<InboxRow>, <R::Sql as Sql>::Error> {
    let end = InboxCursor { asked_at: Timestamp(u64::MAX), number: u64::MAX };
    let before = query.before.unwrap_or(end);
    let before = (to_i64(before.asked_at.0), to_i64(before.number));
    let statement = "SELECT interaction.id, run.name, run.thread, thread.name, run.agent, interaction.name, \
        interaction.seq, interaction.asked_at, interaction.expires_at, interaction.bytes FROM interaction \
        JOIN run ON run.id = interaction.run JOIN thread ON thread.id = run.thread \
        WHERE interaction.tenant = ?1 AND (interaction.asked_at, interaction.id) < (?2, ?3) \
        AND (CAST(?4 AS text) IS NULL OR run.name = ?4) AND (CAST(?5 AS text) IS NULL OR run.agent = ?5) \
        AND (CAST(?6 AS text) IS NULL OR thread.name = ?6) \
        ORDER BY interaction.asked_at DESC, interaction.id DESC LIMIT ?7";
    let limit = query.limit + 1;
    readable_rows(reader.unreadable(), UnreadableTable::Interaction, limit, before, |(asked_at, number)| {
        let values = [
            query.tenant.as_str().into(),
            asked_at.into(),
            number.into(),
            query.run.as_deref().map_or(Value::Null, Value::Text),
            Value::optional_text(query.agent.as_deref()),
            query.thread.as_deref().map_or(Value::Null, Value::Text),
            limit.into(),
        ];
        reader.sql().rows(statement, &values, |row| {
            let number = row.int(0)?;
            Ok((number, (row.int(7)?, number), inbox_row(row)))
        })
    })
}

fn inbox_row(row: &dyn SqlRow) -> Column<InboxRow> {
    Ok(InboxRow {
        number: row.number(0)?,
        run: row.text(1)?,
        thread: row.int(2)?,
        thread_name: row.text(3)?,
        agent: row.optional_any_text(4)?,
        name: row.any_text(5)?,
        seq: row.number(6)?,
        asked_at: row.time(7)?,
        expires_at: row.optional_time(8)?,
        bytes: row.number(9)? as usize,
    })
}

/// Returns the newest checkpoint of a run up to `seq`.
pub(crate) fn checkpoint<S: Sql>(
    sql: &S,
    run: &RunKey,
    form: ReadFormat,
    seq: u64,
) -> Result<Option<(u64, Encoder)>, S::Error> {
    let statement = "SELECT seq, state FROM checkpoint WHERE form = ?3 AND seq <= ?4 \
        AND run = (SELECT id FROM run WHERE tenant = ?1 AND name = ?2) ORDER BY seq DESC LIMIT 1";
    let form = form.name();
    let values = [(&*run.tenant).into(), (&*run.id).into(), form.as_str().into(), seq.into()];
    let found = sql.row(statement, &values, |row| Ok((row.number(0)?, row.text(1)?)))?;
    // A checkpoint is a cache: one that an older version wrote differently counts as lost.
    Ok(found.and_then(|(seq, state)| Some((seq, serde_json::from_str(&state).ok()?))))
}

/// Returns the latest run of a thread.
pub(crate) fn latest_run<S: Sql>(sql: &S, thread: i64) -> Result<Option<LatestRun>, S::Error> {
    let statement = "SELECT name, agent, status, coalesce(ended_at, started_at, created_at) FROM run \
        WHERE thread = ?1 AND first_seq IS NOT NULL ORDER BY first_seq DESC LIMIT 1";
    sql.row(statement, &[thread.into()], |row| {
        Ok(LatestRun {
            run_id: row.text(0)?,
            agent: row.optional_any_text(1)?,
            status: Status::from_word(&row.text(2)?).unwrap_or_default(),
            at: row.time(3)?,
        })
    })
}
