//! Exporting: everything that is stored of a thread, page by page.

use std::ops::ControlFlow;
use std::sync::Arc;

use rusqlite::{OptionalExtension, params};

use super::read::{Reader, ThreadRow, visit};
use super::rows::{RUN_COLUMNS, json_error, run_of_row};
use crate::error::LogError;
use crate::info::RunSpan;
use crate::key::ThreadKey;
use crate::limits;
use crate::moved::{
    Exported, Moved, Part, ProducerNote, RouteNote, RunFacts, StateNote, ThreadFacts, TrimmedRun,
};
use crate::record::Stored;
use crate::work::{Base, RunHead, Speech};

/// The records that are asked for: the first one and the last one, and whether that is the whole thread.
#[derive(Clone, Copy)]
struct Range {
    from: u64,
    to: u64,
    whole: bool,
}

impl Reader {
    pub(super) fn export(&mut self, key: &ThreadKey, part: &Part) -> Result<Exported, LogError> {
        let row = self.thread_row(key)?;
        let range = self.range(&row, part.run.as_deref())?;
        let after = part.after.unwrap_or(range.from - 1);
        if after < row.oldest - 1 {
            return Err(LogError::CursorTrimmed { after, oldest: row.oldest });
        }
        if after > row.head {
            return Err(LogError::CursorBeyondEnd { after, head: row.head });
        }
        let mut pieces = Vec::new();
        if part.after.is_none() {
            pieces.push(Moved::Thread(Box::new(self.facts(key, &row, range)?)));
            if range.whole {
                self.trimmed_runs(&row, &mut pieces)?;
            }
        }
        let (records, full) = self.records(row.id, after, range.to)?;
        let last = records.last().map_or(after, |stored| stored.record.seq);
        let begun = self.runs_where("run.first_seq BETWEEN ?2 AND ?3", params![row.id, after + 1, last])?;
        let latest = self.latest_before(row.id, range.to + 1)?;
        for stored in records {
            let seq = stored.record.seq;
            let begins = begun.iter().find(|run| run.first_seq == Some(seq));
            pieces.extend(begins.map(|run| Moved::Run(Box::new(facts_of(run)))));
            let ends = stored.is_terminal().then(|| stored.run.clone());
            pieces.push(Moved::Record(stored));
            if let Some(run) = ends {
                for run in self.runs_where("run.name = ?2", params![row.id, &*run])? {
                    pieces.extend(self.state_of(&run, latest == Some(run.id))?);
                }
            }
        }
        // A run's row may be ahead of the records that can be read: then they follow in a moment.
        let behind = range.to == row.head && self.last_of_runs(row.id)? > row.head;
        if full || behind {
            return Ok(Exported { pieces, next: Some(last) });
        }
        self.open_ends(&row, range, latest, &mut pieces)?;
        pieces.push(Moved::End { head: last });
        Ok(Exported { pieces, next: None })
    }

    fn range(&self, row: &ThreadRow, run: Option<&str>) -> Result<Range, LogError> {
        let Some(run) = run else { return Ok(Range { from: row.oldest, to: row.head, whole: true }) };
        let spans = self.spans_of(row.id)?;
        let at = spans.iter().position(|span| span.run_id == run);
        let at = at.ok_or_else(|| LogError::RunUnknown(run.to_owned()))?;
        // Runs that lie side by side cannot be told apart from each other.
        let (mut from, mut to) = (spans[at].first_seq, end_of(&spans[at], row.head));
        loop {
            let touching = |span: &&RunSpan| span.first_seq <= to && end_of(span, row.head) >= from;
            let first = spans.iter().filter(touching).map(|span| span.first_seq).min().unwrap_or(from);
            let last = spans.iter().filter(touching).map(|span| end_of(span, row.head)).max().unwrap_or(to);
            if (first, last) == (from, to) {
                return Ok(Range { from, to, whole: false });
            }
            (from, to) = (first, last);
        }
    }

