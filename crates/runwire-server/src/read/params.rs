//! The parameters of a read request, parsed from query and headers, and the reader that they describe.

use std::sync::Arc;

use http::HeaderMap;
use http::request::Parts;
use runwire_log::{LogError, ReadFormat, RunInfo, RunKey, ThreadKey};
use runwire_model::ErrorCode;
use runwire_model::dialect::{Dialect, EncoderOptions, Fidelity, Slots};

use super::accept::{self, ResponseFormat};
use super::{last_event_id, next_unread};
use crate::feed::{FeedCursor, FeedEncoder, FeedKey, FeedReader, InvalidCursor, StreamFormat};
use crate::problem::Problem;
use crate::query::Query;
use crate::{AppState, limits};

/// Parameters of a read.
#[derive(Debug, Clone)]
pub(crate) struct ReadParams {
    pub(crate) format: ResponseFormat,
    /// The dialect and its options; none for raw bytes.
    pub(crate) form: Option<ReadFormat>,
    pub(crate) after: Option<FeedCursor>,
    pub(crate) follow: bool,
    pub(crate) limit: Option<usize>,
    pub(crate) compact: bool,
    pub(crate) attach: bool,
}

impl ReadParams {
    /// Parses query and headers.
    pub(crate) fn of_request(parts: &Parts) -> Result<Self, Problem> {
        let mut query = Query::parse(parts.uri.query());
        let params = Self::of_query(&mut query, &parts.headers)?;
        query.finish()?;
        params.check_attach()?;
        Ok(params)
    }

    fn of_query(query: &mut Query<'_>, headers: &HeaderMap) -> Result<Self, Problem> {
        let raw = query.flag("raw")?.unwrap_or(false);
        let dialect = query.dialect("dialect", &Dialect::ALL)?;
        let fidelity = match query.take("fidelity")? {
            None => Fidelity::default(),
            Some(name) => Fidelity::from_name(&name)
                .ok_or_else(|| Problem::bad_query("fidelity", "`fidelity` is `native` or `full`"))?,
        };
        let slots = match query.take("slots")? {
            None => Slots::default(),
            Some(name) => Slots::from_name(&name)
                .ok_or_else(|| Problem::bad_query("slots", "`slots` is `all`, `asks` or `none`"))?,
        };
        let form = ReadFormat::with(dialect.unwrap_or(Dialect::Runwire), EncoderOptions { fidelity, slots });
        let is_text = !raw && form.dialect == Dialect::Text;
        let format = accept::response_format(headers, is_text)?;
        let with_cursors = query.flag("cursors")?.unwrap_or(false);
        let format = match format {
            ResponseFormat::Stream(StreamFormat::Ndjson) if with_cursors => {
                ResponseFormat::Stream(StreamFormat::NdjsonWithCursors)
            }
            format => format,
        };
        let after = query.take("after")?.map(|after| after_of(&after)).transpose()?;
        let last = last_event_id(headers)?;
        let attach = match query.take("attach")?.as_deref() {
            None => false,
            Some("snapshot") => true,
            Some(_) => return Err(Problem::bad_query("attach", "`attach` is `snapshot`, or left out")),
        };
        let compact = query.flag("compact")?.unwrap_or(false);
        if raw && (attach || compact) {
            let detail = "`raw` gives the bytes as they came, so it goes with neither `attach` nor `compact`";
            return Err(Problem::bad_query("raw", detail));
        }
        let follow = query.flag("follow")?;
        let max_limit = if format == ResponseFormat::Page { limits::PAGE_FRAMES } else { 1 << 40 };
        Ok(Self {
            format,
            form: (!raw).then_some(form),
            // A reconnecting browser sends `Last-Event-ID`, which is newer than the cursor in its URL.
            after: last.or(after),
            follow: follow.unwrap_or(true) && format != ResponseFormat::Page,
            limit: query.number("limit", 1..=max_limit)?,
            compact,
            // A client with a cursor needs no snapshot.
            attach: attach && last.or(after).is_none(),
        })
    }

    /// Refuses `attach` in dialects that have no snapshot frames.
    pub(crate) fn check_attach(&self) -> Result<&Self, Problem> {
        match self.form.filter(|form| self.attach && !form.dialect.offers_attach()) {
            Some(form) => Err(attach_not_offered(form.dialect)),
            None => Ok(self),
        }
    }

    pub(crate) fn limit_or_default(&self) -> usize {
        self.limit.unwrap_or(limits::PAGE_FRAMES_DEFAULT)
    }

    /// Creates the reader of a run; none if the run has ended and everything was read.
    pub(crate) async fn read_run(
        &self,
        state: &Arc<AppState>,
        key: &RunKey,
    ) -> Result<Option<FeedReader>, Problem> {
        self.reader_of_run(state, key, false).await
    }

    /// Creates the reader of a run whose ordering values count over all runs of its thread.
    pub(crate) async fn read_run_in_thread(
        &self,
        state: &Arc<AppState>,
        key: &RunKey,
    ) -> Result<Option<FeedReader>, Problem> {
        self.reader_of_run(state, key, true).await
    }

