//! The live tail over a healthy Redis.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use runwire_engines::{Redis, RedisOptions};
use runwire_log::cluster::redis::{PublishedEntry, RedisLinks, RedisTail, TailError};
use runwire_log::limits;

use super::nodes::{Node, arrival, published};

#[tokio::test(flavor = "multi_thread")]
async fn every_subscriber_receives_published_entries_in_order() {
    let redis = Redis::start().unwrap();
    let (a, mut b, mut c) = (Node::start(&redis).await, Node::start(&redis).await, Node::start(&redis).await);
    for thread in [1, 2] {
        a.publish(thread, 1..=1);
    }
    a.stats(|stats| stats.published == 2).await;
    let _subscription: Vec<_> =
        [1, 2].into_iter().flat_map(|thread| [b.tail.follow(thread, 0), c.tail.follow(thread, 0)]).collect();
    // What is published before a catch-up read has ended may arrive twice.
    for node in [&mut b, &mut c] {
        let mut caught_up = HashSet::new();
        while caught_up.len() < 2 {
            caught_up.insert(node.next().await.thread);
        }
    }
    for seq in 1001..=2000 {
        a.tail.publish([
            published(1, 2 * seq - 1..=2 * seq),
            published(2, seq..=seq),
            published(3, seq..=seq),
        ]);
    }
    for node in [&mut b, &mut c] {
        let mut heard: HashMap<i64, Vec<_>> = HashMap::new();
        while [1, 2].iter().any(|thread| heard.get(thread).is_none_or(|heard| heard.len() < 1000)) {
            let arrival = node.next().await;
            if arrival.last > 1000 {
                heard.entry(arrival.thread).or_default().push(arrival);
            }
        }
        assert_eq!(heard.len(), 2);
        for (thread, heard) in heard {
            let seqs = |seq| if thread == 1 { 2 * seq - 1..=2 * seq } else { seq..=seq };
            let expected: Vec<_> = (1001..=2000).map(|seq| arrival(thread, seqs(seq))).collect();
            assert!(heard == expected, "thread {thread}: {} entries", heard.len());
        }
    }
    assert_eq!(a.tail.stats().dropped, 0);
    assert_eq!(a.tail.stats().refused, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_published_before_a_subscription_are_caught_up() {
    let redis = Redis::start().unwrap();
    let (a, mut b) = (Node::start(&redis).await, Node::start(&redis).await);
    let count = limits::REDIS_CATCH_UP as u64 * 3 + 1;
    (1..=count).for_each(|seq| a.publish(1, seq..=seq));
    a.stats(|stats| stats.published == count).await;
    let _subscription = b.tail.follow(1, 3);
    for seq in 4..=count {
        assert_eq!(b.next().await, arrival(1, seq..=seq));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfollowed_thread_is_unsubscribed_and_can_be_followed_again() {
    let redis = Redis::start().unwrap();
    let (a, mut b) = (Node::start(&redis).await, Node::start(&redis).await);
    let (first, second, _other) = (b.tail.follow(1, 0), b.tail.follow(1, 0), b.tail.follow(2, 0));
    assert_eq!(second.thread(), 1);
    drop(first);
    a.publish(1, 1..=1);
    assert_eq!(b.next().await, arrival(1, 1..=1));
    drop(second);
    a.tail.publish([published(1, 2..=2), published(2, 1..=1)]);
    assert_eq!(b.lasts_until_without(2, 1, (1, 2)).await, [1]);
    while redis.query(&["PUBSUB", "NUMSUB", "runwire:g:1"]).unwrap() != "*2\r\n$11\r\nrunwire:g:1\r\n:0" {}
    let _again = b.tail.follow(1, 2);
    a.publish(1, 3..=3);
    b.lasts_until_without(1, 3, (1, 2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_entry_is_received_without_an_error() {
    let redis = Redis::start().unwrap();
    let (a, c, mut b) = (Node::start(&redis).await, Node::start(&redis).await, Node::start(&redis).await);
    let _subscription = b.tail.follow(1, 4);
    a.publish_until_heard(1, 5, &mut b).await;
    a.publish(1, 100..=100);
    b.lasts_until(1, 100).await;
    // Another node that has committed before, and one that says it twice.
    c.publish(1, 99..=99);
    b.lasts_until(1, 99).await;
    a.publish(1, 100..=100);
    b.lasts_until(1, 100).await;
    assert_eq!((a.tail.stats().refused, c.tail.stats().refused), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_is_not_published() {
    let redis = Redis::start().unwrap();
    let (a, mut b) = (Node::start(&redis).await, Node::start(&redis).await);
    let _subscription = b.tail.follow(1, 0);
    a.publish_until_heard(1, 1, &mut b).await;
    for (first, length) in [(50, limits::REDIS_BODY_BYTES), (51, limits::REDIS_BODY_BYTES + 1), (52, 0)] {
        let body = Bytes::from(vec![7; length]);
        a.tail.publish([PublishedEntry { thread: 1, first, last: first, body: body.clone() }]);
        b.lasts_until_is(1, first, (length <= limits::REDIS_BODY_BYTES).then_some(body)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_threads_need_two_connections() {
    const THREADS: i64 = 10_000;
    let redis = Redis::start().unwrap();
    let (a, mut b) = (Node::start(&redis).await, Node::start(&redis).await);
    let subscriptions: Vec<_> = (0..THREADS).map(|thread| b.tail.follow(thread, 0)).collect();
    // Also while they are being subscribed.
    for thread in 0..THREADS {
        while a.tail.stats().queued >= limits::REDIS_QUEUE {
            tokio::task::yield_now().await;
        }
        a.publish(thread, 1..=1);
    }
    let mut heard = vec![false; THREADS as usize];
    while heard.contains(&false) {
        let arrival = b.next().await;
        heard[arrival.thread as usize] = true;
    }
    let clients = redis.query(&["INFO", "clients"]).unwrap();
    // Two nodes, and whoever asks.
    assert!(clients.contains("connected_clients:5\r\n"), "{clients}");
    assert_eq!(b.tail.stats().threads, THREADS as usize);
    drop(subscriptions);
    while redis.query(&["PUBSUB", "CHANNELS", "runwire:g:[0-9]*"]).unwrap() != "*0" {}
    assert_eq!(b.tail.stats().threads, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_another_generation_are_never_received() {
    let redis = Redis::start().unwrap();
    let old = Node::start_by(&redis.url(), "old").await;
    let new = Node::start_by(&redis.url(), "new").await;
    let mut reader = Node::start_by(&redis.url(), "new").await;
    old.publish(1, 1..=7);
    old.stats(|stats| stats.published == 1).await;
    let _subscription = reader.tail.follow(1, 0);
    old.publish(1, 8..=9);
    old.stats(|stats| stats.published == 2).await;
    new.publish(1, 1..=1);
    assert_eq!(reader.next().await, arrival(1, 1..=1));
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_keeps_little_of_a_thread_and_forgets_it() {
    let redis = Redis::start().unwrap();
    let a = Node::start(&redis).await;
    (1..=2000).for_each(|seq| a.publish(1, seq..=seq));
    a.stats(|stats| stats.published == 2000).await;
    let number = |words| redis.query(words).unwrap()[1..].parse::<usize>().unwrap();
    // Whole nodes of a hundred entries are trimmed at once.
    assert!(
        (limits::REDIS_STREAM_LENGTH..limits::REDIS_STREAM_LENGTH + 101)
            .contains(&number(&["XLEN", "runwire:g:1"]))
    );
    assert!((1..=limits::REDIS_STREAM_SECONDS as usize).contains(&number(&["TTL", "runwire:g:1"])));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tail_that_closes_publishes_its_queue() {
    let redis = Redis::start().unwrap();
    let (a, mut b) = (Node::start(&redis).await, Node::start(&redis).await);
    let _subscription = b.tail.follow(1, 0);
    (1..=500).for_each(|seq| a.publish(1, seq..=seq));
    a.tail.close().await;
    assert_eq!(a.tail.stats().published, 500);
    a.publish(1, 501..=501);
    assert_eq!(a.tail.stats().dropped, 1);
    b.lasts_until(1, 500).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_measures_the_round_trip_of_its_entries() {
    let redis = Redis::start().unwrap();
    let a = Node::start(&redis).await;
    a.stats(|stats| stats.lag.is_some()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_is_reached_through_tls_if_it_is_trusted() {
    let options = RedisOptions { tls: true, password: Some("secret".to_owned()) };
    let redis = Redis::start_with(options).unwrap();
    let trust = redis.certificate().unwrap().as_bytes();
    let (tail, arrivals) = RedisTail::open(&redis.url(), Some(trust), "g").unwrap();
    let mut node = Node { tail, arrivals };
    node.links(RedisLinks::up).await;
    let _subscription = node.tail.follow(1, 0);
    node.publish(1, 1..=1);
    assert_eq!(node.next().await, arrival(1, 1..=1));

    let stranger = Node::begin(&redis.url(), "g");
    stranger.stats(|stats| stats.links.subscribing.error.is_some()).await;
    let links = stranger.tail.stats().links;
    assert!(!links.up() && !format!("{links:?}").contains("secret"), "{links:?}");
}

#[tokio::test]
async fn an_invalid_address_is_refused_at_once() {
    for url in ["", "localhost", "http://localhost", "redis://"] {
        let error = RedisTail::open(url, None, "g").err();
        assert!(matches!(error, Some(TailError::Address(_))), "{url}: {error:?}");
    }
    let error = RedisTail::open("redis://localhost", Some(b"certificate"), "g").err();
    assert!(matches!(error, Some(TailError::Certificates(_))), "{error:?}");
}
