//! Exactly-once writing: a producer that retries never writes a frame twice; a zombie is refused.

use crate::harness::{COMPLETED, Served, delta};

#[tokio::test]
async fn a_repeated_body_is_counted_as_duplicates_and_written_once() {
    let served = Served::start().await;
    let body = delta("a") + &delta("b");
    let first = served.write_as("/v1/runs/r/events", ("p", 0, 0), &body).await.written(2, 0);
    for _ in 0..3 {
        let again = served.write_as("/v1/runs/r/events", ("p", 0, 0), &body).await.written(0, 2);
        assert_eq!(again["last_seq"], first["last_seq"]);
    }
    let overlapping = body + &delta("c");
    served.write_as("/v1/runs/r/events", ("p", 0, 0), &overlapping).await.written(1, 2);
    assert_eq!(served.get("/v1/runs/r/message").await.json()["mainContent"], "abc");
}

#[tokio::test]
async fn repeating_the_body_that_ended_the_run_is_no_error() {
    let served = Served::start().await;
    let body = delta("a") + COMPLETED;
    served.write_as("/v1/runs/r/events", ("p", 0, 0), &body).await.written(2, 0);
    served.write_as("/v1/runs/r/events", ("p", 0, 0), &body).await.written(0, 2);
    // The same where the end was said with the request.
    served.write_as("/v1/runs/q/events?end=true", ("p", 0, 0), &delta("a")).await.written(1, 0);
    served.write_as("/v1/runs/q/events?end=true", ("p", 0, 0), &delta("a")).await.written(0, 1);
    assert_eq!(served.get("/v1/runs/q").await.json()["status"], "completed");
}

#[tokio::test]
async fn a_gap_is_refused_and_says_where_to_go_on() {
    let served = Served::start().await;
    served.write_as("/v1/runs/r/events", ("p", 0, 0), &delta("a")).await.written(1, 0);
    let gap =
        served.write_as("/v1/runs/r/events", ("p", 0, 2), &delta("c")).await.problem(409, "producer_gap");
    assert_eq!((&gap["expected"], &gap["accepted"]), (&1.into(), &0.into()));
    served.write_as("/v1/runs/r/events", ("p", 0, 1), &delta("b")).await.written(1, 0);
    assert_eq!(served.get("/v1/runs/r/message").await.json()["mainContent"], "ab");
}

#[tokio::test]
async fn a_zombie_of_an_older_epoch_is_refused_and_its_heir_goes_on() {
    let served = Served::start().await;
    served.write_as("/v1/runs/r/events", ("p", 1, 0), &delta("a")).await.written(1, 0);
    let place = served.get("/v1/runs/r/producers/p").await.json();
    assert_eq!(
        (&place["epoch"], &place["next"], &place["dialect"]),
        (&1.into(), &1.into(), &"runwire".into())
    );
    served.write_as("/v1/runs/r/events", ("p", 2, 1), &delta("b")).await.written(1, 0);
    let refused = served.write_as("/v1/runs/r/events", ("p", 1, 1), &delta("x")).await;
    assert_eq!(refused.problem(403, "producer_fenced")["epoch"], 2);
    assert_eq!(served.get("/v1/runs/r/message").await.json()["mainContent"], "ab");
}

#[tokio::test]
async fn an_open_body_of_an_older_epoch_is_cut_off_at_once() {
    let served = Served::start().await;
    let zombie = [("producer-id", "p"), ("producer-epoch", "1"), ("producer-seq", "0")];
    let mut body = served.open("/v1/runs/r/events", &zombie).await;
    body.chunk(&delta("a")).await;
    served.until_records("r", 1).await;
    served.write_as("/v1/runs/r/events", ("p", 2, 1), &delta("b")).await.written(1, 0);
    let cut = body.answer().await.unwrap().problem(403, "producer_fenced");
    assert_eq!((&cut["epoch"], &cut["accepted"]), (&2.into(), &1.into()));
}

#[tokio::test]
async fn an_open_body_of_another_producer_is_left_alone() {
    let served = Served::start().await;
    let mut body = served.open("/v1/runs/r/events", &[("producer-id", "q"), ("producer-seq", "0")]).await;
    body.chunk(&delta("a")).await;
    served.until_records("r", 1).await;
    served.write_as("/v1/runs/r/events", ("p", 9, 0), &delta("b")).await.written(1, 0);
    body.chunk(&delta("c")).await;
    body.end().await;
    body.answer().await.unwrap().written(2, 0);
}