    fn facts(&mut self, key: &ThreadKey, row: &ThreadRow, range: Range) -> Result<ThreadFacts, LogError> {
        let info = self.thread_info(row.id)?;
        let base = match range.from == row.oldest {
            true => row.base.as_deref().map(serde_json::from_str::<Base>).transpose().map_err(json_error)?,
            false => Some(Base::of(&self.before(key, range.from)?)),
        };
        let mut base = base.unwrap_or_default();
        if !range.whole
            && let Some(latest) = self.latest_before(row.id, range.from)?
        {
            let run = self.runs_where("run.id = ?2", params![row.id, latest])?.pop();
            base.guard = run.map(|run| run.head.state).or(base.guard);
        }
        let sql = "SELECT head_at FROM thread WHERE id = ?1 AND oldest > ?2";
        let head_at =
            self.connection.prepare_cached(sql)?.query_row(params![row.id, row.head], |row| row.get(0));
        let head_at: Option<u64> = head_at.optional()?;
        Ok(ThreadFacts {
            thread_id: info.thread_id,
            parallel: info.parallel,
            created_at: info.created_at,
            oldest: range.from,
            head_at: head_at.filter(|_| row.head > 0).map(runwire_model::Timestamp),
            messages: base.messages,
            state: base.state.and_then(|state| runwire_model::Json::parse(&state).ok()),
            guard: base.guard,
        })
    }

