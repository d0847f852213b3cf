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
pub mod look_ups;
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

/// Durations of the leases of a store.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Duration of a run's lease.
    pub lease: Duration,
    /// Grace period of a cancelled run.
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

    /// Closes the store, whose only reference is passed, and opens it again.
    async fn reopen(&self, log: Arc<dyn Log>, timing: Timing) -> Arc<dyn Log>;
}

/// Makes a test of every promise of the suite; the expression makes a [`Bed`](crate::conformance::Bed).
#[macro_export]
macro_rules! log_conformance {
    ($bed:expr) => {
        $crate::log_conformance! { @each $bed;
            order::seq_is_contiguous_from_1_and_time_never_goes_backwards,
            order::pages_join_to_the_whole_thread,
            order::acknowledged_records_survive_reopening,
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
            exactly_once::end_marks_use_up_no_index_and_pin_no_dialect,
            exactly_once::producers_do_not_share_their_places,
            exactly_once::a_thread_has_producers_of_its_own,
            exactly_once::producers_of_a_run_are_bounded,
            dialects::the_first_frames_determine_the_dialect_and_pin_it,
            dialects::an_append_without_a_detectable_dialect_is_refused,
            dialects::ag_ui_may_turn_out_to_be_social_app,
            dialects::ag_ui_chunks_in_pieces_mean_the_same,
            dialects::gathered_arguments_are_found_across_appends_and_reopening,
            dialects::slots_of_loom_export_in_pieces_mean_the_same,
            dialects::open_items_are_closed_at_the_end_after_reopening,
            dialects::ids_of_earlier_runs_are_not_used_twice_after_reopening,
            frame_check::a_strict_append_refuses_what_the_document_does_not_allow,
            frame_check::a_strict_body_may_arrive_in_pieces,
            frame_check::a_frame_that_breaks_its_document_uses_up_no_index,
            frame_check::a_violation_is_counted_once_as_a_warning,
            frame_check::warnings_of_a_run_are_bounded,
            frame_check::a_frame_that_would_begin_a_run_is_refused_before_anything_happens,
            frame_check::frames_that_are_not_to_be_checked_are_not,
            frame_check::a_check_that_cannot_remember_more_is_a_warning_once,
            look_ups::ending_a_run_with_many_open_calls_reads_its_records_once,
            look_ups::calls_that_go_on_one_by_one_read_their_records_a_few_times,
            look_ups::whole_texts_read_the_records_of_their_run_once,
            runs::creating_a_run_twice_in_the_same_words_gives_it_again,
            runs::a_repeated_attempt_reports_its_run_as_new,
            runs::the_request_of_a_run_wins_over_its_producer,
            runs::a_run_takes_the_agent_that_its_producer_names,
            runs::a_run_without_a_thread_gets_one_of_its_own,
            runs::end_completes_a_run_that_no_frame_has_ended,
            runs::a_closed_run_takes_no_frame,
            runs::producers_cannot_forge_what_belongs_to_people,
            runs::a_cancelled_pending_run_is_closed_at_once,
            runs::a_cancelled_running_run_is_asked_first,
            runs::a_cancelled_suspended_run_is_closed_at_once,
            runs::cancelling_a_closed_run_returns_it_unchanged,
            runs::a_summary_counts_what_the_fold_counts,
            leases::a_silent_producer_is_lost_after_its_lease,
            leases::a_run_that_was_never_written_to_is_lost_too,
            leases::writes_and_heartbeats_renew_a_lease,
            leases::heartbeats_of_many_runs_are_one_commit,
            leases::a_lease_pauses_while_an_interaction_is_open,
            leases::an_interaction_expires_alone_and_resumes_its_run,
            leases::a_run_that_asks_after_a_cancel_is_still_stopped,
            leases::every_lease_gets_a_full_term_after_reopening,
            orphans::an_orphan_is_claimed_once_and_only_after_its_server_is_gone,
            orphans::runs_that_no_server_started_or_that_ended_are_no_orphans,
            orphans::a_store_that_is_open_alone_is_the_leader,
            answers::the_first_answer_wins_and_the_next_is_refused_with_it,
            answers::the_same_answer_of_the_same_person_succeeds_again,
            answers::of_many_who_answer_at_once_one_wins,
            answers::the_last_answer_resumes_the_run,
            answers::answers_that_are_given_together_are_one_record,
            answers::of_answers_that_are_given_together_all_are_taken_or_none,
            answers::a_closed_run_takes_no_answer,
            answers::an_unknown_interaction_takes_no_answer,
            answers::an_expired_interaction_takes_no_answer,
            answers::a_cancel_races_an_answer,
            answers::an_interaction_is_returned_with_its_answer,
            inbox::open_interactions_are_listed_newest_first_with_filters_and_pages,
            inbox::a_resolved_interaction_leaves_the_inbox,
            inbox::large_interactions_make_small_pages,
            inbox::an_interaction_is_exported_with_its_run,
            outbox::subscribers_receive_their_kinds_of_events_and_nothing_else,
            outbox::an_outbox_message_stays_until_it_is_delivered,
            outbox::a_failed_delivery_is_retried_later,
            outbox::the_end_of_a_deleted_thread_is_delivered,
            outbox::imported_events_are_not_delivered,
            stats::statistics_count_writes_and_open_runs,
            stats::health_reports_whether_the_log_can_be_used,
            threads::a_thread_has_one_open_run,
            threads::a_parallel_thread_has_several_open_runs_up_to_a_limit,
            threads::creating_a_thread_again_returns_its_head,
            threads::several_runs_in_one_stream_follow_each_other,
            threads::a_second_start_cuts_off_the_first,
            threads::interleaved_sessions_lie_side_by_side_in_a_parallel_thread,
            threads::a_taken_run_id_is_minted_anew_and_stays_an_alias,
            threads::an_interrupt_is_resumed_under_another_run_id,
            threads::a_late_frame_of_an_ended_run_is_refused,
            threads::an_open_run_of_another_producer_is_not_cut_off,
            threads::a_refused_frame_does_not_rename_its_run,
            threads::the_end_of_a_stream_ends_its_runs,
            tenant_append::each_frame_goes_to_the_thread_and_run_that_it_names,
            tenant_append::a_stream_of_sessions_is_written_once,
            tenant_append::many_sessions_go_on_across_appends_and_reopening,
            tenant_append::a_frame_that_names_nothing_stops_the_stream_there,
            tenant_append::frames_that_name_their_run_alone_find_its_thread,
            tenant_append::dialects_that_name_no_session_are_refused,
            tenant_append::an_open_run_of_another_producer_is_not_written_to,
            tenant_append::a_session_of_a_deleted_thread_is_refused,
            tenant_append::runs_of_a_parallel_thread_have_sessions_of_their_own,
            deletion::a_thread_with_an_open_run_is_kept_unless_forced,
            deletion::a_deleted_thread_is_gone_and_its_ids_stay_used_up,
            deletion::readers_learn_of_a_deletion,
            deletion::frames_of_the_same_moment_go_with_the_thread,
            deletion::a_deletion_survives_reopening,
            retention::runs_that_ended_before_a_moment_are_removed,
            retention::runs_that_ended_so_long_ago_are_removed,
            retention::the_oldest_runs_go_until_the_rest_fits,
            retention::trimming_again_at_once_removes_no_more,
            retention::records_after_an_open_run_are_kept,
            retention::runs_side_by_side_go_together,
            retention::messages_and_state_before_the_cut_are_kept,
            retention::a_thread_goes_on_after_all_of_it_was_trimmed,
            transfer::an_import_equals_its_export,
            transfer::an_imported_run_continues_as_if_it_were_written_here,
            transfer::a_parallel_thread_is_exported_with_its_parallel_runs,
            transfer::a_producer_of_a_whole_thread_continues_after_the_import,
            transfer::repeating_an_import_changes_nothing_and_completes_what_was_cut_off,
            transfer::an_invalid_item_is_refused_with_its_line,
            transfer::a_trimmed_thread_is_exported_with_its_base_state,
            tails::a_reader_that_takes_the_tail_first_misses_nothing,
            tenant_append::a_second_run_of_a_session_is_refused_and_cuts_nothing,
            tenant_append::a_second_start_of_a_loom_session_cuts_off_the_first,
            tenant_append::runs_of_a_session_lie_side_by_side_in_a_parallel_thread,
            tenant_append::a_refused_frame_is_told_with_its_thread_and_run,
            tenant_append::a_frame_of_another_session_is_no_frame_of_the_run,
            tails::a_tail_that_has_lost_records_says_so,
            tails::a_checkpoint_is_found_again,
            lists::runs_are_listed_newest_first_with_filters_and_pages,
            lists::threads_are_listed_newest_first_with_pages,
            lists::lists_contain_the_user_message,
            lists::spans_are_the_ranges_of_the_runs_of_a_thread,
            lists::messages_and_state_are_returned_as_of_any_seq,
            lists::tenants_see_nothing_of_each_other,
            extremes::ids_may_be_any_text,
            extremes::a_nul_in_a_text_is_kept,
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
