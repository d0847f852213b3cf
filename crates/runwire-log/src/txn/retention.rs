//! Plans what retention removes: whole closed runs at the beginning of a thread, oldest first.

use runwire_model::Timestamp;

use crate::RetentionLimits;
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

/// The runs that retention removes from a thread.
pub(crate) struct ThreadTrim {
    pub(crate) thread: i64,
    pub(crate) key: ThreadKey,
    pub(crate) runs: Vec<String>,
    /// The first `seq` that is kept.
    pub(crate) oldest: u64,
}

/// A position where a thread can be cut: the number of runs before it, and when the last of them ended.
struct CutPoint {
    runs: usize,
    last_seq: u64,
    ended_at: Timestamp,
}

/// Plans which runs of each thread are removed.
///
/// The candidates are ordered by thread, then by their beginning. `kept_bytes` counts the bytes of all kept records,
/// `bytes_between` those of a thread after one `seq` and up to another.
pub(crate) fn plan_trims<E>(
    runs: &[Candidate],
    retention: RetentionLimits,
    kept_bytes: impl FnOnce() -> Result<u64, E>,
    mut bytes_between: impl FnMut(i64, u64, u64) -> Result<u64, E>,
) -> Result<Vec<ThreadTrim>, E> {
    let threads: Vec<&[Candidate]> = runs.chunk_by(|one, next| one.thread == next.thread).collect();
    let cut_points: Vec<Vec<CutPoint>> = threads.iter().map(|runs| cut_points(runs)).collect();
    // For each thread, the number of cut points that are passed.
    let is_old = |point: &CutPoint| retention.ended_before.is_some_and(|moment| point.ended_at < moment);
    let mut passed: Vec<usize> = cut_points
        .iter()
        .map(|cut_points| cut_points.iter().take_while(|point| is_old(point)).count())
        .collect();
    if let Some(most) = retention.max_bytes {
        let mut excess = kept_bytes()?.saturating_sub(most);
        let upto =
            |at: usize, passed: usize| passed.checked_sub(1).map_or(0, |last| cut_points[at][last].last_seq);
        for at in 0..threads.len() {
            excess = excess.saturating_sub(bytes_between(threads[at][0].thread, 0, upto(at, passed[at]))?);
        }
        let all = cut_points.iter().enumerate();
        let all =
            all.flat_map(|(at, cut_points)| (passed[at]..cut_points.len()).map(move |point| (at, point)));
        let mut oldest_first: Vec<_> =
            all.map(|(at, point)| (cut_points[at][point].ended_at, at, point)).collect();
        oldest_first.sort_unstable();
        for (_, at, point) in oldest_first {
            if excess == 0 {
                break;
            }
            let bytes = bytes_between(threads[at][0].thread, upto(at, point), upto(at, point + 1))?;
            excess = excess.saturating_sub(bytes);
            passed[at] = point + 1;
        }
    }
    let mut cuts = Vec::new();
    for (at, runs) in threads.iter().enumerate() {
        let Some(point) = passed[at].checked_sub(1).map(|last| &cut_points[at][last]) else { continue };
        cuts.push(ThreadTrim {
            thread: runs[0].thread,
            key: runs[0].key.clone(),
            runs: runs[..point.runs].iter().map(|run| run.run.clone()).collect(),
            oldest: point.last_seq + 1,
        });
    }
    Ok(cuts)
}

/// Returns the positions where the closed runs at the beginning of a thread share no record with what follows.
fn cut_points(runs: &[Candidate]) -> Vec<CutPoint> {
    let mut cut_points = Vec::new();
    let (mut last_seq, mut latest) = (0, Timestamp(0));
    for (at, run) in runs.iter().enumerate() {
        let Some(ended_at) = run.ended_at else { break };
        (last_seq, latest) = (last_seq.max(run.last_seq), latest.max(ended_at));
        if runs.get(at + 1).is_none_or(|next| next.first_seq > last_seq) {
            cut_points.push(CutPoint { runs: at + 1, last_seq, ended_at: latest });
        }
    }
    cut_points
}