#[tokio::test]
async fn an_open_body_counts_its_frames_over_many_pieces() {
    let served = Served::start().await;
    let stamp = [("producer-id", "p"), ("producer-seq", "0")];
    let mut body = served.open("/v1/runs/r/events", &stamp).await;
    for (written, content) in ["a", "b", "c"].into_iter().enumerate() {
        let frame = delta(content);
        let (head, tail) = frame.split_at(20);
        body.chunk(head).await;
        body.chunk(tail).await;
        served.until_records("r", written as u64 + 1).await;
    }
    body.end().await;
    body.answer().await.unwrap().written(3, 0);
    assert_eq!(served.get("/v1/runs/r/producers/p").await.json()["next"], 3);
    let all = delta("a") + &delta("b") + &delta("c");
    served.write_as("/v1/runs/r/events", ("p", 0, 0), &all).await.written(0, 3);
}

#[tokio::test]
async fn an_end_mark_uses_up_no_index() {
    let served = Served::start().await;
    let event = |data: &str| format!("data: {}\n\n", data.trim_end());
    let stamp = [("producer-id", "p"), ("producer-seq", "0"), ("content-type", "text/event-stream")];
    let mut body = served.open("/v1/runs/r/events", &stamp).await;
    body.chunk(&(event(&delta("a")) + &event("[DONE]"))).await;
    served.until_records("r", 1).await;
    body.chunk(&event("[DONE]")).await;
    body.chunk(&event(&delta("b"))).await;
    body.end().await;
    assert_eq!(body.answer().await.unwrap().written(2, 0)["last_seq"], 2);
    // A producer that counts its events alone goes on where it was.
    served.write_as("/v1/runs/r/events", ("p", 0, 2), &delta("c")).await.written(1, 0);
    let mark = served.write_as("/v1/runs/r/events", ("p", 0, 3), &event("[DONE]")).await.written(0, 0);
    assert_eq!(mark["last_seq"], 3);
    assert_eq!(served.get("/v1/runs/r/producers/p").await.json()["next"], 3);
}

#[tokio::test]
async fn a_refused_frame_uses_up_no_index() {
    let served = Served::start().await;
    let bad = delta("a") + "{\"type\":\"text.delta\"}\n" + &delta("c");
    let fault = served.write_as("/v1/runs/r/events", ("p", 0, 0), &bad).await.problem(422, "bad_field");
    assert_eq!((&fault["accepted"], &fault["line"]), (&1.into(), &2.into()));
    assert_eq!(served.get("/v1/runs/r/producers/p").await.json()["next"], 1);
    let mended = delta("a") + &delta("b") + &delta("c");
    served.write_as("/v1/runs/r/events", ("p", 0, 0), &mended).await.written(2, 1);
}

#[tokio::test]
async fn a_producer_that_never_wrote_begins_at_the_beginning() {
    let served = Served::start().await;
    served.post("/v1/runs/r/events", &delta("a")).await.written(1, 0);
    let place = served.get("/v1/runs/r/producers/nobody").await.json();
    assert_eq!((&place["epoch"], &place["next"]), (&0.into(), &0.into()));
    served.get("/v1/runs/unknown/producers/p").await.problem(404, "run_unknown");
}

#[tokio::test]
async fn a_producer_of_a_whole_thread_can_ask_where_it_was() {
    let served = Served::start().await;
    served.write_as("/v1/threads/t/events", ("p", 3, 0), &(delta("a") + &delta("b"))).await.written(2, 0);
    let place = served.get("/v1/threads/t/producers/p").await.json();
    assert_eq!((&place["epoch"], &place["next"]), (&3.into(), &2.into()));
    served.get("/v1/threads/unknown/producers/p").await.problem(404, "thread_unknown");
}

#[tokio::test]
async fn a_run_is_written_in_its_own_thread_and_no_other() {
    let served = Served::start().await;
    served.post("/v1/runs/r/events?thread=t", &delta("a")).await.written(1, 0);
    served.post("/v1/runs/r/events?thread=t", &delta("b")).await.written(1, 0);
    served.post("/v1/runs/r/events?thread=u", &delta("c")).await.problem(409, "run_exists");
}

#[tokio::test]
async fn two_writers_on_one_run_both_get_all_of_theirs_in_one_order() {
    let served = Served::start().await;
    let write = async |producer: &str| {
        for index in 0..20 {
            let frame = format!("{{\"type\":\"custom\",\"name\":\"{producer}\",\"value\":{index}}}\n");
            served.write_as("/v1/runs/r/events", (producer, 0, index), &frame).await.written(1, 0);
        }
    };
    tokio::join!(write("p"), write("q"));
    let run = served.get("/v1/runs/r").await.json();
    assert_eq!((&run["counts"]["records"], &run["cursor"]), (&40.into(), &"40".into()));
}
