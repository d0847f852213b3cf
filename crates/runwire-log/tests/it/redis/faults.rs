//! Faults of Redis cost entries, which the store has, and never the tail.

use runwire_engines::{Mode, Proxy, Redis};
use runwire_log::cluster::redis::{LinkStatus, RedisLinks, RedisTailStats};
use runwire_log::limits;

use super::nodes::{Node, arrival, published};

/// Both ways carry again, and a node that asks again hears.
async fn carries_again(a: &Node, b: &mut Node, from: u64) -> u64 {
    a.links(RedisLinks::up).await;
    b.links(RedisLinks::up).await;
    a.publish_until_heard(1, from, b).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flushed_redis_carries_on() {
    let redis = Redis::start().unwrap();
    let (a, mut b) = (Node::start(&redis).await, Node::start(&redis).await);
    let _subscription = b.tail.follow(1, 0);
    let mut seq = 0;
    for _ in 0..5 {
        seq = a.publish_until_heard(1, seq + 1, &mut b).await;
        redis.flush().unwrap();
        assert!(b.tail.stats().links.up());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_is_forwarded() {
    let redis = Redis::start().unwrap();
    let (a, mut b) = (Node::start(&redis).await, Node::start(&redis).await);
    a.publish(1, 1..=3);
    a.stats(|stats| stats.published == 1).await;
    redis.flush().unwrap();
    let _subscription = b.tail.follow(1, 0);
    a.publish(1, 4..=5);
    assert_eq!(b.next().await, arrival(1, 4..=5));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_redis_is_reconnected() {
    let mut redis = Redis::start().unwrap();
    let (a, mut b) = (Node::start(&redis).await, Node::start(&redis).await);
    let _subscription = b.tail.follow(1, 0);
    let mut seq = a.publish_until_heard(1, 1, &mut b).await;
    for _ in 0..3 {
        redis.kill();
        a.links(|links| !links.publishing.up && !links.subscribing.up).await;
        b.links(|links| !links.subscribing.up).await;
        let dropped = a.tail.stats().dropped;
        a.publish(1, seq + 1..=seq + 1);
        assert_eq!(a.tail.stats().dropped, dropped + 1);
        assert!(a.tail.stats().links.publishing.error.is_some());
        redis.restart().unwrap();
        seq = carries_again(&a, &mut b, seq + 2).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_starts_before_its_redis_does() {
    let mut redis = Redis::start().unwrap();
    redis.stop();
    let (a, mut b) = (Node::begin(&redis.url(), "g"), Node::begin(&redis.url(), "g"));
    let _subscription = b.tail.follow(1, 0);
    a.stats(|stats| stats.links.publishing.error.is_some()).await;
    redis.restart().unwrap();
    carries_again(&a, &mut b, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_redis_is_reconnected_and_blocks_nothing() {
    let mut redis = Redis::start().unwrap();
    let (a, mut b) = (Node::start(&redis).await, Node::start(&redis).await);
    let _subscription = b.tail.follow(1, 0);
    let seq = a.publish_until_heard(1, 1, &mut b).await;
    redis.pause();
    // More than there is room for, without waiting for anything.
    let more = limits::REDIS_QUEUE as u64 * 2;
    a.tail.publish((seq + 1..=seq + more).map(|seq| published(1, seq..=seq)));
    assert!(a.tail.stats().dropped > 0);
    // Threads come and go meanwhile.
    let _other = b.tail.follow(2, 0);
    drop(b.tail.follow(3, 0));
    a.links(|links| !links.publishing.up && !links.subscribing.up).await;
    b.links(|links| !links.publishing.up && !links.subscribing.up).await;
    redis.resume();
    carries_again(&a, &mut b, seq + more + 1).await;
    a.publish(2, 1..=1);
    b.lasts_until(2, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_missed_while_disconnected_are_caught_up() {
    let redis = Redis::start().unwrap();
    let proxy = Proxy::start(redis.address()).await.unwrap();
    let a = Node::start(&redis).await;
    let mut b = Node::start_by(&redis.url_by(proxy.address()), "g").await;
    let _subscription: Vec<_> = (1..=100).map(|thread| b.tail.follow(thread, 0)).collect();
    (1..=100).for_each(|thread| a.publish(thread, 1..=1));
    let mut heard = std::collections::HashSet::new();
    while heard.len() < 100 {
        heard.insert(b.next().await.thread);
    }
    proxy.cut_and(Mode::Refuse);
    b.links(|links| !links.publishing.up && !links.subscribing.up).await;
    (1..=100).for_each(|thread| a.publish(thread, 2..=2));
    a.stats(|stats| stats.published == 200).await;
    proxy.set(Mode::Pass);
    let mut heard = std::collections::HashSet::new();
    while heard.len() < 100 {
        let told = b.next().await;
        if told.last == 2 {
            assert_eq!(told, arrival(told.thread, 2..=2));
            heard.insert(told.thread);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_swallows_everything_is_replaced() {
    let redis = Redis::start().unwrap();
    let proxy = Proxy::start(redis.address()).await.unwrap();
    let a = Node::start_by(&redis.url_by(proxy.address()), "g").await;
    let mut b = Node::start_by(&redis.url_by(proxy.address()), "g").await;
    let _subscription = b.tail.follow(1, 0);
    let seq = a.publish_until_heard(1, 1, &mut b).await;
    proxy.set(Mode::Stall);
    a.links(|links| !links.publishing.up && !links.subscribing.up).await;
    b.links(|links| !links.publishing.up && !links.subscribing.up).await;
    proxy.set(Mode::Pass);
    carries_again(&a, &mut b, seq + 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_redis_closes_are_opened_again() {
    let redis = Redis::start().unwrap();
    let (a, mut b) = (Node::start(&redis).await, Node::start(&redis).await);
    let _subscription = b.tail.follow(1, 0);
    let seq = a.publish_until_heard(1, 1, &mut b).await;
    redis.cut_connections().unwrap();
    b.links(|links| !links.subscribing.up).await;
    carries_again(&a, &mut b, seq + 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_entries_are_skipped() {
    let redis = Redis::start().unwrap();
    let (a, mut b) = (Node::start(&redis).await, Node::start(&redis).await);
    // Entries of somebody else, one that is not a stream, and names that are none of ours.
    redis.query(&["XADD", "runwire:g:1", "1-1", "first", "x"]).unwrap();
    redis.query(&["XADD", "runwire:g:1", "1-2", "nothing", "here"]).unwrap();
    for part in 3..100 {
        redis.query(&["XADD", "runwire:g:1", &format!("1-{part}"), "first", "9"]).unwrap();
    }
    redis.query(&["SET", "runwire:g:2", "text"]).unwrap();
    a.tail.publish([published(1, 2..=2), published(3, 1..=1)]);
    a.stats(|stats| stats.published == 2).await;
    let _subscription: Vec<_> = [1, 2, 3].into_iter().map(|thread| b.tail.follow(thread, 0)).collect();
    b.lasts_until(3, 1).await;
    for garbage in ["", "x", "0 0", "5 4\nbody", "1 2 3", "18446744073709551616 1"] {
        redis.query(&["PUBLISH", "runwire:g:1", garbage]).unwrap();
    }
    b.stats(|stats| stats.garbage >= 6).await;
    a.publish(2, 1..=1);
    b.lasts_until(2, 1).await;
    a.stats(|stats| stats.refused > 0).await;
    assert!(b.tail.stats().links.up());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_lets_a_node_in_and_refuses_its_channels_is_never_taken_for_one_that_is_there() {
    let redis = Redis::start().unwrap();
    redis.query(&["ACL", "SETUSER", "mute", "on", ">pw", "~runwire:*", "+@all"]).unwrap();
    let url = redis.url().replacen("redis://", "redis://mute:pw@", 1);
    let node = Node::begin(&url, "g");
    let refused =
        |link: &LinkStatus| link.error.as_deref().is_some_and(|error| error.contains("permissions"));
    node.stats(|RedisTailStats { links, .. }| {
        assert!(!links.publishing.up && !links.subscribing.up);
        refused(&links.publishing) && refused(&links.subscribing)
    })
    .await;
}
