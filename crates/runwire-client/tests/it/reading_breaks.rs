//! Connections that break, servers that leave, fall silent, or are no servers of ours.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use runwire_client::{Dialect, Error, Signal, Transport};

use crate::reading_way::{
    Brittle, COMPLETED, Scripted, Seeded, Then, all, answer, cut, delta, events, over, quick, told, write,
};
use crate::writing_stage::{Stage, client_of, patient, until};

const CARRIERS: [Transport; 2] = [Transport::Sse, Transport::WebSocket];

/// A run with many events, several frames to a record in some dialects.
fn long_run() -> String {
    let mut frames = String::new();
    for step in 0..40 {
        frames += &format!("{{\"type\":\"step.started\",\"name\":\"s\",\"step_id\":\"s.{step}\"}}\n");
        for piece in 0..5 {
            frames += &delta(&format!("{step}/{piece} 你好 "));
        }
        let call = format!("\"call_id\":\"c{step}\"");
        frames +=
            &format!("{{\"type\":\"tool.called\",{call},\"name\":\"t\",\"arguments\":{{\"n\":{step}}}}}\n");
        frames +=
            &format!("{{\"type\":\"tool.finished\",{call},\"status\":\"success\",\"result\":\"ok\"}}\n");
        frames += &format!("{{\"type\":\"step.finished\",\"name\":\"s\",\"step_id\":\"s.{step}\"}}\n");
    }
    frames + COMPLETED
}

#[tokio::test]
async fn connections_that_break_at_any_byte_cost_no_frame_and_repeat_none() {
    let stage = Stage::start().await;
    write(&stage.client().run("r1"), &long_run()).await;
    for dialect in [Dialect::Runwire, Dialect::AgUi, Dialect::EasyflowChat] {
        let whole = all(stage.client().run("r1").frames(dialect)).await;
        for (seed, carrier) in [(7, CARRIERS[0]), (8, CARRIERS[0]), (9, CARRIERS[1])] {
            let way = Brittle::to(stage.address, Seeded(seed), 6000).await;
            let client = quick(way.address).first_tries(1000).build().unwrap();
            let read = all(client.run("r1").frames(dialect).transport(carrier)).await;
            assert_eq!(read.len(), whole.len(), "{dialect} over {carrier:?}, seed {seed}");
            assert!(read == whole, "{dialect} over {carrier:?}, seed {seed}");
            assert!(way.connections() > 3, "{}", way.connections());
        }
    }
}

#[tokio::test]
async fn a_restarted_server_costs_no_event() {
    for carrier in CARRIERS {
        let mut stage = Stage::start().await;
        let run = client_of(stage.address).run("r1");
        let mut frames = run.frames(Dialect::AgUi).transport(carrier);
        let mut read = Vec::new();
        for life in 0..3 {
            write(&run, &delta(&format!("life {life}"))).await;
            while let Some(signal) = patient(frames.signal()).await {
                match signal.unwrap() {
                    Signal::Item(frame) => read.push(told(&frame)),
                    Signal::CaughtUp => break,
                    _ => {}
                }
            }
            stage.kill();
            // The stream notices before there is a server again.
            loop {
                match patient(frames.signal()).await.unwrap().unwrap() {
                    Signal::Item(frame) => read.push(told(&frame)),
                    Signal::CaughtUp => {}
                    Signal::Interrupted(error) => {
                        assert!(error.is_temporary() && !frames.is_caught_up(), "{error}");
                        break;
                    }
                    other => panic!("{other:?}"),
                }
            }
            stage.restart().await;
        }
        write(&run, COMPLETED).await;
        read.extend(all(frames).await);
        assert_eq!(read, all(run.frames(Dialect::AgUi)).await, "{carrier:?}");
    }
}

