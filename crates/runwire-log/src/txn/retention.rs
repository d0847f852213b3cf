//! What retention removes: whole closed runs at the beginning of a thread, oldest first.

use runwire_model::Timestamp;

use crate::Retention;
use crate::key::ThreadKey;

/// A run that retention may remove.
pub(crate) struct Candidate {
    pub(crate) thread: i64,
    pub(crate) key: ThreadKey,
    pub(crate) run: String,
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    pub(crate) ended_at: Option<Timestamp>,
}

/// What retention removes from a thread.
pub(crate) struct Cut {
    pub(crate) thread: i64,
    pub(crate) key: ThreadKey,
    pub(crate) runs: Vec<String>,
    /// The first `seq` that is kept.
    pub(crate) oldest: u64,
}

/// A place where a thread can be cut: how many of its runs lie before it, and when the last of them ended.
struct Place {
    runs: usize,
    last_seq: u64,
    ended_at: Timestamp,
}

/// Chooses where threads are cut.
///
/// The candidates come thread by thread, in the order they began. `kept_bytes` counts the bytes of all records that
/// are kept, `bytes_between` those of a thread after one `seq` and not after another.
pub(crate) fn choose_cuts<E>(
    runs: &[Candidate],
    retention: Retention,
    kept_bytes: impl FnOnce() -> Result<u64, E>,
    mut bytes_between: impl FnMut(i64, u64, u64) -> Result<u64, E>,
) -> Result<Vec<Cut>, E> {
    let threads: Vec<&[Candidate]> = runs.chunk_by(|one, next| one.thread == next.thread).collect();
    let places: Vec<Vec<Place>> = threads.iter().map(|runs| places(runs)).collect();
    // For each thread, how many of its places are passed.
    let is_old = |place: &Place| retention.ended_before.is_some_and(|moment| place.ended_at < moment);
    let mut passed: Vec<usize> =
        places.iter().map(|places| places.iter().take_while(|place| is_old(place)).count()).collect();
    if let Some(most) = retention.most_bytes {
        let mut excess = kept_bytes()?.saturating_sub(most);
        let upto =
            |at: usize, passed: usize| passed.checked_sub(1).map_or(0, |last| places[at][last].last_seq);
        for at in 0..threads.len() {
            excess = excess.saturating_sub(bytes_between(threads[at][0].thread, 0, upto(at, passed[at]))?);
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
            let bytes = bytes_between(threads[at][0].thread, upto(at, place), upto(at, place + 1))?;
            excess = excess.saturating_sub(bytes);
            passed[at] = place + 1;
        }
    }
    let mut cuts = Vec::new();
    for (at, runs) in threads.iter().enumerate() {
        let Some(place) = passed[at].checked_sub(1).map(|last| &places[at][last]) else { continue };
        cuts.push(Cut {
            thread: runs[0].thread,
            key: runs[0].key.clone(),
            runs: runs[..place.runs].iter().map(|run| run.run.clone()).collect(),
            oldest: place.last_seq + 1,
        });
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
