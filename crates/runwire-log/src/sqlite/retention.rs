//! Removing: threads that are deleted, and runs that retention does not keep.
//!
//! Both only mark what is gone. The rows go later, some with each commit, so that no writer waits for long; a
//! restart goes on with it.

use runwire_model::Timestamp;
use runwire_model::event::{Event, RunCancelled};
use rusqlite::params;

use super::read::{Base, Reader};
use super::rows::json_error;
use super::writer::{Db, Done, Writer};
use crate::error::LogError;
use crate::key::{RunKey, ThreadKey};
use crate::{Retention, limits};

/// Stands for all rows of a thread.
const EVERYTHING: u64 = i64::MAX as u64;

/// What retention removes from a thread.
pub(super) struct Cut {
    thread: i64,
    runs: Vec<String>,
    /// The first `seq` that is kept.
    oldest: u64,
    /// Messages and state before it.
    base: String,
}

impl Writer {
    /// Goes on with what a restart has interrupted.
    pub(super) fn find_purges(&mut self) -> Db<()> {
        let sql = "SELECT id, CASE WHEN deleted_at IS NULL THEN oldest - 1 ELSE ?1 END FROM thread \
                   WHERE (deleted_at IS NOT NULL AND purged = 0) OR (deleted_at IS NULL AND oldest > 1 AND \
                   EXISTS (SELECT 1 FROM chunk WHERE thread = thread.id AND last < oldest))";
        let mut statement = self.connection.prepare(sql)?;
        let rows = statement.query_map([EVERYTHING], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.purges = rows.collect::<Result<_, _>>()?;
        Ok(())
    }

    pub(super) fn delete(&mut self, key: &ThreadKey, force: bool) -> Done<()> {
        let Some(mut thread) = self.heads.take_thread(&self.connection, key)? else {
            return Ok(Err(LogError::ThreadUnknown(key.id.to_string())));
        };
        if thread.deleted {
            self.heads.put_thread(thread);
            return Ok(Err(LogError::ThreadDeleted(key.id.to_string())));
        }
        if let (false, Some(open)) = (force, thread.open.first().copied()) {
            let run = self.heads.take_run_by_id(&self.connection, open)?;
            let name = run.as_ref().map_or_else(String::new, |run| run.key.id.to_string());
            run.into_iter().for_each(|run| self.heads.put_run(run));
            self.heads.put_thread(thread);
            return Ok(Err(LogError::RunOpen(name)));
        }
        for open in thread.open.clone() {
            let event =
                Event::new(RunCancelled { reason: Some("thread deleted".into()), ..Default::default() });
            self.with_run(open, |writer, run| writer.act(&mut thread, run, vec![event]))?;
            self.leases.remove(open);
        }
        let id = thread.id;
        self.touched_threads.insert(id);
        self.heads.put_thread(thread);
        // What is pending of the thread is shown to its readers, and goes with the rest.
        self.save_heads()?;
        let sql = "UPDATE thread SET deleted_at = ?2, base = NULL WHERE id = ?1";
        self.connection.prepare_cached(sql)?.execute(params![id, self.now().0])?;
        self.forget_notices(id)?;
        self.heads.forget_thread(id);
        self.journal.threads.remove(&id);
        self.gone.insert(id);
        self.purges.push_back((id, EVERYTHING));
        self.deleted.push(key.clone());
        Ok(Ok(()))
    }

    pub(super) fn trim(&mut self, cut: &Cut) -> Db<usize> {
        let Some(thread) = self.heads.take_thread_by_id(&self.connection, cut.thread)? else { return Ok(0) };
        // The row says from now on how far the thread is, so nothing may be missing beside it.
        self.seal_now.insert(cut.thread);
        let (deleted, seq, at, key) = (thread.deleted, thread.seq, thread.at, thread.key.clone());
        self.heads.put_thread(thread);
        if deleted {
            return Ok(0);
        }
        let sql =
            "UPDATE thread SET oldest = ?2, base = ?3, head = ?4, head_at = ?5 WHERE id = ?1 AND oldest < ?2";
        let by = params![cut.thread, cut.oldest, cut.base, seq, at.0];
        if self.connection.prepare_cached(sql)?.execute(by)? == 0 {
            return Ok(0);
        }
        for name in &cut.runs {
            let run = RunKey::new(key.tenant.clone(), name.as_str());
            if let Some(mut run) = self.heads.take_run(&self.connection, &run)? {
                run.trimmed = true;
                self.connection.execute("UPDATE run SET trimmed = 1 WHERE id = ?1", [run.id])?;
                self.connection.execute("DELETE FROM checkpoint WHERE run = ?1", [run.id])?;
                self.heads.put_run(run);
            }
        }
        self.purges.push_back((cut.thread, cut.oldest - 1));
        Ok(cut.runs.len())
    }

    /// Removes some rows of what was deleted or trimmed.
    ///
    /// A row that holds records on both sides of the oldest one stays; what is too old in it is passed over.
    pub(super) fn purge(&mut self) -> Db<()> {
        let Some((thread, upto)) = self.purges.front().copied() else { return Ok(()) };
        let sql = "DELETE FROM chunk WHERE id IN \
                   (SELECT id FROM chunk WHERE thread = ?1 AND last <= ?2 ORDER BY last LIMIT ?3)";
        let removed =
            self.connection.prepare_cached(sql)?.execute(params![thread, upto, limits::PURGE_ROWS])?;
        if removed == limits::PURGE_ROWS {
            return Ok(());
        }
        self.purges.pop_front();
        if upto == EVERYTHING {
            self.empty_thread(thread)?;
        }
        Ok(())
    }

    /// Removes what is left of a deleted thread but the ids, so that they stay used up.
    fn empty_thread(&self, thread: i64) -> Db<()> {
        let runs = "SELECT id FROM run WHERE thread = ?1";
        for sql in [
            format!("DELETE FROM checkpoint WHERE run IN ({runs})"),
            format!("DELETE FROM producer WHERE scope = 'run' AND owner IN ({runs})"),
            "DELETE FROM producer WHERE scope = 'thread' AND owner = ?1".to_owned(),
            "UPDATE run SET head = NULL, request = '{}', agent = NULL, trimmed = 1 WHERE thread = ?1"
                .to_owned(),
            "UPDATE thread SET purged = 1 WHERE id = ?1".to_owned(),
        ] {
            self.connection.execute(&sql, [thread])?;
        }
        Ok(())
    }
}

/// A run that retention may remove.
struct Candidate {
    thread: i64,
    key: ThreadKey,
    run: String,
    first_seq: u64,
    last_seq: u64,
    ended_at: Option<Timestamp>,
}

/// A place where a thread can be cut: how many of its runs lie before it, and when the last of them ended.
struct Place {
    runs: usize,
    last_seq: u64,
    ended_at: Timestamp,
}

/// Finds out what retention removes.
pub(super) fn plan(reader: &mut Reader, retention: Retention) -> Result<Vec<Cut>, LogError> {
    let runs = candidates(reader)?;
    let threads: Vec<&[Candidate]> = runs.chunk_by(|one, next| one.thread == next.thread).collect();
    let places: Vec<Vec<Place>> = threads.iter().map(|runs| places(runs)).collect();
    // For each thread, how many of its places are passed.
    let is_old = |place: &Place| retention.ended_before.is_some_and(|moment| place.ended_at < moment);
    let mut passed: Vec<usize> =
        places.iter().map(|places| places.iter().take_while(|place| is_old(place)).count()).collect();
    if let Some(most) = retention.most_bytes {
        let mut excess = kept_bytes(reader)?.saturating_sub(most);
        let upto =
            |at: usize, passed: usize| passed.checked_sub(1).map_or(0, |last| places[at][last].last_seq);
        for at in 0..threads.len() {
            excess =
                excess.saturating_sub(bytes_between(reader, threads[at][0].thread, 0, upto(at, passed[at]))?);
        }
        let all = places.iter().enumerate();
        let all = all.flat_map(|(at, places)| (passed[at]..places.len()).map(move |place| (at, place)));
        let mut oldest_first: Vec<_> =
            all.map(|(at, place)| (places[at][place].ended_at, at, place)).collect();
        oldest_first.sort_unstable();
        for (_, at, place) in oldest_first {
            if excess == 0 {
                break;
            }
            let bytes = bytes_between(reader, threads[at][0].thread, upto(at, place), upto(at, place + 1))?;
            excess = excess.saturating_sub(bytes);
            passed[at] = place + 1;
        }
    }
    let mut cuts = Vec::new();
    for (at, runs) in threads.iter().enumerate() {
        let Some(place) = passed[at].checked_sub(1).map(|last| &places[at][last]) else { continue };
        let oldest = place.last_seq + 1;
        let window = reader.before(&runs[0].key, oldest)?;
        let base = serde_json::to_string(&Base::of(&window)).map_err(json_error)?;
        let names = runs[..place.runs].iter().map(|run| run.run.clone()).collect();
        cuts.push(Cut { thread: runs[0].thread, runs: names, oldest, base });
    }
    Ok(cuts)
}

/// Finds where the closed runs at the beginning of a thread share no record with what follows.
fn places(runs: &[Candidate]) -> Vec<Place> {
    let mut places = Vec::new();
    let (mut last_seq, mut latest) = (0, Timestamp(0));
    for (at, run) in runs.iter().enumerate() {
        let Some(ended_at) = run.ended_at else { break };
        (last_seq, latest) = (last_seq.max(run.last_seq), latest.max(ended_at));
        if runs.get(at + 1).is_none_or(|next| next.first_seq > last_seq) {
            places.push(Place { runs: at + 1, last_seq, ended_at: latest });
        }
    }
    places
}

/// Lists the runs that are kept, thread by thread in the order they began.
fn candidates(reader: &Reader) -> Result<Vec<Candidate>, LogError> {
    let sql = "SELECT thread.id, thread.tenant, thread.name, run.name, run.first_seq, run.last_seq, run.ended_at \
               FROM thread JOIN run ON run.thread = thread.id \
               WHERE thread.deleted_at IS NULL AND run.trimmed = 0 AND run.first_seq IS NOT NULL \
               ORDER BY thread.id, run.first_seq";
    let mut statement = reader.connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        Ok(Candidate {
            thread: row.get(0)?,
            key: ThreadKey::new(row.get::<_, String>(1)?, row.get::<_, String>(2)?),
            run: row.get(3)?,
            first_seq: row.get(4)?,
            last_seq: row.get(5)?,
            ended_at: row.get::<_, Option<u64>>(6)?.map(Timestamp),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Counts the bytes of all records; those that wait for being purged are gone already.
fn kept_bytes(reader: &Reader) -> Result<u64, LogError> {
    let sql = "SELECT coalesce(sum(length(body)), 0) FROM chunk JOIN thread ON thread.id = chunk.thread \
               WHERE thread.deleted_at IS NULL AND chunk.last >= thread.oldest";
    Ok(reader.connection.query_row(sql, [], |row| row.get(0))?)
}

/// Counts the bytes of the rows of a thread that end after one `seq` and not after another.
fn bytes_between(reader: &Reader, thread: i64, after: u64, upto: u64) -> Result<u64, LogError> {
    let sql = "SELECT coalesce(sum(length(body)), 0) FROM chunk JOIN thread ON thread.id = chunk.thread \
               WHERE chunk.thread = ?1 AND last > ?2 AND last <= ?3 AND last >= oldest";
    Ok(reader.connection.prepare_cached(sql)?.query_row(params![thread, after, upto], |row| row.get(0))?)
}
