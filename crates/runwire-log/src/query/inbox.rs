//! Queries of the inbox and of single interactions: a row locates the record, which has the content.

use runwire_model::Timestamp;

use super::ReadStore;
use crate::error::LogError;
use crate::interaction::{InboxCursor, Interaction, InteractionPage, InteractionQuery};
use crate::key::RunKey;
use crate::limits;
use crate::sql::{self, to_i64};
use crate::txn::{RecordSearch, question_in, resolution_in};
use crate::unreadable_rows::UnreadableTable;

/// The row of an open interaction.
pub(crate) struct InboxRow {
    pub(crate) number: u64,
    pub(crate) run: String,
    pub(crate) thread: i64,
    pub(crate) thread_name: String,
    pub(crate) agent: Option<String>,
    pub(crate) name: String,
    pub(crate) seq: u64,
    pub(crate) asked_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) bytes: usize,
}

impl InboxRow {
    fn cursor(&self) -> InboxCursor {
        InboxCursor { asked_at: self.asked_at, number: self.number }
    }
}

/// Lists open interactions, newest first.
pub(crate) fn interactions(
    store: &mut impl ReadStore,
    query: &InteractionQuery,
) -> Result<InteractionPage, LogError> {
    let mut page = InteractionPage::default();
    let mut bytes = 0;
    let mut last = None;
    for row in sql::inbox_rows(store, query).map_err(Into::into)? {
        if page.interactions.len() == query.limit || bytes >= limits::INBOX_BYTES {
            page.next = last;
            break;
        }
        last = Some(row.cursor());
        let search = RecordSearch { run: &row.run, first_seq: None, known: Some(row.seq) };
        let mut read = Ok(());
        let found = search.find(
            |after, wanted, show| read = store.visit(row.thread, after, wanted, &mut |stored| show(&stored)),
            |body, at| question_in(body, &row.name, at),
        );
        match read {
            Ok(()) => {}
            Err(failure @ LogError::Damaged(_)) => {
                store.unreadable().insert(UnreadableTable::Interaction, to_i64(row.number), &failure);
                continue;
            }
            Err(failure) => return Err(failure),
        }
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

/// Returns an interaction, open or resolved.
pub(crate) fn interaction(
    store: &mut impl ReadStore,
    key: &RunKey,
    id: &str,
) -> Result<Interaction, LogError> {
    let run = store.run_info(key)?;
    let unknown = || LogError::InteractionUnknown { run: key.id.to_string(), interaction: id.to_owned() };
    let asked = run.summary.interaction(id).cloned().ok_or_else(unknown)?;
    let thread = store.thread_row(&key.thread(run.thread_id.as_str()))?;
    if run.trimmed {
        return Err(LogError::RunTrimmed { run: run.run_id, oldest: thread.oldest });
    }
    let search = |known| RecordSearch { run: &run.run_id, first_seq: run.first_seq, known };
    let mut read = Ok(());
    let question = search(asked.asked_seq).find(
        |after, wanted, show| read = store.visit(thread.id, after, wanted, &mut |stored| show(&stored)),
        |body, at| question_in(body, id, at),
    );
    read?;
    let mut read = Ok(());
    let answer = match asked.is_open() {
        true => None,
        false => search(asked.settled_seq).find(
            |after, wanted, show| read = store.visit(thread.id, after, wanted, &mut |stored| show(&stored)),
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
