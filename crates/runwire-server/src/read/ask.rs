//! What a reader asks for, turned into a reader that stands at the right place.

use std::sync::Arc;

use http::HeaderMap;
use http::request::Parts;
use runwire_log::{LogError, ReadFormat, RunInfo, RunKey, ThreadKey};
use runwire_model::attach::offers_attach;
use runwire_model::dialect::{Dialect, EncoderOptions, Fidelity, Slots};

use super::accept::{self, Answer};
use super::{is_over, last_event_id};
use crate::feed::{Cursor, NotACursor, Reader, Shape, View, Walk};
use crate::problem::Problem;
use crate::query::Query;
use crate::{Wire, limits};

/// What a reader asks for.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) answer: Answer,
    /// The dialect; without one, the bytes as they came.
    pub(crate) form: Option<ReadFormat>,
    pub(crate) after: Option<Cursor>,
    pub(crate) follow: bool,
    pub(crate) limit: Option<usize>,
    pub(crate) compact: bool,
    pub(crate) attach: bool,
}

impl Ask {
    /// Reads query and headers.
    pub(crate) fn of_request(parts: &Parts) -> Result<Self, Problem> {
        let mut query = Query::parse(parts.uri.query());
        let ask = Self::of_query(&mut query, &parts.headers)?;
        query.finish()?;
        ask.check_attach()?;
        Ok(ask)
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
        let answer = accept::answer(headers, is_text)?;
        let with_cursors = query.flag("cursors")?.unwrap_or(false);
        let answer = match answer {
            Answer::Stream(Shape::Ndjson) if with_cursors => Answer::Stream(Shape::NdjsonWithCursors),
            answer => answer,
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
        let most = if answer == Answer::Page { limits::PAGE_FRAMES } else { 1 << 40 };
        Ok(Self {
            answer,
            form: (!raw).then_some(form),
            // A browser that reconnects says where it was; that is newer than what its address says.
            after: last.or(after),
            follow: follow.unwrap_or(true) && answer != Answer::Page,
            limit: query.number("limit", 1..=most)?,
            compact,
            // Whoever has a cursor has the past, and only misses the rest.
            attach: attach && last.or(after).is_none(),
        })
    }

    /// Refuses to attach in a dialect whose clients have no way to take the present in one go.
    pub(crate) fn check_attach(&self) -> Result<&Self, Problem> {
        match self.form.filter(|form| self.attach && !offers_attach(form.dialect)) {
            Some(form) => Err(attach_not_offered(form.dialect)),
            None => Ok(self),
        }
    }

    pub(crate) fn limit_or_default(&self) -> usize {
        self.limit.unwrap_or(limits::PAGE_FRAMES_DEFAULT)
    }

    /// Makes the reader of a run; none where the run has ended and everything was read.
    pub(crate) async fn read_run(&self, wire: &Arc<Wire>, key: &RunKey) -> Result<Option<Reader>, Problem> {
        self.reader_of_run(wire, key, false).await
    }

    /// Makes the reader of a run whose ordering values grow over the runs of its thread.
    pub(crate) async fn read_run_in_thread(
        &self,
        wire: &Arc<Wire>,
        key: &RunKey,
    ) -> Result<Option<Reader>, Problem> {
        self.reader_of_run(wire, key, true).await
    }

    async fn reader_of_run(
        &self,
        wire: &Arc<Wire>,
        key: &RunKey,
        in_thread: bool,
    ) -> Result<Option<Reader>, Problem> {
        let run = wire.log.run(key).await?;
        let thread = key.thread(run.thread_id.as_str());
        let view = View { thread: thread.clone(), run: Some(key.id.clone()), in_thread, form: self.form };
        // The tail is taken before the store is read, so that nothing falls between the two.
        let feed = wire.feeds.of(&wire.log, &view);
        let info = wire.log.thread(&thread).await?;
        let run = wire.log.run(key).await?;
        let after = self.after_in(info.head)?;
        if run.trimmed {
            let (run, oldest) = (run.run_id, info.oldest);
            return Err(LogError::RunTrimmed { run, oldest }.into());
        }
        // A run that nothing was written to begins after what the thread has now.
        let first_seq = run.first_seq.unwrap_or(info.head + 1);
        let start = Cursor::after(first_seq - 1);
        if let (true, Some(form)) = (self.attach, self.form) {
            let (walk, present) =
                Walk::present(wire.log.clone(), view, form, key.id.clone(), Some(first_seq)).await?;
            return Ok(Some(Reader::new(feed, start, self.follow).attach(walk, present)));
        }
        let at = after.unwrap_or(Cursor::START).max(start);
        if is_at_end(&run, at) {
            let mut probe = Reader::new(feed.clone(), at, false);
            if at.seq > run.last_seq || is_over(&mut probe).await?.is_none() {
                return Ok(None);
            }
        }
        let reader = Reader::new(feed, at, self.follow).compact(self.compact);
        Ok(Some(reader.tell_start(self.is_from_end())))
    }

    /// Makes the reader of a thread.
    pub(crate) async fn read_thread(&self, wire: &Arc<Wire>, key: &ThreadKey) -> Result<Reader, Problem> {
        let view = View { thread: key.clone(), run: None, in_thread: true, form: self.form };
        let feed = wire.feeds.of(&wire.log, &view);
        let info = wire.log.thread(key).await?;
        let after = self.after_in(info.head)?;
        if let Some(form) = self.form.filter(|form| info.parallel && !form.dialect.names_its_run()) {
            let detail =
                format!("runs of this thread lie side by side, and {} cannot tell them apart", form.dialect);
            return Err(Problem::new("needs_run", detail).with("thread_id", &*key.id));
        }
        if self.attach {
            return Err(Problem::bad_query("attach", "attach to a run: /v1/runs/{run}/events"));
        }
        let at = match after {
            Some(after) => after,
            // From the start means from the oldest that is kept.
            None => Cursor::after(info.oldest - 1),
        };
        if at.whole_records() + 1 < info.oldest {
            return Err(LogError::CursorTrimmed { after: at.seq, oldest: info.oldest }.into());
        }
        let reader = Reader::new(feed, at, self.follow).compact(self.compact && !info.parallel);
        Ok(reader.tell_start(self.is_from_end()))
    }

    fn is_from_end(&self) -> bool {
        self.after == Some(Cursor::END)
    }

    /// Tells the place to begin after in a thread whose last record is `head`.
    fn after_in(&self, head: u64) -> Result<Option<Cursor>, Problem> {
        match self.after {
            Some(Cursor::END) => Ok(Some(Cursor::after(head))),
            Some(after) if !after.is_valid_for(self.form.map_or(0, ReadFormat::first_frame)) => {
                let detail = format!(
                    "`{after}` was given in another dialect, or with other `fidelity` or `slots`; read on with those, or \
                     after the whole record: `{}`",
                    after.seq
                );
                Err(Problem::new("bad_cursor", detail))
            }
            Some(after) if after.seq > head => {
                Err(LogError::CursorBeyondEnd { after: after.seq, head }.into())
            }
            after => Ok(after),
        }
    }
}

/// Tells whether a place lies in or after the last record of a run that has ended.
fn is_at_end(run: &RunInfo, at: Cursor) -> bool {
    run.status.is_closed() && at.seq >= run.last_seq
}

/// Reads `after`: a cursor, or `end`.
pub(crate) fn after_of(text: &str) -> Result<Cursor, Problem> {
    if text == "end" { Ok(Cursor::END) } else { cursor_of("after", text) }
}

/// Reads a cursor.
pub(crate) fn cursor_of(place: &str, text: &str) -> Result<Cursor, Problem> {
    text.parse().map_err(|NotACursor| {
        let shown: String = text.chars().take(64).collect();
        let detail =
            format!("`{shown}` is no cursor; one is `seq` or `seq-k`, as `id:` has it; `0` is the start, and `after=end` the end");
        Problem::new("bad_cursor", detail).with("parameter", place)
    })
}

fn attach_not_offered(dialect: Dialect) -> Problem {
    let offered: Vec<_> =
        Dialect::ALL.into_iter().filter(|known| offers_attach(*known)).map(Dialect::name).collect();
    let detail = format!("`attach` is not offered in {dialect}; it is in {}", offered.join(", "));
    Problem::new("attach_not_offered", detail).with("expected", offered)
}
