//! One delivery attempt to a webhook, and its outcome.

use std::error::Error as StdError;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::Full;
use runwire_log::OutboxMessage;

use super::address;
use super::client::WebhookHttpClient;
use super::config::Webhook;
use super::message;

/// The outcome of an attempt.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The message was accepted.
    Delivered,
    /// The webhook answered 410 Gone.
    Gone,
    /// The attempt failed; `wait` is the webhook's `Retry-After`.
    Failed { why: String, wait: Option<Duration> },
}

const AGENT: &str = concat!("runwire/", env!("CARGO_PKG_VERSION"));

/// Posts a notice. Redirects are not followed, and the body of the response is not read.
pub(super) async fn attempt(
    client: &WebhookHttpClient,
    webhook: &Webhook,
    notice: &OutboxMessage,
) -> Outcome {
    let failed = |why: String| Outcome::Failed { why, wait: None };
    if !webhook.allow_private
        && let Err(private) = address::check(&webhook.url)
    {
        return failed(private.to_string());
    }
    let request = match request(webhook, notice) {
        Ok(request) => request,
        Err(error) => return failed(error),
    };
    match tokio::time::timeout(webhook.answer_time, client.request(request)).await {
        Err(_) => failed(format!("no answer for {} s", webhook.answer_time.as_secs_f32())),
        Ok(Err(error)) => failed(cause(&error)),
        Ok(Ok(answer)) => match answer.status() {
            status if status.is_success() => Outcome::Delivered,
            StatusCode::GONE => Outcome::Gone,
            status if status.is_redirection() => {
                failed(format!("it answered {status}, and redirects are not followed"))
            }
            status => {
                Outcome::Failed { why: format!("it answered {status}"), wait: retry_after(answer.headers()) }
            }
        },
    }
}

fn request(webhook: &Webhook, notice: &OutboxMessage) -> Result<Request<Full<Bytes>>, String> {
    let body = message::body(notice, &webhook.base_url).map_err(|error| error.to_string())?;
    let timestamp = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Request::post(&webhook.url)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, AGENT)
        .header("webhook-id", &notice.id)
        .header("webhook-timestamp", timestamp)
        .header("webhook-signature", webhook.secret.sign(&notice.id, timestamp, &body))
        .body(Full::new(body))
        .map_err(|error| error.to_string())
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Returns the innermost cause: the outer errors say little.
fn cause(error: &(dyn StdError + 'static)) -> String {
    let mut innermost = error;
    while let Some(inner) = innermost.source() {
        innermost = inner;
    }
    innermost.to_string()
}
