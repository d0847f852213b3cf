//! Streams recover from broken and idle connections and restarts, and refuse servers that are not Runwire.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use runwire_client::{Dialect, Error, StreamUpdate, Transport};

use crate::fake_servers::{
    BreakingProxy, COMPLETED, Ending, ScriptedServer, SeededRandom, all, answer, cursor_and_text, cut, delta,
    events, fast_retry_client, over, write,
};
use crate::test_server::{TestServer, client_of, until, within_timeout};

const TRANSPORTS: [Transport; 2] = [Transport::Sse, Transport::WebSocket];

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
    let server = TestServer::start().await;
    write(&server.client().run("r1"), &long_run()).await;
    for dialect in [Dialect::Runwire, Dialect::AgUi, Dialect::EasyflowChat] {
        let whole = all(server.client().run("r1").frames(dialect)).await;
        for (seed, transport) in [(7, TRANSPORTS[0]), (8, TRANSPORTS[0]), (9, TRANSPORTS[1])] {
            let proxy = BreakingProxy::to(server.address, SeededRandom(seed), 6000).await;
            let client = fast_retry_client(proxy.address).connect_attempts(1000).build().unwrap();
            let read = all(client.run("r1").frames(dialect).transport(transport)).await;
            assert_eq!(read.len(), whole.len(), "{dialect} over {transport:?}, seed {seed}");
            assert!(read == whole, "{dialect} over {transport:?}, seed {seed}");
            assert!(proxy.connections() > 3, "{}", proxy.connections());
        }
    }
}

#[tokio::test]
async fn a_restarted_server_costs_no_event() {
    for transport in TRANSPORTS {
        let mut server = TestServer::start().await;
        let run = client_of(server.address).run("r1");
        let mut frames = run.frames(Dialect::AgUi).transport(transport);
        let mut read = Vec::new();
        for life in 0..3 {
            write(&run, &delta(&format!("life {life}"))).await;
            while let Some(signal) = within_timeout(frames.next_update()).await {
                match signal.unwrap() {
                    StreamUpdate::Item(frame) => read.push(cursor_and_text(&frame)),
                    StreamUpdate::CaughtUp => break,
                    _ => {}
                }
            }
            server.kill();
            // The stream must notice before the server is back.
            loop {
                match within_timeout(frames.next_update()).await.unwrap().unwrap() {
                    StreamUpdate::Item(frame) => read.push(cursor_and_text(&frame)),
                    StreamUpdate::CaughtUp => {}
                    StreamUpdate::Interrupted(error) => {
                        assert!(error.is_temporary() && !frames.is_caught_up(), "{error}");
                        break;
                    }
                    other => panic!("{other:?}"),
                }
            }
            server.restart().await;
        }
        write(&run, COMPLETED).await;
        read.extend(all(frames).await);
        assert_eq!(read, all(run.frames(Dialect::AgUi)).await, "{transport:?}");
    }
}

