//! The inbox: one row for each question that is open, so that listing them touches no other run.

use runwire_model::Timestamp;
use rusqlite::{Connection, params};

use super::read::{Reader, visit, whole_number};
use crate::error::LogError;
use crate::interaction::{InboxPlace, Interaction, InteractionPage, InteractionQuery};
use crate::key::RunKey;
use crate::limits;
use crate::work::{Head, Place, question_in, resolution_in};

/// Brings the rows of a run's open questions up to date; the run has its own.
pub(super) fn save_questions(connection: &Connection, run: i64, head: &Head) -> rusqlite::Result<()> {
    if head.summary.interactions.is_empty() {
        return Ok(());
    }
    let open = &head.state.questions;
    let known: Vec<String> = {
        let mut known = connection.prepare_cached("SELECT name FROM question WHERE run = ?1")?;
        known.query_map([run], |row| row.get(0))?.collect::<Result<_, _>>()?
    };
    for settled in known.iter().filter(|name| open.iter().all(|question| question.id != **name)) {
        let sql = "DELETE FROM question WHERE run = ?1 AND name = ?2";
        connection.prepare_cached(sql)?.execute(params![run, settled])?;
    }
    for question in open.iter().filter(|question| !known.contains(&question.id)) {
        let asked = head.summary.interaction(&question.id);
        let sql = "INSERT INTO question (tenant, run, name, seq, asked_at, expires_at, bytes) \
                   SELECT tenant, id, ?2, ?3, coalesce(?4, started_at, created_at), ?5, ?6 FROM run WHERE id = ?1";
        connection.prepare_cached(sql)?.execute(params![
            run,
            question.id,
            question.place.seq,
            asked.and_then(|asked| asked.asked_at),
            asked.and_then(|asked| asked.expires_at).map(whole_number),
            question.bytes,
        ])?;
    }
    Ok(())
}

/// A row of the inbox.
struct Row {
    number: u64,
    run: String,
    thread: i64,
    thread_name: String,
    agent: Option<String>,
    name: String,
    seq: u64,
    asked_at: Timestamp,
    expires_at: Option<Timestamp>,
    bytes: usize,
}

impl Row {
    fn place(&self) -> InboxPlace {
        InboxPlace { asked_at: self.asked_at, number: self.number }
    }
}

impl Reader {
    pub(super) fn interactions(&mut self, query: &InteractionQuery) -> Result<InteractionPage, LogError> {
        let rows = self.inbox_rows(query)?;
        let mut page = InteractionPage::default();
        let mut bytes = 0;
        let mut last = None;
        for row in rows {
            if page.interactions.len() == query.limit || bytes >= limits::INBOX_BYTES {
                page.next = last;
                break;
            }
            last = Some(row.place());
            let place = Place { run: &row.run, first_seq: None, known: Some(row.seq) };
            let mut read = Ok(());
            let found = place.find(
                |after, show| {
                    let mut show = |stored| show(&stored);
                    read = visit(&self.connection, &mut self.names, row.thread, after, &mut show);
                },
                |body, at| question_in(body, &row.name, at),
            );
            read?;
            let Some((question, asked_at)) = found else { continue };
            bytes += row.bytes;
            page.interactions.push(Interaction {
                run_id: row.run,
                thread_id: row.thread_name,
                agent: row.agent,
                question,
                asked_at,
                expires_at: row.expires_at,
                answer: None,
            });
        }
        Ok(page)
    }

    /// Reads one row more than the page has, to know whether there is a next one.
    fn inbox_rows(&self, query: &InteractionQuery) -> rusqlite::Result<Vec<Row>> {
        let end = InboxPlace { asked_at: Timestamp(u64::MAX), number: u64::MAX };
        let before = query.before.unwrap_or(end);
        let sql = "SELECT question.id, run.name, run.thread, thread.name, run.agent, question.name, question.seq, \
                   question.asked_at, question.expires_at, question.bytes FROM question JOIN run ON run.id = question.run \
                   JOIN thread ON thread.id = run.thread WHERE question.tenant = ?1 \
                   AND (question.asked_at, question.id) < (?2, ?3) AND (?4 IS NULL OR run.name = ?4) \
                   AND (?5 IS NULL OR run.agent = ?5) AND (?6 IS NULL OR thread.name = ?6) \
                   ORDER BY question.asked_at DESC, question.id DESC LIMIT ?7";
        let mut statement = self.connection.prepare_cached(sql)?;
        let by = params![
            query.tenant,
            whole_number(before.asked_at.0),
            whole_number(before.number),
            query.run,
            query.agent,
            query.thread,
            whole_number(query.limit as u64 + 1),
        ];
        let rows = statement.query_map(by, |row| {
            Ok(Row {
                number: row.get(0)?,
                run: row.get(1)?,
                thread: row.get(2)?,
                thread_name: row.get(3)?,
                agent: row.get(4)?,
                name: row.get(5)?,
                seq: row.get(6)?,
                asked_at: Timestamp(row.get(7)?),
                expires_at: row.get::<_, Option<u64>>(8)?.map(Timestamp),
                bytes: row.get(9)?,
            })
        })?;
        rows.collect()
    }

    pub(super) fn interaction(&mut self, key: &RunKey, id: &str) -> Result<Interaction, LogError> {
        let run = self.run(key)?;
        let unknown = || LogError::InteractionUnknown { run: key.id.to_string(), interaction: id.to_owned() };
        let asked = run.summary.interaction(id).cloned().ok_or_else(unknown)?;
        let thread = self.thread_row(&key.thread(run.thread_id.as_str()))?;
        if run.trimmed {
            return Err(LogError::RunTrimmed { run: run.run_id, oldest: thread.oldest });
        }
        let place = |known| Place { run: &run.run_id, first_seq: run.first_seq, known };
        let (connection, names) = (&self.connection, &mut self.names);
        let mut read = Ok(());
        let question = place(asked.asked_seq).find(
            |after, show| read = visit(connection, names, thread.id, after, &mut |stored| show(&stored)),
            |body, at| question_in(body, id, at),
        );
        read?;
        let mut read = Ok(());
        let answer = match asked.is_open() {
            true => None,
            false => place(asked.settled_seq).find(
                |after, show| read = visit(connection, names, thread.id, after, &mut |stored| show(&stored)),
                |body, at| resolution_in(body, id, at),
            ),
        };
        read?;
        let (question, asked_at) = question.ok_or_else(unknown)?;
        Ok(Interaction {
            run_id: run.run_id,
            thread_id: run.thread_id,
            agent: run.agent,
            question,
            asked_at,
            expires_at: asked.expires_at.map(Timestamp),
            answer,
        })
    }
}
