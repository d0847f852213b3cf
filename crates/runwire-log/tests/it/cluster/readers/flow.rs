//! Readers see commits of all nodes while all is well.

use runwire_log::{LogUpkeep, ThreadKey};

use super::fixture::{Fixture, Node};

/// Two nodes write one thread by turns and at once; readers on all three see each record once and in order.
async fn write_from_two_sides(nodes: &[Node; 3], records: u64) {
    let [a, b, c] = nodes;
    a.write("t", 10).await;
    let mut readers: Vec<_> = nodes.iter().flat_map(|node| [node.reader("t"), node.reader("t")]).collect();
    let by = |node: &Node| {
        let node = node.clone();
        async move {
            for turn in 0..records / 2 {
                node.write("t", if turn % 10 == 3 { 70_000 } else { 10 }).await;
            }
        }
    };
    tokio::join!(by(a), by(b));
    for reader in &mut readers {
        reader.has(records + 1).await;
    }
    let late = c.reader("t");
    readers.push(late);
    a.write("t", 1).await;
    for reader in &mut readers {
        reader.has(records + 2).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_on_one_node_is_seen_on_another_through_redis() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.node().await, fixture.node().await);
    a.write("t", 10).await;
    let mut reader = b.reader_in_place("t").await;
    reader.has(1).await;
    // From now on Redis alone is enough.
    a.write_all("t", 100).await;
    reader.has(101).await;
    let tail = b.stats().tail.unwrap();
    assert!(tail.arrived > 0, "{tail:?}");
    assert!(a.stats().tail.unwrap().published >= 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_on_one_node_is_seen_on_another_without_redis() {
    let fixture = Fixture::new();
    let (a, b) = (fixture.node_alone().await, fixture.node_alone().await);
    a.write("t", 10).await;
    let mut reader = b.reader_in_place("t").await;
    a.write_all("t", 50).await;
    reader.has(51).await;
    let stats = b.stats();
    assert!(stats.tail.is_none() && stats.head_checks > 0 && stats.heals > 0, "{stats:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_that_write_one_thread_are_seen_in_one_order_with_redis() {
    let fixture = Fixture::new();
    let nodes = [fixture.node().await, fixture.node().await, fixture.node().await];
    write_from_two_sides(&nodes, 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_that_write_one_thread_are_seen_in_one_order_without_redis() {
    let fixture = Fixture::new();
    let nodes = [fixture.node_alone().await, fixture.node_alone().await, fixture.node_alone().await];
    write_from_two_sides(&nodes, 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_that_are_too_large_for_redis_or_the_tail_are_seen_too() {
    let fixture = Fixture::new();
    let (a, b, c) = (fixture.node().await, fixture.node().await, fixture.node_alone().await);
    a.write("t", 10).await;
    let mut readers = [b.reader_in_place("t").await, c.reader_in_place("t").await, a.reader("t")];
    for (turn, bytes) in [70_000, 10, 300_000, 300_000, 10, 900_000, 10].into_iter().enumerate() {
        a.write("t", bytes).await;
        for reader in &mut readers {
            reader.has(turn as u64 + 2).await;
        }
    }
    assert!(b.stats().heals > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn however_many_read_a_thread_the_node_reads_it_once() {
    const READERS: usize = 300;
    const RECORDS: u64 = 10;
    let fixture = Fixture::new();
    let (a, b) = (fixture.node().await, fixture.node().await);
    a.write("t", 10).await;
    let mut readers = vec![b.reader_in_place("t").await];
    readers.extend((1..READERS).map(|_| b.reader("t")));
    for reader in &mut readers {
        reader.has(1).await;
    }
    let reads: u64 = readers.iter().map(|reader| reader.seen().reads).sum();
    for turn in 0..RECORDS {
        // Redis carries none of these.
        a.write("t", 70_000).await;
        for reader in &mut readers {
            reader.has(turn + 2).await;
        }
    }
    assert_eq!(readers.iter().map(|reader| reader.seen().reads).sum::<u64>(), reads);
    let stats = b.stats();
    assert!((1..=RECORDS).contains(&stats.heals), "{stats:?}");
    assert_eq!((stats.followed, stats.tail.unwrap().threads), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_threads_are_followed_while_they_are_read() {
    const THREADS: usize = 1000;
    let fixture = Fixture::new();
    let (a, b) = (fixture.node().await, fixture.node().await);
    let names: Vec<String> = (0..THREADS).map(|thread| format!("t{thread}")).collect();
    write_each(&a, &names).await;
    let mut readers: Vec<_> = names.iter().map(|name| b.reader(name)).collect();
    b.is(|stats| stats.followed == THREADS && stats.unknown == 0).await;
    for records in 2..=3 {
        write_each(&a, &names).await;
        for reader in &mut readers {
            reader.has(records).await;
        }
    }
    drop(readers);
    b.is(|stats| stats.followed == 0 && stats.tail.as_ref().is_some_and(|tail| tail.threads == 0)).await;
}

async fn write_each(node: &Node, threads: &[String]) {
    let writes = threads.iter().cloned().map(|thread| {
        let node = node.clone();
        tokio::spawn(async move { node.write(&thread, 10).await })
    });
    for write in writes.collect::<Vec<_>>() {
        write.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_a_missing_thread_sees_it_once_it_is_created() {
    let fixture = Fixture::new();
    let (a, b, c) = (fixture.node().await, fixture.node().await, fixture.node_alone().await);
    let mut readers = [a.reader("t"), b.reader("t"), c.reader("t")];
    b.is(|stats| stats.unknown == 1).await;
    for records in 1..=5 {
        a.write("t", 10).await;
        for reader in &mut readers {
            reader.has(records).await;
        }
    }
    b.is(|stats| stats.unknown == 0).await;
    // Nobody can call a thread this, and asking for it must hurt nobody.
    let _never = b.reader("t\0");
    a.write("t", 10).await;
    readers[1].has(6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_a_thread_that_another_node_deletes_come_to_their_end() {
    let fixture = Fixture::new();
    let (a, b, c) = (fixture.node().await, fixture.node().await, fixture.node_alone().await);
    a.write("t", 10).await;
    let mut readers = [a.reader("t"), b.reader_in_place("t").await, c.reader_in_place("t").await];
    for reader in &mut readers {
        reader.has(1).await;
    }
    a.log.delete_thread(&ThreadKey::new("tenant", "t"), true).await.unwrap();
    for reader in &mut readers {
        reader.is(|seen| seen.has_ended).await;
    }
    // The end of its run was told, too.
    assert_eq!(readers[0].seen().records, readers[1].seen().records);
    let mut late = b.reader("t");
    late.is(|seen| seen.has_ended).await;
}
