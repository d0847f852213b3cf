//! The pump: writes what is new in a feed to all of its readers.
//!
//! The readers of a feed are in a list while they have everything that the loop has sent. When the feed has new segments,
//! a *pass* goes through the list and writes the same bytes to each socket, some sockets a turn. Where a reader stands is
//! its own, and each is checked before it is written to: a pass writes only to readers that stand where it begins.
//!
//! A reader leaves the list when its socket does not take everything. It keeps the rest of the chunk, by reference, until
//! the socket is writable; then it catches up with what the feed still holds, and returns to the list. If the feed holds no
//! more what it needs, a task continues its stream from the store. So a slow reader costs a reference to one segment, and
//! slows nobody.
//!
//! After a pass the feed rests for a multiple of the time that the pass has taken. A loop that fans out to very many readers
//! so leaves time to the writers and to the clients, and what is written meanwhile goes to each socket in one call.
//!
//! Tasks also get the readers that have to end: at the end of the run, at the end of a response where the reader stops
//! there, when the thread is deleted, and when the server stops.

use std::collections::hash_map::Entry;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use runwire_model::dialect::Dialect;

use super::event_loop::EventLoop;
use super::reader::LoopReader;
use super::socket::{LoopSocket, Role};
use crate::feed::{Feed, FeedListener, FeedPosition, HeldSegments, Segment, SubscriptionId, http_chunk};
use crate::limits;

/// How often a reader is written to while it catches up, before a task continues.
const CATCH_UP_RUNS: usize = 8;

/// The readers of one feed in one loop.
pub(super) struct FeedReaders {
    feed: Arc<Feed>,
    subscription: SubscriptionId,
    /// The sockets of readers that have everything up to `position`.
    list: Vec<usize>,
    /// All readers, also those that wait for their sockets.
    pub(super) readers: usize,
    /// The last record that was sent to the readers in the list.
    position: u64,
    /// There is no frame after this record, up to `position`: a reader that stands in between has everything.
    quiet_since: u64,
    pass: Option<Pass>,
    /// Whether the feed may hold more than `position`.
    changed: bool,
    /// Whether nobody follows the feed any more.
    ended: bool,
    last_pass: Instant,
    /// No pass begins before.
    rests_until: Instant,
    /// Whether the loop looks at it again then.
    is_resting: bool,
}

/// A pass through the list, from its end to its beginning.
///
/// A reader that leaves the list is replaced by the last one, which the pass has been at; one that comes is added behind
/// that. So no reader that it has not been at gets to a place behind it.
struct Pass {
    what: PassWork,
    /// The places below this are still to be visited.
    next: usize,
    /// The time that it has taken.
    took: Duration,
}

/// What a pass does with each reader.
enum PassWork {
    /// Writes segments to readers that stand in this range.
    Write { run: ChunkRun, from: (u64, u64) },
    /// Writes a keep-alive to readers that stand in this range.
    KeepAlive { chunk: Bytes, from: (u64, u64), sends_cursor: bool },
    /// Has each reader catch up by itself: the feed does not hold what follows the list's position.
    CatchUp,
    /// Hands each reader to a task.
    HandOver,
}

/// Consecutive segments, as the bytes to write.
struct ChunkRun {
    chunks: Vec<Chunk>,
    /// The last record of the segments, also of those without frames.
    upto: u64,
    /// Whether the next segment is not for the pump.
    stops: bool,
}

/// A segment in an HTTP chunk.
struct Chunk {
    bytes: Bytes,
    /// The last record.
    upto: u64,
    /// The `seq` of the last cursor, if readers are sent one.
    sent: Option<u64>,
}

impl ChunkRun {
    fn of(segments: &[Arc<Segment>], has_responses: bool) -> Option<Self> {
        let mut run = Self { chunks: Vec::new(), upto: segments.first()?.after, stops: false };
        for segment in segments {
            if segment.ends || (has_responses && segment.ends_response(segment.len())) {
                run.stops = true;
                break;
            }
            run.upto = segment.upto;
            if segment.len() > 0 {
                let (bytes, sent) = (segment.sse_chunk(), segment.last_sent_seq());
                run.chunks.push(Chunk { bytes, upto: segment.upto, sent });
            }
        }
        Some(run)
    }

