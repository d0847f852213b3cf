//! During faults of Redis or the store readers see everything, later.

use runwire_engines::{Mode, Proxy, Redis};
use runwire_log::{LogEvents, ThreadKey};

use super::fixture::Fixture;

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_killed_and_comes_back_costs_no_record() {
    let mut fixture = Fixture::new();
    let (a, b) = (fixture.node().await, fixture.node().await);
    a.write("t", 10).await;
    let mut reader = b.reader_in_place("t").await;
    let mut records = 1;
    for _ in 0..3 {
        fixture.redis.kill();
        a.write_all("t", 10).await;
        reader.has(records + 10).await;
        b.is_told(false).await;
        a.write_all("t", 10).await;
        reader.has(records + 20).await;
        fixture.redis.restart().unwrap();
        a.write_all("t", 10).await;
        reader.has(records + 30).await;
        b.is_told(true).await;
        a.write_all("t", 10).await;
        records += 40;
        reader.has(records).await;
    }
    assert!(b.stats().heals > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_paused_costs_no_record() {
    let mut fixture = Fixture::new();
    let (a, b) = (fixture.node().await, fixture.node().await);
    a.write("t", 10).await;
    let mut reader = b.reader_in_place("t").await;
    fixture.redis.pause();
    a.write_all("t", 20).await;
    reader.has(21).await;
    b.is_told(false).await;
    a.write_all("t", 20).await;
    reader.has(41).await;
    fixture.redis.resume();
    a.write_all("t", 20).await;
    reader.has(61).await;
    b.is_told(true).await;
    a.write_all("t", 20).await;
    reader.has(81).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_flushed_again_and_again_costs_no_record() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.node().await, fixture.node().await);
    a.write("t", 10).await;
    let mut reader = b.reader("t");
    for turn in 0..40 {
        a.write("t", 10).await;
        fixture.redis.flush().unwrap();
        if turn % 4 == 0 {
            // One that comes just now finds an empty stream.
            reader = b.reader("t");
        }
    }
    reader.has(41).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_redis_in_its_place_costs_no_record() {
    let fixture = Fixture::new();
    let others = [Redis::start().unwrap(), Redis::start().unwrap()];
    let (here, there) = (others[0].address(), others[1].address());
    let a = fixture.node_by(here).await;
    // The two never hear of each other.
    let b = fixture.node_by(there).await;
    a.write("t", 10).await;
    let mut reader = b.reader_in_place("t").await;
    a.write_all("t", 30).await;
    reader.has(31).await;
    assert!(b.stats().heals > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_cut_off_from_redis_misses_nothing_and_hides_nothing() {
    let fixture = Fixture::new();
    let proxy = Proxy::start(fixture.redis.address()).await.unwrap();
    let (a, b) = (fixture.node().await, fixture.node_by(proxy.address()).await);
    a.write("t", 10).await;
    let mut readers = [a.reader_in_place("t").await, b.reader_in_place("t").await];
    let mut records = 1;
    for mode in [Mode::Refuse, Mode::Stall] {
        match mode {
            Mode::Refuse => proxy.cut_and(mode),
            _ => proxy.set(mode),
        }
        for _ in 0..2 {
            a.write_all("t", 10).await;
            b.write_all("t", 10).await;
            records += 20;
            for reader in &mut readers {
                reader.has(records).await;
            }
        }
        b.is_told(false).await;
        proxy.set(Mode::Pass);
        b.is_told(true).await;
        a.write_all("t", 10).await;
        b.write_all("t", 10).await;
        records += 20;
        for reader in &mut readers {
            reader.has(records).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_go_on_after_the_store_was_away() {
    let mut fixture = Fixture::new();
    let (a, b, c) = (fixture.node().await, fixture.node().await, fixture.node_alone().await);
    a.write("t", 10).await;
    let mut readers = [b.reader_in_place("t").await, c.reader_in_place("t").await];
    let mut records = 1;
    for turn in 0..2 {
        if turn == 0 {
            fixture.store.cut_connections().unwrap();
        } else {
            fixture.store.stop();
            c.is(|stats| !stats.poller.up && stats.poller.error.is_some()).await;
            fixture.store.restart().unwrap();
        }
        a.write_all("t", 10).await;
        records += 10;
        for reader in &mut readers {
            reader.has(records).await;
        }
    }
    c.is(|stats| stats.poller.up).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_another_generation_or_unknown_threads_show_nothing() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.node().await, fixture.node().await);
    a.write("t", 10).await;
    let mut reader = b.reader_in_place("t").await;
    reader.has(1).await;
    let keys = fixture.redis.query(&["KEYS", "runwire:*"]).unwrap();
    let key = keys.lines().find(|line| line.starts_with("runwire:")).unwrap().trim().to_owned();
    for entry in
        ["2 2\ngarbage", "2 2", "900 901\ngarbage", "5 5", "18446744073709551615 18446744073709551615"]
    {
        fixture.redis.query(&["PUBLISH", &key, entry]).unwrap();
    }
    a.write_all("t", 10).await;
    reader.has(11).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_has_lost_commits_is_followed_from_where_it_is() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.node().await, fixture.node().await);
    a.write_all("t", 5).await;
    let tail = b.log.tail(&ThreadKey::new("tenant", "t"));
    let mut head = tail.watch();
    head.wait_for(|head| head.seq == 5).await.unwrap();
    // What a server that took over without having everything looks like.
    fixture.store.query("postgres", "DELETE FROM chunk WHERE last > 3").unwrap();
    fixture.store.query("postgres", "UPDATE thread SET head = 3, version = version + 1").unwrap();
    fixture.store.query("postgres", "UPDATE run SET last_seq = 3").unwrap();
    head.wait_for(|head| head.seq == 3).await.unwrap();
    assert_eq!(tail.after(3).unwrap(), []);
    assert!(tail.after(2).is_none());
    b.write("t", 10).await;
    head.wait_for(|head| head.seq == 4).await.unwrap();
    assert_eq!(tail.after(3).unwrap().len(), 1);
}
