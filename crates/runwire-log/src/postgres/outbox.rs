//! The outbox of a cluster.

use async_trait::async_trait;
use tokio::sync::watch;

use super::PostgresLog;
use super::reader::PgReader;
use super::txn_store::now;
use crate::error::LogError;
use crate::log::LogOutbox;
use crate::outbox::{DeliveryOutcome, OutboxMessage, Subscriber};
use crate::sql;

#[async_trait]
impl LogOutbox for PostgresLog {
    async fn subscribe(&self, subscribers: Vec<Subscriber>) -> Result<(), LogError> {
        self.nodes.subscribe(subscribers.iter().map(|known| known.name.clone()).collect());
        self.writers.subscribe(&subscribers).await
    }

    async fn outbox(&self, subscriber: &str, limit: usize) -> Result<Vec<OutboxMessage>, LogError> {
        let subscriber = subscriber.to_owned();
        let list = move |reader: &mut PgReader| {
            let now = now(&reader.connection)?;
            Ok(sql::undelivered(reader, &subscriber, limit, now)?)
        };
        self.reading(list).await
    }

    async fn mark_delivered(&self, message: u64, outcome: DeliveryOutcome) -> Result<(), LogError> {
        let mark = move |reader: &mut PgReader| {
            let now = now(&reader.connection)?;
            Ok(sql::mark_delivered(&reader.connection, message, outcome, now)?)
        };
        self.using(mark).await
    }

    fn outbox_changed(&self) -> watch::Receiver<()> {
        self.outbox_changed.subscribe()
    }
}
