//! Imports what is stored beside records: the guard's state, and the decoders and positions of producers.

use std::collections::HashMap;

use super::heads::{ProducerHead, ProducerState, Route, ThreadHead};
use super::import::{ImportResult, MAX_NUMBER, is_id};
use super::{StoreResult, Txn, TxnStore};
use crate::key::RunKey;
use crate::limits;
use crate::transfer::{ImportProblem, TransferProducer, TransferState};

impl<S: TxnStore> Txn<S> {
    pub(crate) fn import_state(&mut self, thread: &mut ThreadHead, state: &TransferState) -> ImportResult<S> {
        // The anonymous producer has an empty name.
        let is_wrong = |producer: &TransferProducer| {
            let is_named = producer.name.is_empty() || is_id(&producer.name);
            !is_named || producer.epoch >= MAX_NUMBER || producer.next >= MAX_NUMBER
        };
        if state.producers.len() > limits::PRODUCERS || state.producers.iter().any(is_wrong) {
            let problem =
                "it has too many producers, names that none can have, or numbers beyond all numbers";
            return Err(Self::refuse(ImportProblem::Bad(problem.into())));
        }
        let Some(run_id) = &state.run_id else {
            // A thread that was written since is newer.
            if thread.seq == state.last_seq {
                for producer in &state.producers {
                    let head = self.producer_of(thread, producer)?;
                    keep_newer(&mut thread.producers, &producer.name, head);
                }
            }
            return Ok(());
        };
        let key = RunKey::new(thread.key.tenant.clone(), run_id.as_str());
        let unknown = || ImportProblem::Bad(format!("no line before it tells of the run `{run_id}`"));
        if !is_id(run_id) {
            return Err(Self::refuse(unknown()));
        }
        let Some(mut run) = self.heads.take_run(&self.store, &key)? else {
            return Err(Self::refuse(unknown()));
        };
        if run.thread == thread.id && run.last_seq == state.last_seq {
            if let Some(guard) = &state.guard {
                run.head.state.adopt_decoder_state(guard);
                (run.dirty, run.snapshot_dirty) = (true, true);
            }
            for producer in &state.producers {
                let state = ProducerState { decoder: producer.decoder.clone(), ..ProducerState::default() };
                keep_newer(&mut run.producers, &producer.name, head_of(producer, state));
            }
            self.put_run(run);
        } else {
            self.heads.put_run(run);
        }
        Ok(())
    }

    /// Converts a producer of the whole thread; its routes to runs that were not imported are dropped.
    fn producer_of(&mut self, thread: &ThreadHead, state: &TransferProducer) -> StoreResult<S, ProducerHead> {
        let mut routes = Vec::new();
        for route in state.routes.iter().take(super::route::ROUTES).filter(|route| is_id(&route.to)) {
            let key = RunKey::new(thread.key.tenant.clone(), route.to.as_str());
            let Some(run) = self.heads.take_run(&self.store, &key)? else { continue };
            if run.thread == thread.id {
                routes.push(Route { thread: route.thread.clone(), run: route.run.clone(), to: run.id });
            }
            self.heads.put_run(run);
        }
        Ok(head_of(
            state,
            ProducerState { decoder: state.decoder.clone(), routes, ..ProducerState::default() },
        ))
    }
}

fn head_of(producer: &TransferProducer, state: ProducerState) -> ProducerHead {
    let (epoch, next) = (producer.epoch, producer.next);
    ProducerHead { epoch, next, state, dirty: true, snapshot_dirty: true, state_dirty: true }
}

/// Stores a producer's position, unless a newer one is known.
fn keep_newer(producers: &mut HashMap<String, ProducerHead>, name: &str, head: ProducerHead) {
    let place = |head: &ProducerHead| (head.epoch, head.next);
    if producers.get(name).is_none_or(|known| place(known) <= place(&head))
        && producers.len() <= limits::PRODUCERS
    {
        producers.insert(name.to_owned(), head);
    }
}
