//! Single requests: create, list, show and cancel runs and threads.

use futures_util::TryStreamExt;
use runwire_client::{Client, Error, Json, NewRun, NewThread, RunFilter, RunStatus};

use crate::fake_servers::{COMPLETED, Ending, ScriptedServer, answer, delta, write};
use crate::test_server::{TestServer, within_timeout};

#[tokio::test]
async fn a_run_is_created_shown_and_cancelled() {
    let server = TestServer::start().await;
    let client = server.client();
    client.ready().await.unwrap();
    assert_eq!(client.server_version().await.unwrap(), env!("CARGO_PKG_VERSION"));
    let new = NewRun {
        run_id: Some("r1".into()),
        thread_id: Some("t1".into()),
        message: Some("Hello?".into()),
        input: Json::parse("{\"n\":1}").ok(),
        ..NewRun::default()
    };
    let created = client.create_run(&new).await.unwrap();
    assert_eq!((created.run_id.as_str(), created.thread_id.as_str()), ("r1", "t1"));
    assert_eq!(created.status, RunStatus::Pending);
    assert_eq!(client.create_run(&new).await.unwrap().run_id, "r1");
    let run = client.run("r1");
    write(&run, &delta("one")).await;
    let info = run.info().await.unwrap();
    assert_eq!((info.status, info.counts.messages), (RunStatus::Running, 1));
    assert!(
        info.started_at.is_some() && info.ended_at.is_none() && info.others.is_empty(),
        "{:?}",
        info.others
    );
    assert!(!run.heartbeat().await.unwrap().cancel_requested);
    assert!(run.cancel(Some("enough")).await.unwrap().cancel_requested);
    assert!(run.heartbeat().await.unwrap().cancel_requested);
    write(&run, COMPLETED).await;
    assert!(run.info().await.unwrap().status.is_closed());
}

#[tokio::test]
async fn lists_are_read_page_after_page() {
    let server = TestServer::start().await;
    let client = server.client();
    for n in 0..7 {
        write(&client.run(format!("r{n}")), &(delta("x") + if n == 3 { "" } else { COMPLETED })).await;
        let thread = NewThread { thread_id: Some(format!("t{n}")), parallel: n == 0 };
        client.create_thread(&thread).await.unwrap();
    }
    let filter = RunFilter { limit: Some(2), ..RunFilter::default() };
    let page = client.runs(&filter).await.unwrap();
    assert_eq!((page.runs.len(), page.next.as_deref()), (2, Some("r5")));
    let all: Vec<_> =
        within_timeout(client.all_runs(filter).map_ok(|run| run.run_id).try_collect()).await.unwrap();
    assert_eq!(all, ["r6", "r5", "r4", "r3", "r2", "r1", "r0"]);
    let running = RunFilter { status: Some(RunStatus::Running), ..RunFilter::default() };
    assert_eq!(client.runs(&running).await.unwrap().runs[0].run_id, "r3");
    let page = client.threads(None, Some(2)).await.unwrap();
    assert_eq!((page.threads.len(), page.next.is_some()), (2, true));
    let threads: Vec<_> = within_timeout(client.all_threads().try_collect()).await.unwrap();
    assert!(threads.iter().any(|thread| thread.thread_id == "t0" && thread.parallel));
    assert_eq!(threads.len(), 14);
}

#[tokio::test]
async fn fields_of_other_server_versions_are_kept_or_refused() {
    let run = r#"{"run_id":"r","thread_id":"t","status":"dreaming","mood":"good","counts":{"dreams":2}}"#;
    let server = ScriptedServer::play(vec![(answer("200 OK", "application/json", run), Ending::Close)]).await;
    let info = within_timeout(server.client().build().unwrap().run("r").info()).await.unwrap();
    assert_eq!(info.status, RunStatus::Unknown("dreaming".into()));
    assert_eq!((&info.others["mood"], &info.counts.others["dreams"]), (&"good".into(), &2.into()));
    // Fields that an older server does not have.
    let server = TestServer::start().await;
    let run = server.client().run("r1");
    let error = run.retry().await.unwrap_err();
    assert_eq!(error.problem().unwrap().status(), 404, "{error}");
}

#[tokio::test]
async fn the_path_prefix_and_the_token_are_sent() {
    let problem = r#"{"status":401,"code":"unauthorized","title":"Who are you?"}"#;
    let answers = vec![(answer("401 Unauthorized", "application/problem+json", problem), Ending::Close)];
    let server = ScriptedServer::play(answers).await;
    let url = format!("http://{}/runs/of/ours/", server.address);
    let client = Client::builder().url(url).token("secret").build().unwrap();
    let error = within_timeout(client.run("r").info()).await.unwrap_err();
    // A newer server has codes that this client does not know.
    assert_eq!((error.code(), error.to_string().as_str()), (None, "Who are you? [unauthorized]"));
    assert_eq!(error.problem().and_then(|problem| problem.code_text()), Some("unauthorized"));
    let request = server.requests().await.remove(0);
    assert!(request.starts_with("GET /runs/of/ours/v1/runs/r HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: Bearer secret\r\n"), "{request}");
    assert!(matches!(Client::builder().token("two words").build(), Err(Error::Token)));
    assert!(matches!(Client::builder().url("localhost").build(), Err(Error::Url { .. })));
}

#[test]
fn streams_can_be_sent_to_another_task() {
    fn check<T: Send + Unpin + 'static>() {}
    check::<runwire_client::EventStream>();
    check::<runwire_client::FrameStream>();
    check::<runwire_client::TextStream>();
    check::<runwire_client::MessageStates>();
    check::<runwire_client::RunHandle>();
}
