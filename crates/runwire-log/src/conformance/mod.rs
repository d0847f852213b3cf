//! The suite that any [`Log`] must pass: one function per promise, named after it.
//!
//! An implementation says how a store of it is opened ([`Bed`]) and calls
//! [`log_conformance!`](crate::log_conformance), which makes one test of each promise, so that none can be
//! forgotten. A promise that is broken panics.

pub mod answers;
pub mod deletion;
pub mod dialects;
pub mod exactly_once;
pub mod extremes;
pub mod faults;
mod fixture;
pub mod frame_check;
pub mod inbox;
pub mod leases;
pub mod lists;
pub mod order;
pub mod orphans;
pub mod outbox;
pub mod retention;
pub mod runs;
pub mod stats;
pub mod tails;
pub mod tenant_append;
pub mod threads;
pub mod transfer;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::Log;

/// How long a store waits for its producers.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// How long a run may be silent.
    pub lease: Duration,
    /// How long a producer has to end a run that was asked to stop.
    pub cancel_grace: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self { lease: Duration::from_secs(600), cancel_grace: Duration::from_secs(600) }
    }
}

/// One store, empty at first, that a test has for itself.
#[async_trait]
pub trait Bed: Send + Sync {
    /// Opens the store.
    async fn open(&self, timing: Timing) -> Arc<dyn Log>;

    /// Closes the store, whose only user hands it in, and opens it again.
    async fn reopen(&self, log: Arc<dyn Log>, timing: Timing) -> Arc<dyn Log>;
}

