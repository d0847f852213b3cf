//! Reads `[webhooks.NAME]`: the servers that are notified of interactions and of the ends of runs.

use http::Uri;
use runwire_server::webhooks::{OutboxKind, Secret, Webhook};
use toml::de::{DeTable, DeValue};

use super::tables::{self, ConfigSource, Section, TableReader, alternatives, text_of};

const KEYS: [&str; 7] = ["url", "secret", "events", "allow_private", "base_url", "ca", "timeout_seconds"];

/// Reads the webhooks, and reports all problems.
pub(super) fn read(source: ConfigSource<'_>, webhooks: &DeTable<'_>) -> Section<Webhook> {
    tables::read(source, "webhooks", webhooks, webhook)
}

fn webhook(table: &mut TableReader<'_, '_>) -> Option<(Webhook, String)> {
    table.check_keys("a webhook", &KEYS);
    let shown = table.text("url");
    let url = table.required("url", address);
    let secret = table.required("secret", secret);
    let events = events(table);
    let allow_private = table.flag("allow_private");
    let base_url = table.optional("base_url", address);
    let trusted = table.certificates();
    let answer_time = table.seconds("timeout_seconds");
    // All keys are read first, so that all problems are reported at once.
    let mut webhook = Webhook::new(table.name, url?.parse().ok()?, Secret::parse(&secret?).ok()?);
    (webhook.allow_private, webhook.trusted) = (allow_private, trusted);
    webhook.base_url = base_url.unwrap_or_default();
    webhook.events = events.unwrap_or(webhook.events);
    webhook.answer_time = answer_time.unwrap_or(webhook.answer_time);
    let names: Vec<_> = webhook.events.iter().map(|kind| kind.name()).collect();
    let private = if allow_private { ", may be private" } else { "" };
    let shown = format!("{}, {}{private}", shown.unwrap_or_default(), names.join(" "));
    Some((webhook, shown))
}

fn events(table: &mut TableReader<'_, '_>) -> Option<Vec<OutboxKind>> {
    let value = table.table.get("events")?;
    let kind = |value: &DeValue<'_>| text_of(value).and_then(|name| OutboxKind::from_name(&name));
    let kinds: Option<Vec<OutboxKind>> = match value.get_ref() {
        DeValue::Array(names) => names.iter().map(|name| kind(name.get_ref())).collect(),
        _ => None,
    };
    let kinds = kinds.filter(|kinds| !kinds.is_empty());
    if kinds.is_none() {
        let all = alternatives(&OutboxKind::ALL.map(OutboxKind::name));
        let line = table.line_at(value.span().start);
        table.add_problem(line, Some("events"), format!("must be an array with one or more of {all}"));
    }
    kinds
}

fn secret(text: String) -> Result<String, String> {
    Secret::parse(&text).map(|_| text).map_err(|bad| bad.to_string())
}

fn address(text: String) -> Result<String, String> {
    let is_usable = text.parse::<Uri>().is_ok_and(|uri| {
        let is_plain = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
        matches!(uri.scheme_str(), Some("http" | "https")) && is_plain
    });
    // The value may hold a secret from the environment, so it is not quoted.
    let must = "must be an address that begins with `http://` or `https://`, without a name and password";
    if is_usable { Ok(text) } else { Err(must.to_owned()) }
}