    /// Writes everything to a reader's socket; returns whether the socket took it.
    fn write(&self, stream: &mio::net::TcpStream, reader: &mut LoopReader) -> io::Result<bool> {
        let mut count = match &self.chunks[..] {
            [] => 0,
            [only] => write_some(stream, &[IoSlice::new(&only.bytes)])?,
            chunks => {
                let mut slices = [IoSlice::new(&[]); limits::PUMPED_SEGMENTS];
                for (slice, chunk) in slices.iter_mut().zip(chunks) {
                    *slice = IoSlice::new(&chunk.bytes);
                }
                write_some(stream, &slices[..chunks.len().min(limits::PUMPED_SEGMENTS)])?
            }
        };
        for chunk in &self.chunks {
            if count == 0 {
                return Ok(false);
            }
            (reader.at, reader.sent) = (chunk.upto, chunk.sent.unwrap_or(reader.sent));
            if count < chunk.bytes.len() {
                reader.unsent = Some(Box::new(chunk.bytes.slice(count..)));
                return Ok(false);
            }
            count -= chunk.bytes.len();
        }
        reader.at = reader.at.max(self.upto);
        Ok(true)
    }
}

/// Writes what the socket takes: nothing if it is full.
fn write_some(mut stream: &mio::net::TcpStream, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    loop {
        let written = match slices {
            [only] => stream.write(only),
            several => stream.write_vectored(several),
        };
        match written {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            written => return written,
        }
    }
}

impl FeedReaders {
    pub(super) fn unsubscribe(&self, listener: &Arc<dyn FeedListener>) {
        self.feed.unsubscribe(listener, self.subscription);
    }

    /// Begins a pass, if there is something for the readers in the list.
    fn begin_pass(&mut self, now: Instant) {
        let work = self.next_work();
        self.pass = work.map(|what| {
            self.last_pass = now;
            Pass { what, next: self.list.len(), took: Duration::ZERO }
        });
    }

    fn next_work(&mut self) -> Option<PassWork> {
        if self.ended {
            self.changed = false;
            return (!self.list.is_empty()).then_some(PassWork::HandOver);
        }
        while std::mem::take(&mut self.changed) {
            let segments = match self.feed.held_after(self.position, limits::PUMPED_SEGMENTS) {
                HeldSegments::AtEnd => return None,
                HeldSegments::Some(segments) => segments,
                HeldSegments::Behind => {
                    self.skip_to_end();
                    return Some(PassWork::CatchUp);
                }
            };
            let run = ChunkRun::of(&segments, self.feed.has_responses())?;
            self.changed = run.stops || segments.len() == limits::PUMPED_SEGMENTS;
            match run.chunks.last() {
                Some(last) => {
                    let from = (self.quiet_since, self.position);
                    (self.quiet_since, self.position) = (last.upto, run.upto);
                    return Some(PassWork::Write { run, from });
                }
                None if run.stops && run.upto <= self.position => {
                    self.changed = false;
                    self.skip_to_end();
                    return Some(PassWork::HandOver);
                }
                None => self.position = run.upto.max(self.position),
            }
        }
        None
    }

    /// Moves the list's position to the end of the feed: its readers are looked at one by one.
    fn skip_to_end(&mut self) {
        self.position = self.feed.last_encoded().unwrap_or(self.position).max(self.position);
        self.quiet_since = self.position;
    }

    /// Returns the work of a keep-alive, which has the current cursor: it moves even while the dialect emits no frame.
    fn keep_alive(&self) -> PassWork {
        let from = (self.quiet_since, self.position);
        let sends_cursor = !self.feed.dialect().is_some_and(Dialect::has_bare_keep_alive);
        let chunk = match sends_cursor {
            true => http_chunk(format!(": keep-alive\nid: {}\n\n", self.position).as_bytes()),
            false => http_chunk(b": keep-alive\n\n"),
        };
        PassWork::KeepAlive { chunk, from, sends_cursor }
    }
}

impl EventLoop {
    /// Returns the place of a feed, which is subscribed to if it is new.
    pub(super) fn feed_readers(&mut self, feed: Arc<Feed>, at: u64) -> usize {
        let address = Arc::as_ptr(&feed).addr();
        if let Some(place) = self.feed_places.get(&address) {
            return *place;
        }
        let place = self.feeds.vacant_key();
        self.subscriptions = self.subscriptions.wrapping_add(1);
        let subscription = SubscriptionId { place, number: self.subscriptions };
        self.feeds.insert(FeedReaders {
            feed: feed.clone(),
            subscription,
            list: Vec::new(),
            readers: 0,
            position: at,
            quiet_since: at,
            pass: None,
            changed: false,
            ended: false,
            last_pass: self.now,
            rests_until: self.now,
            is_resting: false,
        });
        self.feed_places.insert(address, place);
        feed.subscribe(self.listener.clone(), subscription, at, &self.connections.runtime);
        place
    }