    async fn reader_of_run(
        &self,
        state: &Arc<AppState>,
        key: &RunKey,
        in_thread: bool,
    ) -> Result<Option<FeedReader>, Problem> {
        let run = state.log.run(key).await?;
        let thread = key.thread(run.thread_id.as_str());
        let feed_key =
            FeedKey { thread: thread.clone(), run: Some(key.id.clone()), in_thread, form: self.form };
        // The feed subscribes to the tail before the store is read, so that no commit is missed in between.
        let feed = state.feeds.of(&state.log, &feed_key);
        let info = state.log.thread(&thread).await?;
        let run = state.log.run(key).await?;
        let after = self.after_in(info.head)?;
        if run.trimmed {
            let (run, oldest) = (run.run_id, info.oldest);
            return Err(LogError::RunTrimmed { run, oldest }.into());
        }
        // A run without records starts after the thread's last record.
        let first_seq = run.first_seq.unwrap_or(info.head + 1);
        let start = FeedCursor::after(first_seq - 1);
        if let (true, Some(form)) = (self.attach, self.form) {
            let (log, id) = (state.log.clone(), key.id.clone());
            let share = feed.memory_share();
            let snapshot = FeedEncoder::snapshot(log, feed_key, form, id, Some(first_seq), share).await?;
            let reader = FeedReader::new(feed, start, self.follow);
            return Ok(Some(match snapshot {
                Some((encoder, snapshot)) => reader.attach(encoder, snapshot),
                // Too much for one go: the same client reads the run from its start, in as few frames as that takes.
                None => reader.compact(true),
            }));
        }
        let at = after.unwrap_or(FeedCursor::START).max(start);
        if is_at_end(&run, at) {
            let mut probe = FeedReader::new(feed.clone(), at, false);
            if at.seq > run.last_seq || next_unread(&mut probe).await?.is_none() {
                return Ok(None);
            }
        }
        let reader = FeedReader::new(feed, at, self.follow).compact(self.compact);
        Ok(Some(reader.announce_start(self.is_from_end())))
    }

    /// Creates the reader of a thread.
    pub(crate) async fn read_thread(
        &self,
        state: &Arc<AppState>,
        key: &ThreadKey,
    ) -> Result<FeedReader, Problem> {
        let feed_key = FeedKey { thread: key.clone(), run: None, in_thread: true, form: self.form };
        let feed = state.feeds.of(&state.log, &feed_key);
        let info = state.log.thread(key).await?;
        let after = self.after_in(info.head)?;
        if let Some(form) = self.form.filter(|form| info.parallel && !form.dialect.names_its_run()) {
            let detail =
                format!("runs of this thread lie side by side, and {} cannot tell them apart", form.dialect);
            let expected = Dialect::ALL.into_iter().filter(|known| known.names_its_run());
            let expected: Vec<_> = expected.map(Dialect::name).collect();
            let problem = Problem::new(ErrorCode::NeedsRun, detail).with("thread_id", &*key.id);
            return Err(problem.with("expected", expected));
        }
        if self.attach {
            return Err(Problem::bad_query("attach", "attach to a run: /v1/runs/{run}/events"));
        }
        let at = match after {
            Some(after) => after,
            // The start is the oldest record that retention has kept.
            None => FeedCursor::after(info.oldest - 1),
        };
        if at.whole_records() + 1 < info.oldest {
            return Err(LogError::CursorTrimmed { after: at.seq, oldest: info.oldest }.into());
        }
        let reader = FeedReader::new(feed, at, self.follow).compact(self.compact && !info.parallel);
        Ok(reader.announce_start(self.is_from_end()))
    }

    fn is_from_end(&self) -> bool {
        self.after == Some(FeedCursor::END)
    }

    /// Returns the start cursor in a thread whose last record is `head`.
    fn after_in(&self, head: u64) -> Result<Option<FeedCursor>, Problem> {
        match self.after {
            Some(FeedCursor::END) => Ok(Some(FeedCursor::after(head))),
            Some(after) if !after.is_valid_for(self.form.map_or(0, ReadFormat::first_frame)) => {
                let detail = format!(
                    "`{after}` was given in another dialect, or with other `fidelity` or `slots`; read on with those, or \
                     after the whole record: `{}`",
                    after.seq
                );
                Err(Problem::new(ErrorCode::BadCursor, detail))
            }
            Some(after) if after.seq > head => {
                Err(LogError::CursorBeyondEnd { after: after.seq, head }.into())
            }
            after => Ok(after),
        }
    }
}

/// Returns true if a cursor lies in or after the last record of an ended run.
fn is_at_end(run: &RunInfo, at: FeedCursor) -> bool {
    run.status.is_closed() && at.seq >= run.last_seq
}

/// Parses `after`: a cursor or `end`.
pub(crate) fn after_of(text: &str) -> Result<FeedCursor, Problem> {
    if text == "end" { Ok(FeedCursor::END) } else { cursor_of("after", text) }
}

/// Parses a cursor; `place` names the parameter or header in the error.
pub(crate) fn cursor_of(place: &str, text: &str) -> Result<FeedCursor, Problem> {
    text.parse().map_err(|InvalidCursor| {
        let shown: String = text.chars().take(64).collect();
        let detail =
            format!("`{shown}` is no cursor; one is `seq` or `seq-k`, as `id:` has it; `0` is the start, and `after=end` the end");
        Problem::new(ErrorCode::BadCursor, detail).with("parameter", place)
    })
}

fn attach_not_offered(dialect: Dialect) -> Problem {
    let offered: Vec<_> =
        Dialect::ALL.into_iter().filter(|known| known.offers_attach()).map(Dialect::name).collect();
    let detail = format!("`attach` is not offered in {dialect}; it is in {}", offered.join(", "));
    Problem::new(ErrorCode::AttachNotOffered, detail).with("expected", offered)
}
