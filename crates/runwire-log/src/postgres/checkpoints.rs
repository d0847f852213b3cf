//! Stores the checkpoints that readers leave, over a read connection, so that no writer waits for them.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::connection::{Params, PgConnection};
use super::error::PgResult;
use super::reader::PgReader;
use super::reader_pool::ReaderPool;
use super::rows::to_i64;
use crate::limits;
use crate::waiting_checkpoints::{Checkpoint, WaitingCheckpoints};

/// Keeps a checkpoint. With the first one a task begins that stores all that wait a moment later.
pub(super) fn keep(waiting: &Arc<WaitingCheckpoints>, readers: &ReaderPool, checkpoint: Checkpoint) {
    let Ok(runtime) = Handle::try_current() else { return };
    if !waiting.keep(checkpoint) {
        return;
    }
    let (waiting, readers) = (waiting.clone(), readers.clone());
    runtime.spawn(async move {
        tokio::time::sleep(Duration::from_millis(limits::CHECKPOINT_IDLE_MILLIS)).await;
        let checkpoints = waiting.take();
        let save = move |reader: &mut PgReader| {
            checkpoints.iter().try_for_each(|checkpoint| save(&reader.connection, checkpoint))?;
            Ok(())
        };
        // It is a cache: a failure only loses them.
        if let Err(failure) = readers.using(save).await {
            tracing::debug!(%failure, "checkpoints are lost");
        }
    });
}

fn save(connection: &PgConnection, Checkpoint { run, form, seq, state }: &Checkpoint) -> PgResult<()> {
    let sql = "INSERT INTO checkpoint (run, form, seq, state) SELECT id, $3, $4, $5 FROM run \
               WHERE tenant = $1 AND name = $2 AND NOT trimmed \
               ON CONFLICT (run, form, seq) DO UPDATE SET state = excluded.state";
    let params: Params<'_> = &[&&*run.tenant, &&*run.id, &form.name(), &to_i64(*seq), state];
    connection.execute(sql, params).map(drop)
}