    /// Forgets a feed if it has no reader here.
    pub(super) fn drop_feed_without_readers(&mut self, place: usize) {
        if self.feeds.get(place).is_some_and(|feed| feed.readers == 0) {
            let feed = self.feeds.remove(place);
            self.forget_place(&feed.feed, place);
            feed.unsubscribe(&self.listener);
        }
    }

    /// Has the next reader of a feed subscribe anew.
    fn forget_place(&mut self, feed: &Arc<Feed>, place: usize) {
        if let Entry::Occupied(known) = self.feed_places.entry(Arc::as_ptr(feed).addr())
            && *known.get() == place
        {
            known.remove();
        }
    }

    /// Returns where a reader stands.
    pub(super) fn position_of(&self, key: usize) -> Option<FeedPosition> {
        let Role::Reader(reader) = &self.sockets.get(key)?.role else { return None };
        let feed = self.feeds[reader.feed()].feed.clone();
        Some(FeedPosition { feed, at: reader.at, options: reader.options })
    }

    /// Notes that a feed has changed. The message may be of a subscription that is gone, and its place of another feed.
    pub(super) fn feed_changed(&mut self, subscription: SubscriptionId, ended: bool) {
        let place = subscription.place;
        let feed = self.feeds.get_mut(place).filter(|feed| feed.subscription == subscription);
        let Some(feed) = feed else { return };
        feed.changed = true;
        if ended && !std::mem::replace(&mut feed.ended, true) {
            // Its readers leave. One that comes has the feed followed again.
            let feed = feed.feed.clone();
            self.forget_place(&feed, place);
        }
        self.begin_pass(place);
    }

    fn begin_pass(&mut self, place: usize) {
        let now = self.now;
        let Some(feed) = self.feeds.get_mut(place).filter(|feed| feed.pass.is_none()) else { return };
        if now < feed.rests_until {
            if !std::mem::replace(&mut feed.is_resting, true) {
                self.resting.push(place);
            }
            return;
        }
        feed.begin_pass(now);
        if feed.pass.is_some() {
            self.passes.push_back(place);
        }
    }

    /// Returns when the first feed has rested.
    pub(super) fn rest_ends(&self) -> Option<Instant> {
        let resting = self.resting.iter().filter_map(|place| self.feeds.get(*place));
        resting.map(|feed| feed.rests_until).min()
    }

    /// Begins the passes of feeds that have rested.
    pub(super) fn end_rests(&mut self) {
        if self.resting.is_empty() {
            return;
        }
        for place in std::mem::take(&mut self.resting) {
            // The feed may be gone, and its place another's.
            if let Some(feed) = self.feeds.get_mut(place)
                && std::mem::take(&mut feed.is_resting)
            {
                self.begin_pass(place);
            }
        }
    }

    /// Continues passes, for some sockets.
    pub(super) fn pump(&mut self) {
        let mut sockets = limits::PUMPED_SOCKETS;
        while sockets > 0
            && let Some(place) = self.passes.pop_front()
        {
            self.continue_pass(place, &mut sockets);
        }
    }

    fn continue_pass(&mut self, place: usize, sockets: &mut usize) {
        let Some(mut pass) = self.feeds.get_mut(place).and_then(|feed| feed.pass.take()) else { return };
        let begun = Instant::now();
        while *sockets > 0 {
            // The last reader may have taken its feed with it.
            let Some(feed) = self.feeds.get(place) else { return };
            pass.next = pass.next.min(feed.list.len());
            let Some(next) = pass.next.checked_sub(1) else { break };
            let key = feed.list[next];
            (pass.next, *sockets) = (next, *sockets - 1);
            self.visit(key, &pass.what);
        }
        let Some(feed) = self.feeds.get_mut(place) else { return };
        let now = Instant::now();
        pass.took += now - begun;
        if pass.next > 0 {
            feed.pass = Some(pass);
            self.passes.push_back(place);
            return;
        }
        if pass.took >= limits::LONG_PASS_TIME {
            feed.rests_until = now + (pass.took * limits::REST_PASSES).min(limits::REST_TIME);
        }
        if feed.changed || (feed.ended && !feed.list.is_empty()) {
            self.begin_pass(place);
        }
    }