    /// Reads records up to one, a page at most, and tells whether there may be more.
    fn records(&mut self, thread: i64, after: u64, to: u64) -> Result<(Vec<Arc<Stored>>, bool), LogError> {
        let (mut records, mut bytes, mut full) = (Vec::new(), 0, false);
        visit(&self.connection, &mut self.names, thread, after, &mut |stored| {
            if stored.record.seq > to {
                return ControlFlow::Break(());
            }
            bytes += stored.weight();
            full = bytes >= limits::PAGE_BYTES && stored.record.seq < to;
            records.push(Arc::new(stored));
            if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok((records, full))
    }

    /// Finds runs of a thread, with `?1` being the thread.
    fn runs_where(&self, filter: &str, by: &[&dyn rusqlite::ToSql]) -> Result<Vec<RunHead>, LogError> {
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM run JOIN thread ON thread.id = run.thread \
             WHERE run.thread = ?1 AND {filter} ORDER BY run.first_seq, run.id"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let runs = statement.query_map(by, run_of_row)?;
        Ok(runs.collect::<Result<_, _>>()?)
    }

    /// Finds the run that began last before a `seq`.
    fn latest_before(&self, thread: i64, seq: u64) -> Result<Option<i64>, LogError> {
        let sql = "SELECT id FROM run WHERE thread = ?1 AND first_seq < ?2 ORDER BY first_seq DESC LIMIT 1";
        let mut latest = self.connection.prepare_cached(sql)?;
        let latest = latest.query_row(params![thread, super::read::whole_number(seq)], |row| row.get(0));
        Ok(latest.optional()?)
    }

    fn last_of_runs(&self, thread: i64) -> Result<u64, LogError> {
        let sql = "SELECT coalesce(max(last_seq), 0) FROM run WHERE thread = ?1";
        Ok(self.connection.prepare_cached(sql)?.query_row([thread], |row| row.get(0))?)
    }

    /// Tells of the runs whose events retention has removed.
    fn trimmed_runs(&self, row: &ThreadRow, pieces: &mut Vec<Moved>) -> Result<(), LogError> {
        let runs = self.runs_where("run.trimmed = 1", params![row.id])?;
        let last = runs.len().saturating_sub(1);
        for (at, run) in runs.iter().enumerate() {
            let (Some(started_at), Some(ended_at), Some(first_seq)) =
                (run.started_at, run.ended_at, run.first_seq)
            else {
                continue;
            };
            let mut facts = facts_of(run);
            facts.trimmed = Some(TrimmedRun {
                status: run.head.state.status,
                started_at,
                ended_at,
                first_seq,
                last_seq: run.last_seq,
                summary: run.head.summary.clone(),
                guard: (at == last).then(|| run.head.state.clone()),
            });
            pieces.push(Moved::Run(Box::new(facts)));
        }
        Ok(())
    }

    /// Tells what is open at the end of the range.
    fn open_ends(
        &self,
        row: &ThreadRow,
        range: Range,
        latest: Option<i64>,
        pieces: &mut Vec<Moved>,
    ) -> Result<(), LogError> {
        let open = "run.status IN ('pending', 'running', 'suspended') \
                    AND (run.first_seq IS NULL OR run.first_seq BETWEEN ?2 AND ?3)";
        for run in self.runs_where(open, params![row.id, range.from, range.to])? {
            if run.first_seq.is_none() {
                if !range.whole {
                    continue;
                }
                pieces.push(Moved::Run(Box::new(facts_of(&run))));
            }
            pieces.extend(self.state_of(&run, latest == Some(run.id))?);
        }
        if range.whole {
            let producers = self.producers_of("thread", row.id, false)?;
            let note = StateNote { last_seq: row.head, producers, ..StateNote::default() };
            pieces.extend((!note.producers.is_empty()).then(|| Moved::State(Box::new(note))));
        }
        Ok(())
    }

    /// Tells what is known of a run beside its records, if there is anything that matters.
    fn state_of(&self, run: &RunHead, latest: bool) -> Result<Option<Moved>, LogError> {
        let open = run.ended_at.is_none();
        let producers = self.producers_of("run", run.id, !open)?;
        let guard = ((open && run.first_seq.is_some()) || latest).then(|| run.head.state.clone());
        if guard.is_none() && producers.is_empty() {
            return Ok(None);
        }
        let note =
            StateNote { run_id: Some(run.key.id.to_string()), last_seq: run.last_seq, guard, producers };
        Ok(Some(Moved::State(Box::new(note))))
    }

    /// Tells how far producers are; the nameless one of a run that is closed has nothing more to say.
    fn producers_of(&self, scope: &str, owner: i64, named: bool) -> Result<Vec<ProducerNote>, LogError> {
        let sql = "SELECT name, epoch, next, decoder FROM producer WHERE scope = ?1 AND owner = ?2 \
                   AND (NOT ?3 OR name <> '') ORDER BY name";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![scope, owner, named], |row| {
            let speech: Option<String> = row.get(3)?;
            let speech: Option<Speech> =
                speech.as_deref().map(serde_json::from_str).transpose().map_err(json_error)?;
            let (epoch, next) = (row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as u64);
            Ok((row.get::<_, String>(0)?, epoch, next, speech.unwrap_or_default()))
        })?;
        let mut notes = Vec::new();
        for row in rows {
            let (name, epoch, next, Speech { decoder, routes }) = row?;
            let mut told = Vec::new();
            for route in routes {
                let sql = "SELECT name FROM run WHERE id = ?1";
                let to = self.connection.prepare_cached(sql)?.query_row([route.to], |row| row.get(0));
                if let Some(to) = to.optional()? {
                    told.push(RouteNote { thread: route.thread, run: route.run, to });
                }
            }
            notes.push(ProducerNote { name, epoch, next, decoder, routes: told });
        }
        Ok(notes)
    }
}

/// An open run goes on to the end of the thread.
fn end_of(span: &RunSpan, head: u64) -> u64 {
    if span.open { head } else { span.last_seq }
}

fn facts_of(run: &RunHead) -> RunFacts {
    let request = &run.request;
    RunFacts {
        run_id: run.key.id.to_string(),
        created_at: run.created_at,
        thread_id: request.thread_id.clone(),
        agent: request.agent.clone(),
        message: request.message.clone(),
        message_id: request.message_id.clone(),
        input: request.input.as_deref().and_then(|input| runwire_model::Json::parse(input).ok()),
        asked: request.asked,
        trimmed: None,
    }
}