#[tokio::test]
async fn a_truncated_event_is_delivered_once_after_the_reconnect() {
    let server = ScriptedServer::play(vec![
        (cut("id: 1-0\ndata: {\"n\":1}\n\nid: 2-0\ndata: {\"n\""), Ending::Close),
        (events("id: 2-0\ndata: {\"n\":2}\n\nid: 2\n\n"), Ending::Close),
        (over(), Ending::Close),
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
async fn a_truncated_snapshot_is_not_delivered() {
    let server = ScriptedServer::play(vec![
        (cut("data: {\"half\":1}\n\ndata: {\"half\":2}\n\n"), Ending::Close),
        (events("data: {\"whole\":1}\n\nid: 7\ndata: {\"whole\":2}\n\n"), Ending::Close),
        (over(), Ending::Close),
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
async fn a_reader_waits_for_a_server_that_shuts_down_even_without_follow() {
    let server = ScriptedServer::play(vec![
        (events("id: 1-0\ndata: 1\n\nretry: 5\n\n"), Ending::Close),
        (answer("503 Service Unavailable", "text/html", "<h1>soon</h1>"), Ending::Close),
        (events("id: 2-0\ndata: 2\n\n"), Ending::Close),
    ])
    .await;
    let mut frames = server.client().build().unwrap().run("r1").frames(Dialect::Text).follow(false);
    let mut news = Vec::new();
    while let Some(signal) = within_timeout(frames.next_update()).await {
        news.push(match signal.unwrap() {
            StreamUpdate::Item(frame) => frame.text().into_owned(),
            StreamUpdate::Interrupted(error) => error.to_string(),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!((news.len(), news[0].as_str(), news[3].as_str()), (4, "1", "2"), "{news:?}");
    assert!(news[1].contains("it is stopping"), "{news:?}");
    assert_eq!(news[2], "the server answers 503 Service Unavailable, and not as Runwire does (text/html)");
    drop(server);
}

#[tokio::test]
async fn an_idle_connection_times_out_and_a_slow_one_does_not() {
    let silent = events("").replace("content-length: 0\r\n", "content-length: 1000\r\n");
    let server = ScriptedServer::play(vec![
        (silent + "id: 1-0\ndata: 1\n\n", Ending::Silence),
        (events("id: 2-0\ndata: 2\n\n"), Ending::Close),
        (over(), Ending::Close),
    ])
    .await;
    let client = server.client().idle_timeout(Duration::from_millis(50)).build().unwrap();
    assert_eq!(all(client.run("r1").frames(Dialect::Text)).await.len(), 2);
    assert!(server.requests().await[1].contains("after=1-0"));
    // A server that never responds.
    let server = ScriptedServer::play(vec![(String::new(), Ending::Silence), (over(), Ending::Close)]).await;
    let client = server.client().response_timeout(Duration::from_millis(50)).build().unwrap();
    assert_eq!(all(client.run("r1").frames(Dialect::Text)).await, []);
}

#[tokio::test]
async fn a_response_that_breaks_the_protocol_is_not_retried() {
    let page = || answer("200 OK", "text/html", "<h1>Welcome</h1>");
    for transport in TRANSPORTS {
        let server = ScriptedServer::play(vec![(page(), Ending::Close)]).await;
        let mut frames =
            server.client().build().unwrap().run("r1").frames(Dialect::Loom).transport(transport);
        let error = within_timeout(frames.next()).await.unwrap().unwrap_err();
        assert!(matches!(&error, Error::Protocol { .. }), "{error}");
        assert!(error.to_string().contains("does not answer like a Runwire server"), "{error}");
        assert!(within_timeout(frames.next()).await.is_none());
    }
    let server = ScriptedServer::play(vec![(page(), Ending::Close)]).await;
    let error = within_timeout(server.client().build().unwrap().run("r1").info()).await.unwrap_err();
    assert!(matches!(error, Error::Protocol { .. }), "{error}");
    let moved = "HTTP/1.1 302 Found\r\nlocation: /login\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let server = ScriptedServer::play(vec![(moved.to_owned(), Ending::Close)]).await;
    let error = within_timeout(server.client().build().unwrap().run("r1").info()).await.unwrap_err();
    assert!(matches!(error, Error::Protocol { .. }), "{error}");
    let server = ScriptedServer::play(vec![(events("id: soon\ndata: x\n\n"), Ending::Close)]).await;
    let error = all_or_error(&server).await.unwrap_err();
    assert!(error.to_string().contains("no cursor"), "{error}");
}

async fn all_or_error(server: &ScriptedServer) -> Result<usize, Error> {
    let frames = server.client().build()?.run("r1").frames(Dialect::Loom);
    within_timeout(frames.try_fold(0, async |count, _| Ok(count + 1))).await
}

#[tokio::test]
async fn an_unreachable_server_is_an_error_after_a_few_attempts() {
    let server = TestServer::start().await;
    let address = server.address;
    drop(server);
    until(|| std::net::TcpStream::connect(address).is_err()).await;
    for transport in TRANSPORTS {
        let client = fast_retry_client(address).connect_attempts(3).build().unwrap();
        let mut events = client.run("r1").events().transport(transport);
        let mut tries = 1;
        let error = loop {
            match within_timeout(events.next_update()).await.unwrap() {
                Ok(StreamUpdate::Interrupted(_)) => tries += 1,
                Ok(other) => panic!("{other:?}"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Unreachable { .. }), "{error}");
        assert_eq!(tries, 3);
        assert!(within_timeout(events.next()).await.is_none());
    }
}

#[tokio::test]
async fn a_stream_gives_up_after_its_time_limit() {
    let server =
        ScriptedServer::play(vec![(events("id: 1-0\ndata: 1\n\nretry: 1\n\n"), Ending::Close)]).await;
    let client = server.client().give_up_after(Duration::from_millis(30)).build().unwrap();
    let mut frames = client.run("r1").frames(Dialect::Text);
    assert!(within_timeout(frames.next()).await.unwrap().is_ok());
    let error = within_timeout(frames.next()).await.unwrap().unwrap_err();
    assert!(error.is_temporary(), "{error}");
    assert!(within_timeout(frames.next()).await.is_none());
}

#[tokio::test]
async fn waiting_for_an_item_is_cancel_safe() {
    let server = TestServer::start().await;
    let run = server.client().run("r1");
    write(&run, &long_run()).await;
    for transport in TRANSPORTS {
        let whole = all(run.frames(Dialect::AgUi)).await;
        let mut frames = run.frames(Dialect::AgUi).transport(transport);
        let mut read = Vec::new();
        within_timeout(async {
            loop {
                tokio::select! {
                    biased;
                    frame = frames.next() => match frame {
                        Some(frame) => read.push(cursor_and_text(&frame.unwrap())),
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