/// Makes a test of every promise of the suite; the expression makes a [`Bed`](crate::conformance::Bed).
#[macro_export]
macro_rules! log_conformance {
    ($bed:expr) => {
        $crate::log_conformance! { @each $bed;
            order::seq_is_contiguous_from_1_and_time_never_goes_backwards,
            order::pages_join_to_the_whole_thread,
            order::what_is_acknowledged_is_there_after_reopening,
            order::frames_are_kept_byte_for_byte_with_their_names,
            order::many_writers_of_many_runs_each_get_their_own_order,
            order::one_run_written_by_many_keeps_one_order,
            faults::a_bad_frame_stops_there_and_what_came_before_stays,
            faults::a_bad_frame_leaves_guard_and_decoder_as_they_were,
            faults::a_bad_first_frame_creates_nothing,
            faults::a_bad_first_frame_does_not_undo_what_was_just_created,
            faults::a_refused_append_among_neighbours_hurts_none_of_them,
            faults::an_append_without_frames_creates_nothing,
            exactly_once::a_repeated_body_is_counted_as_duplicates,
            exactly_once::an_overlapping_body_writes_only_what_is_new,
            exactly_once::a_gap_is_refused_with_the_index_that_is_expected,
            exactly_once::a_new_epoch_goes_on_from_next_and_fences_the_old,
            exactly_once::a_fenced_producer_stays_fenced_after_any_refusal,
            exactly_once::the_check_comes_before_run_closed_and_the_dialect,
            exactly_once::a_refused_frame_uses_up_no_index,
            exactly_once::end_marks_use_up_an_index_and_pin_no_dialect,
            exactly_once::producers_do_not_share_their_places,
            exactly_once::a_thread_has_producers_of_its_own,
            exactly_once::producers_of_a_run_are_bounded,
            dialects::the_first_frames_tell_the_dialect_and_pin_it,
            dialects::what_tells_no_dialect_is_refused_whole,
            dialects::ag_ui_may_turn_out_to_be_social_app,
            dialects::ag_ui_chunks_in_pieces_mean_the_same,
            dialects::gathered_arguments_are_found_across_appends_and_reopening,
            dialects::slots_of_loom_export_in_pieces_mean_the_same,
            dialects::what_is_open_is_closed_at_the_end_after_reopening,
            dialects::ids_of_earlier_runs_are_not_used_twice_after_reopening,
            frame_check::a_strict_append_refuses_what_the_document_does_not_allow,
            frame_check::a_strict_body_may_arrive_in_pieces,
            frame_check::a_frame_that_breaks_its_document_uses_up_no_index,
            frame_check::what_breaks_a_document_is_counted_once_as_a_warning,
            frame_check::warnings_of_a_run_are_bounded,
            frame_check::a_frame_that_would_begin_a_run_is_refused_before_anything_happens,
            frame_check::frames_that_are_not_to_be_checked_are_not,
            runs::creating_a_run_twice_in_the_same_words_gives_it_again,
            runs::what_an_attempt_has_created_is_new_to_it_again,
            runs::what_created_a_run_wins_over_what_its_producer_says,
            runs::a_run_takes_the_agent_that_its_producer_names,
            runs::a_run_without_a_thread_gets_one_of_its_own,
            runs::end_completes_a_run_that_no_frame_has_ended,
            runs::a_closed_run_takes_no_frame,
            runs::producers_cannot_forge_what_belongs_to_people,
            runs::a_cancelled_pending_run_is_closed_at_once,
            runs::a_cancelled_running_run_is_asked_first,
            runs::a_cancelled_suspended_run_is_closed_at_once,
            runs::a_closed_run_is_told_as_it_is_when_cancelled,
            runs::a_summary_counts_what_the_fold_counts,
            leases::a_silent_producer_is_lost_after_its_lease,
            leases::a_run_that_was_never_written_to_is_lost_too,
            leases::writes_and_heartbeats_renew_a_lease,
            leases::a_lease_pauses_while_a_question_is_open,
            leases::a_question_expires_alone_and_resumes_its_run,
            leases::a_run_that_asks_after_a_cancel_is_still_stopped,
            leases::every_lease_gets_a_full_term_after_reopening,
            orphans::a_run_is_given_once_and_only_after_its_server_is_gone,
            orphans::what_no_server_has_started_and_what_has_ended_is_not_given,
            orphans::a_store_that_is_open_alone_is_the_leader,
            answers::the_first_answer_wins_and_the_next_is_told_which,
            answers::the_same_answer_of_the_same_person_is_told_again,
            answers::of_many_who_answer_at_once_one_wins,
            answers::the_last_answer_resumes_the_run,
            answers::answers_that_are_given_together_are_one_record,
            answers::of_answers_that_are_given_together_all_are_taken_or_none,
            answers::a_closed_run_takes_no_answer,
            answers::what_a_run_did_not_ask_takes_no_answer,
            answers::an_expired_question_takes_no_answer,
            answers::a_cancel_races_an_answer,
            answers::a_question_is_told_with_its_answer,
            inbox::open_questions_are_listed_newest_first_with_filters_and_pages,
            inbox::what_is_settled_leaves_the_inbox,
            inbox::large_questions_make_small_pages,
            inbox::a_question_moves_with_its_run,
            outbox::subscribers_are_told_what_they_asked_for_and_nothing_else,
            outbox::a_notice_stays_until_it_was_told,
            outbox::a_notice_that_was_tried_in_vain_waits,
            outbox::the_end_of_a_deleted_thread_is_told,
            outbox::imported_events_are_told_to_nobody,
            stats::figures_tell_what_was_written_and_what_is_open,
            stats::health_tells_whether_the_log_can_be_used,
            threads::a_thread_has_one_open_run,
            threads::a_parallel_thread_has_several_open_runs_up_to_a_limit,
            threads::creating_a_thread_again_tells_how_far_it_is,
            threads::several_runs_in_one_stream_follow_each_other,
            threads::a_second_start_cuts_off_the_first,
            threads::interleaved_sessions_lie_side_by_side_in_a_parallel_thread,
            threads::a_taken_run_id_is_minted_anew_and_stays_an_alias,
            threads::an_interrupt_is_resumed_under_another_run_id,
            threads::a_late_frame_of_an_ended_run_is_refused,
            threads::anothers_open_run_is_not_cut_off,
            threads::a_refused_frame_does_not_rename_its_run,
            threads::the_end_of_a_stream_ends_its_runs,
            tenant_append::each_frame_goes_to_the_thread_and_run_that_it_names,
            tenant_append::a_stream_of_sessions_is_written_once,
            tenant_append::many_sessions_go_on_across_appends_and_reopening,
            tenant_append::a_frame_that_names_nothing_stops_the_stream_there,
            tenant_append::frames_that_name_their_run_alone_find_its_thread,
            tenant_append::dialects_that_name_no_session_are_refused,
            tenant_append::anothers_open_run_of_a_session_is_not_written_to,
            tenant_append::a_session_of_a_deleted_thread_is_refused,
            tenant_append::runs_of_a_parallel_thread_have_sessions_of_their_own,
            deletion::a_thread_with_an_open_run_is_kept_unless_forced,
            deletion::a_deleted_thread_is_gone_and_its_ids_stay_used_up,
            deletion::readers_are_told_of_a_deletion,
            deletion::frames_of_the_same_moment_go_with_the_thread,
            deletion::a_deletion_survives_reopening,
            retention::runs_that_ended_before_a_moment_are_removed,
            retention::runs_that_ended_so_long_ago_are_removed,
            retention::the_oldest_runs_go_until_the_rest_fits,
            retention::trimming_again_at_once_removes_no_more,
            retention::what_lies_behind_an_open_run_is_kept,
            retention::runs_side_by_side_go_together,
            retention::messages_and_state_before_the_cut_are_kept,
            retention::a_thread_goes_on_after_all_of_it_was_trimmed,
            transfer::what_is_imported_is_what_was_exported,
            transfer::an_imported_run_goes_on_as_if_it_had_not_moved,
            transfer::a_parallel_thread_moves_with_its_runs_side_by_side,
            transfer::a_producer_of_a_whole_thread_goes_on_after_the_move,
            transfer::repeating_an_import_changes_nothing_and_completes_what_was_cut_off,
            transfer::what_does_not_fit_is_refused_where_it_stands,
            transfer::a_trimmed_thread_moves_with_what_it_led_to,
            tails::whoever_takes_the_tail_first_misses_nothing,
            tails::a_tail_that_has_lost_records_says_so,
            tails::a_checkpoint_is_found_again,
            lists::runs_are_listed_newest_first_with_filters_and_pages,
            lists::threads_are_listed_newest_first_with_pages,
            lists::lists_tell_what_the_person_asked,
            lists::spans_tell_where_the_runs_of_a_thread_lie,
            lists::messages_and_state_are_told_as_of_any_place,
            lists::tenants_see_nothing_of_each_other,
            extremes::ids_may_be_any_text,
            extremes::a_nul_in_what_is_said_is_kept,
            extremes::the_largest_numbers_do_not_fail_the_store,
            extremes::a_frame_of_a_mebibyte_is_kept,
            extremes::an_id_of_512_bytes_may_be_used_twice,
            extremes::numbers_keep_their_digits,
        }
    };
    (@each $bed:expr; $($topic:ident :: $promise:ident,)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                let bed = $bed;
                $crate::conformance::$topic::$promise(&bed).await;
            }
        )+
    };
}