    fn visit(&mut self, key: usize, work: &PassWork) {
        let Some((stream, reader)) = reader_of(&mut self.sockets, key) else { return };
        let at = reader.at;
        let stands_in = |from: &(u64, u64)| (from.0..=from.1).contains(&at);
        let done = match work {
            PassWork::Write { run, from } if stands_in(from) => run.write(stream, reader),
            // It came while the pass was on its way, and has read further already.
            PassWork::Write { run, .. } if at >= run.upto => Ok(true),
            PassWork::KeepAlive { chunk, from, sends_cursor } if stands_in(from) => {
                reader.at = from.1;
                write_some(stream, &[IoSlice::new(chunk)]).map(|count| {
                    if count > 0 && *sends_cursor {
                        reader.sent = reader.at;
                    }
                    if count > 0 && count < chunk.len() {
                        reader.unsent = Some(Box::new(chunk.slice(count..)));
                    }
                    count == chunk.len()
                })
            }
            PassWork::KeepAlive { .. } => Ok(true),
            PassWork::Write { .. } | PassWork::CatchUp => {
                self.unlist(key);
                return self.catch_up(key);
            }
            PassWork::HandOver => return self.hand_to_task(key),
        };
        match done {
            Ok(true) => {}
            Ok(false) => self.unlist(key),
            Err(_) => drop(self.take_socket(key)),
        }
    }

    /// Continues with a reader whose socket is writable again.
    pub(super) fn resume_reader(&mut self, key: usize) {
        let Some((stream, reader)) = reader_of(&mut self.sockets, key) else { return };
        if reader.place().is_some() {
            return;
        }
        while let Some(unsent) = &mut reader.unsent {
            match write_some(stream, &[IoSlice::new(unsent)]) {
                Ok(0) => return,
                Ok(count) if count == unsent.len() => reader.unsent = None,
                Ok(count) => **unsent = unsent.slice(count..),
                Err(_) => return drop(self.take_socket(key)),
            }
        }
        self.catch_up(key);
    }

    /// Writes to a reader what the feed holds after its position; then it is in the list, waits for its socket, or is given
    /// to a task.
    pub(super) fn catch_up(&mut self, key: usize) {
        // The others do not wait for one that is always behind.
        for _ in 0..CATCH_UP_RUNS {
            let Some((stream, reader)) = reader_of(&mut self.sockets, key) else { return };
            let place = reader.feed();
            let feed = &mut self.feeds[place];
            if feed.ended {
                return self.hand_to_task(key);
            }
            let segments = match feed.feed.held_after(reader.at, limits::PUMPED_SEGMENTS) {
                HeldSegments::AtEnd => {
                    // What is encoded from now on is announced.
                    reader.set_place(Some(feed.list.len()));
                    return feed.list.push(key);
                }
                HeldSegments::Some(segments) => segments,
                HeldSegments::Behind => return self.hand_to_task(key),
            };
            let Some(run) = ChunkRun::of(&segments, feed.feed.has_responses()) else { return };
            if run.stops && run.chunks.is_empty() && run.upto <= reader.at {
                break;
            }
            match run.write(stream, reader) {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) => return drop(self.take_socket(key)),
            }
        }
        self.hand_to_task(key);
    }

    /// Takes a reader out of the list of its feed.
    pub(super) fn unlist(&mut self, key: usize) {
        let Some((_, reader)) = reader_of(&mut self.sockets, key) else { return };
        let (Some(place), feed) = (reader.place(), reader.feed()) else { return };
        reader.set_place(None);
        let list = &mut self.feeds[feed].list;
        list.swap_remove(place);
        if let Some(moved) = list.get(place).copied()
            && let Some((_, moved)) = reader_of(&mut self.sockets, moved)
        {
            moved.set_place(Some(place));
        }
    }

    /// Sends keep-alives to the readers of feeds that were quiet for long.
    pub(super) fn keep_alive(&mut self) {
        let (now, keep_alive) = (self.now, self.connections.state.config.keep_alive);
        let quiet = |feed: &FeedReaders| feed.pass.is_none() && now - feed.last_pass >= keep_alive;
        let due: Vec<usize> =
            self.feeds.iter().filter(|(_, feed)| quiet(feed)).map(|(place, _)| place).collect();
        for place in due {
            // Records without frames are not announced, and move the cursor.
            if let Some(feed) = self.feeds.get_mut(place) {
                feed.changed = true;
            }
            self.begin_pass(place);
            let Some(feed) = self.feeds.get_mut(place).filter(|feed| feed.pass.is_none()) else { continue };
            feed.last_pass = now;
            feed.pass = Some(Pass { what: feed.keep_alive(), next: feed.list.len(), took: Duration::ZERO });
            self.passes.push_back(place);
        }
    }
}

fn reader_of(
    sockets: &mut slab::Slab<LoopSocket>,
    key: usize,
) -> Option<(&mio::net::TcpStream, &mut LoopReader)> {
    match sockets.get_mut(key) {
        Some(LoopSocket { stream, role: Role::Reader(reader), .. }) => Some((stream, reader)),
        _ => None,
    }
}