#[tokio::test]
async fn an_event_that_a_break_cuts_off_is_asked_for_again_and_comes_once() {
    let server = Scripted::play(vec![
        (cut("id: 1-0\ndata: {\"n\":1}\n\nid: 2-0\ndata: {\"n\""), Then::Close),
        (events("id: 2-0\ndata: {\"n\":2}\n\nid: 2\n\n"), Then::Close),
        (over(), Then::Close),
    ])
    .await;
    let client = server.client().token("secret").build().unwrap();
    let read = all(client.run("a/b").frames(Dialect::Loom)).await;
    assert_eq!(read.iter().map(|(_, data)| data.as_str()).collect::<Vec<_>>(), ["{\"n\":1}", "{\"n\":2}"]);
    let requests = server.requests().await;
    let first = "GET /v1/runs/a%2Fb/events?dialect=loom HTTP/1.1\r\n";
    assert!(requests[0].starts_with(first), "{}", requests[0]);
    assert!(requests[0].contains("authorization: Bearer secret\r\n"));
    assert!(requests[1].contains("?dialect=loom&after=1-0 "), "{}", requests[1]);
    assert!(requests[2].contains("&after=2 "), "{}", requests[2]);
}

#[tokio::test]
async fn a_snapshot_that_a_break_cuts_off_is_not_handed_out_by_halves() {
    let server = Scripted::play(vec![
        (cut("data: {\"half\":1}\n\ndata: {\"half\":2}\n\n"), Then::Close),
        (events("data: {\"whole\":1}\n\nid: 7\ndata: {\"whole\":2}\n\n"), Then::Close),
        (over(), Then::Close),
    ])
    .await;
    let client = server.client().build().unwrap();
    let read = all(client.run("r1").frames(Dialect::AgUi).attach(true)).await;
    assert_eq!(
        read.iter().map(|(_, data)| data.as_str()).collect::<Vec<_>>(),
        ["{\"whole\":1}", "{\"whole\":2}"]
    );
    let requests = server.requests().await;
    assert!(requests[1].contains("attach=snapshot") && requests[2].contains("after=7 "), "{requests:?}");
}

