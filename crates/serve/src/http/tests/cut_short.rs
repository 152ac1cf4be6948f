//! Clients that leave in the middle of something: they get what is theirs, and nobody else does.

use super::*;
use linerate_transport::Files as _;

/// The next client to come gets its answer, and nothing before it.
fn check_next(rig: &mut Rig) {
    let expected = hello(rig);
    assert_eq!(rig.ask(HELLO), expected);
}

#[test]
fn a_body_that_is_cut_short_does_not_cost_the_answers_before_it() {
    let mut rig = Rig::new();
    let expected = rig.get("/memory/5", "");
    let conn = rig.connect();
    let requests = "GET /memory/5 HTTP/1.1\r\nHost: a\r\n\r\nPOST /memory/null HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc";
    rig.world.client_send(conn, requests.as_bytes());
    rig.world.net.client_finish(conn);
    rig.run();
    check_next(&mut rig);
    assert_eq!(rig.text(conn), expected);
    assert!(rig.world.net.client_sees_end(conn));
    assert_eq!(rig.server.counters().aborted, 1);
    rig.check_at_rest();
}

#[test]
fn a_body_that_never_comes_leaves_its_100_to_its_client() {
    let mut rig = Rig::new();
    let conn = rig.connect();
    let request =
        "POST /memory/null HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n";
    rig.world.client_send(conn, request.as_bytes());
    rig.world.net.client_finish(conn);
    rig.run();
    check_next(&mut rig);
    assert_eq!(rig.text(conn), "HTTP/1.1 100 Continue\r\n\r\n");
    assert!(rig.world.net.client_sees_end(conn));
    assert_eq!(rig.server.counters().aborted, 1);
    rig.check_at_rest();
}

#[test]
fn the_answer_to_a_client_that_broke_goes_to_nobody() {
    for target in ["/hello.txt", "/missing", "/list/"] {
        let mut rig = Rig::with(Config { autoindex: true, ..config() });
        rig.world.files.hold = true;
        let conn = rig.connect();
        rig.send(conn, format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        rig.world.net.client_reset(conn);
        rig.world.files.hold = false;
        // A loop hands out what files have finished before it hands out events.
        while let Some(done) = rig.world.files.poll_done() {
            rig.world.with(|ctx| rig.server.handle_file(ctx, done));
        }
        check_next(&mut rig);
        rig.check_at_rest();
    }
}

#[test]
fn a_file_that_became_shorter_is_asked_for_anew_however_long_it_is_believed() {
    let timeouts = Timeouts { cache: core::time::Duration::from_secs(3_600), ..Timeouts::default() };
    let mut rig = Rig::with(Config { timeouts, ..config() });
    let conn = rig.connect();
    rig.world.net.client_stall(conn, true);
    rig.send(conn, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    rig.world.files.nodes.get_mut("/big").unwrap().data.truncate(80_000);
    rig.world.net.client_stall(conn, false);
    rig.run();
    assert_eq!(rig.server.counters().files_changed, 1);
    let conn = rig.connect();
    rig.send(conn, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    let answer = rig.received(conn);
    let answer = String::from_utf8_lossy(&answer);
    assert_eq!((status_of(&answer), field(&answer, "Content-Length")), ("200", Some("80000")));
    assert_eq!(rig.server.counters().files_changed, 1);
}