#[tokio::test]
async fn a_server_that_leaves_is_waited_for_even_by_a_reader_that_does_not_follow() {
    let server = Scripted::play(vec![
        (events("id: 1-0\ndata: 1\n\nretry: 5\n\n"), Then::Close),
        (answer("503 Service Unavailable", "text/html", "<h1>soon</h1>"), Then::Close),
        (events("id: 2-0\ndata: 2\n\n"), Then::Close),
    ])
    .await;
    let mut frames = server.client().build().unwrap().run("r1").frames(Dialect::Text).follow(false);
    let mut news = Vec::new();
    while let Some(signal) = patient(frames.signal()).await {
        news.push(match signal.unwrap() {
            Signal::Item(frame) => frame.text().into_owned(),
            Signal::Interrupted(error) => error.to_string(),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!((news.len(), news[0].as_str(), news[3].as_str()), (4, "1", "2"), "{news:?}");
    assert!(news[1].contains("it is stopping"), "{news:?}");
    assert_eq!(news[2], "the server answers 503 Service Unavailable, and not as Runwire does (text/html)");
    drop(server);
}

#[tokio::test]
async fn a_silent_connection_is_given_up_and_a_slow_one_is_not() {
    let silent = events("").replace("content-length: 0\r\n", "content-length: 1000\r\n");
    let server = Scripted::play(vec![
        (silent + "id: 1-0\ndata: 1\n\n", Then::Silence),
        (events("id: 2-0\ndata: 2\n\n"), Then::Close),
        (over(), Then::Close),
    ])
    .await;
    let client = server.client().silence(Duration::from_millis(50)).build().unwrap();
    assert_eq!(all(client.run("r1").frames(Dialect::Text)).await.len(), 2);
    assert!(server.requests().await[1].contains("after=1-0"));
    // A server that never says a word is no answer at all.
    let server = Scripted::play(vec![(String::new(), Then::Silence), (over(), Then::Close)]).await;
    let client = server.client().answer_time(Duration::from_millis(50)).build().unwrap();
    assert_eq!(all(client.run("r1").frames(Dialect::Text)).await, []);
}

#[tokio::test]
async fn what_is_no_runwire_server_is_named_and_not_tried_again() {
    let page = || answer("200 OK", "text/html", "<h1>Welcome</h1>");
    for carrier in CARRIERS {
        let server = Scripted::play(vec![(page(), Then::Close)]).await;
        let mut frames = server.client().build().unwrap().run("r1").frames(Dialect::Loom).transport(carrier);
        let error = patient(frames.next()).await.unwrap().unwrap_err();
        assert!(matches!(&error, Error::Strange { .. }), "{error}");
        assert!(error.to_string().contains("does not answer like a Runwire server"), "{error}");
        assert!(patient(frames.next()).await.is_none());
    }
    let server = Scripted::play(vec![(page(), Then::Close)]).await;
    let error = patient(server.client().build().unwrap().run("r1").info()).await.unwrap_err();
    assert!(matches!(error, Error::Strange { .. }), "{error}");
    let moved = "HTTP/1.1 302 Found\r\nlocation: /login\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let server = Scripted::play(vec![(moved.to_owned(), Then::Close)]).await;
    let error = patient(server.client().build().unwrap().run("r1").info()).await.unwrap_err();
    assert!(matches!(error, Error::Strange { .. }), "{error}");
    let server = Scripted::play(vec![(events("id: soon\ndata: x\n\n"), Then::Close)]).await;
    let error = all_or_error(&server).await.unwrap_err();
    assert!(error.to_string().contains("no cursor"), "{error}");
}

async fn all_or_error(server: &Scripted) -> Result<usize, Error> {
    let frames = server.client().build()?.run("r1").frames(Dialect::Loom);
    patient(frames.try_fold(0, async |count, _| Ok(count + 1))).await
}

#[tokio::test]
async fn a_server_that_was_never_there_is_told_after_a_few_tries() {
    let stage = Stage::start().await;
    let address = stage.address;
    drop(stage);
    until(|| std::net::TcpStream::connect(address).is_err()).await;
    for carrier in CARRIERS {
        let client = quick(address).first_tries(3).build().unwrap();
        let mut events = client.run("r1").events().transport(carrier);
        let mut tries = 1;
        let error = loop {
            match patient(events.signal()).await.unwrap() {
                Ok(Signal::Interrupted(_)) => tries += 1,
                Ok(other) => panic!("{other:?}"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Unreachable { .. }), "{error}");
        assert_eq!(tries, 3);
        assert!(patient(events.next()).await.is_none());
    }
}

#[tokio::test]
async fn a_stream_gives_up_after_the_time_that_it_was_given() {
    let server = Scripted::play(vec![(events("id: 1-0\ndata: 1\n\nretry: 1\n\n"), Then::Close)]).await;
    let client = server.client().give_up_after(Duration::from_millis(30)).build().unwrap();
    let mut frames = client.run("r1").frames(Dialect::Text);
    assert!(patient(frames.next()).await.unwrap().is_ok());
    let error = patient(frames.next()).await.unwrap().unwrap_err();
    assert!(error.is_temporary(), "{error}");
    assert!(patient(frames.next()).await.is_none());
}

#[tokio::test]
async fn asking_for_an_item_and_dropping_the_question_loses_nothing() {
    let stage = Stage::start().await;
    let run = stage.client().run("r1");
    write(&run, &long_run()).await;
    for carrier in CARRIERS {
        let whole = all(run.frames(Dialect::AgUi)).await;
        let mut frames = run.frames(Dialect::AgUi).transport(carrier);
        let mut read = Vec::new();
        patient(async {
            loop {
                tokio::select! {
                    biased;
                    frame = frames.next() => match frame {
                        Some(frame) => read.push(told(&frame.unwrap())),
                        None => break,
                    },
                    () = tokio::task::yield_now() => {}
                }
            }
        })
        .await;
        assert_eq!(read, whole);
    }
}
