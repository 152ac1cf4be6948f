//! The client against a server that says anything.

use super::super::params::{Params, Protocol};
use super::super::protocol::framed;
use super::{Client, ClientError, Config, json, text};
use crate::Service as _;
use crate::testing::{OWNER, World};
use alloc::string::ToString as _;
use alloc::vec::Vec;
use core::time::Duration;
use linerate_transport::{CloseReason, ConnId};
use proptest::prelude::*;

fn config(params: Params) -> Config {
    Config { owner: OWNER, params, ..Config::new("192.168.1.1:5201".parse().expect("an address")) }
}

/// A client whose control connection is open.
fn connected(params: Params) -> (World, Client, ConnId) {
    let (mut world, mut client) = (World::new(), Client::new(config(params)));
    world.start(&mut client);
    let (control, _) = world.net.connecting[0];
    world.net.client_accept(control);
    world.run(&mut client);
    assert_eq!(world.received(control).len(), 37, "a cookie");
    (world, client, control)
}

fn say(world: &mut World, client: &mut Client, control: ConnId, bytes: &[u8]) -> Vec<u8> {
    world.client_send(control, bytes);
    world.run(client);
    world.received(control)
}

#[test]
fn what_the_server_says_instead_is_an_error_with_a_name() {
    for (bytes, expected) in [
        (&[0xff][..], ClientError::Busy),
        (&[11], ClientError::ServerTerminated),
        (&[0xfe, 0, 0, 0, 142, 0, 0, 0, 0], ClientError::Server { code: 142, errno: 0 }),
        (&[0xfe, 0, 0, 0, 134, 0, 0, 0, 2], ClientError::Server { code: 134, errno: 2 }),
        (&[14], ClientError::Protocol { state: 14 }),
        (b"HTTP/1.1 400 Bad Request\r\n", ClientError::Protocol { state: 72 }),
        (&[9, 10, 2], ClientError::Protocol { state: 2 }),
    ] {
        let (mut world, mut client, control) = connected(Params::default());
        say(&mut world, &mut client, control, bytes);
        assert_eq!(client.outcome(), Some(Err(expected)), "{bytes:?}");
        assert_eq!((world.net.held(), client.poll_timeout()), (0, None), "{bytes:?}");
        assert!(expected.to_string().len() > 10);
    }
}

#[test]
fn a_refusal_without_the_system_s_error_is_understood_at_the_end() {
    let (mut world, mut client, control) = connected(Params::default());
    say(&mut world, &mut client, control, &[9]);
    say(&mut world, &mut client, control, &[0xfe, 0, 0, 0, 142]);
    assert_eq!(client.outcome(), None, "more may come");
    world.net.client_reset(control);
    world.run(&mut client);
    assert_eq!(client.outcome(), Some(Err(ClientError::Server { code: 142, errno: 0 })));
}

#[test]
fn silence_and_ends_are_noticed_in_every_phase() {
    for said in [&[][..], &[9], &[9, 10]] {
        for is_cut in [false, true] {
            let (mut world, mut client, control) = connected(Params::default());
            for byte in said {
                say(&mut world, &mut client, control, &[*byte]);
            }
            if is_cut {
                world.net.client_reset(control);
                world.run(&mut client);
                let error = match said.is_empty() {
                    true => ClientError::TurnedAway(CloseReason::Reset),
                    false => ClientError::Control(CloseReason::Reset),
                };
                assert_eq!(client.outcome(), Some(Err(error)));
            } else {
                world.advance(&mut client, Duration::from_secs(31));
                assert_eq!(client.outcome(), Some(Err(ClientError::Silent)), "{said:?}");
            }
            assert_eq!(world.net.held(), 0);
        }
    }
    let (mut world, mut client) = (World::new(), Client::new(config(Params::default())));
    world.start(&mut client);
    world.advance(&mut client, Duration::from_secs(31));
    assert_eq!(client.outcome(), Some(Err(ClientError::ConnectTimeout)));
}

#[test]
fn datagrams_have_the_type_of_service_and_the_window_that_were_asked_for() {
    for (tos, window) in [(0xb8, Some(300_000)), (0, None)] {
        let params = Params {
            protocol: Protocol::Udp,
            rate_bps: 1_000_000,
            len: 1_250,
            tos,
            window,
            ..Params::default()
        };
        let (mut world, mut client, control) = connected(params);
        say(&mut world, &mut client, control, &[9]);
        say(&mut world, &mut client, control, &[10]);
        assert_eq!(world.net.udp_buffers(), [window.unwrap_or(1 << 20)]);
        say(&mut world, &mut client, control, &[1, 2]);
        world.advance(&mut client, Duration::from_millis(100));
        let data: Vec<u8> =
            world.net.sent.iter().filter(|sent| sent.data.len() == 1_250).map(|sent| sent.tos).collect();
        assert!(data.len() > 5 && data.iter().all(|found| *found == tos), "{data:?}");
    }
}

/// A client whose results are sent and which waits for those of the server.
fn exchanging(params: Params) -> (World, Client, ConnId) {
    let params = Params { time: Duration::from_secs(1), rate_bps: 1_000_000, len: 1_250, ..params };
    let (mut world, mut client, control) = connected(params);
    say(&mut world, &mut client, control, &[9]);
    say(&mut world, &mut client, control, &[10]);
    let (stream, _) = world.net.connecting[0];
    world.net.client_accept(stream);
    world.run(&mut client);
    say(&mut world, &mut client, control, &[1, 2]);
    world.advance(&mut client, Duration::from_millis(1_100));
    say(&mut world, &mut client, control, &[13]);
    (world, client, control)
}

#[test]
fn the_text_of_a_long_test_is_taken_where_it_was_asked_for() {
    let line = "[  5]   0.00-1.00   sec   112 MBytes   941 Mbits/sec                  \n";
    let results = serde_json::json!({ "streams": [], "server_output_text": line.repeat(6_000) });
    let results = framed(&serde_json::to_vec(&results).expect("JSON"));
    assert!(results.len() > 400_000);
    for server_output in [true, false] {
        let (mut world, mut client, control) = exchanging(Params { server_output, ..Params::default() });
        for piece in results.chunks(50_000) {
            say(&mut world, &mut client, control, piece);
        }
        say(&mut world, &mut client, control, &[14]);
        let expected = if server_output { Ok(()) } else { Err(ClientError::Results) };
        assert_eq!(client.outcome(), Some(expected));
        let text = client.report().server_output.map_or(0, |text| text.len());
        assert_eq!(text > 400_000, server_output);
    }
}

#[test]
fn what_the_server_says_in_place_of_results_is_an_error_with_a_name() {
    for (bytes, expected) in [
        (&[11][..], ClientError::ServerTerminated),
        (&[0xfe, 0, 0, 0, 117, 0, 0, 0, 2], ClientError::Server { code: 117, errno: 2 }),
        (&[0, 0, 0, 1, b'{'], ClientError::Results),
        (&[0, 0xff, 0xff, 0xff], ClientError::Results),
    ] {
        let (mut world, mut client, control) = exchanging(Params::default());
        for byte in bytes {
            assert_eq!(client.outcome(), None, "{bytes:?}");
            say(&mut world, &mut client, control, &[*byte]);
        }
        assert_eq!(client.outcome(), Some(Err(expected)), "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn any_words_of_a_server_leave_nothing_behind(
        first in proptest::collection::vec(any::<u8>(), 0..20),
        is_started: bool,
        results in proptest::collection::vec(any::<u8>(), 0..80),
        shape in 0usize..4,
        last in proptest::collection::vec(any::<u8>(), 0..10),
    ) {
        // Without a rate, it would send for ever in no time: nothing here holds it back.
        let params = Params { time: Duration::from_secs(1), rate_bps: 1_000_000, len: 1_250, ..Params::default() };
        let (mut world, mut client, control) = connected(params);
        if is_started {
            say(&mut world, &mut client, control, &[9]);
            say(&mut world, &mut client, control, &[10]);
            if let Some((stream, _)) = world.net.connecting.first().copied() {
                world.net.client_accept(stream);
                world.run(&mut client);
            }
            say(&mut world, &mut client, control, &[1, 2]);
            world.advance(&mut client, Duration::from_millis(1_100));
            let texts: [&[u8]; 4] = [
                &results,
                br#"{"streams":[{"id":1,"bytes":-5,"end_time":"x","retransmits":18446744073709551615}]}"#,
                br#"{"streams":[{"id":1,"bytes":1e300,"packets":3,"errors":9,"start_time":9,"end_time":1}]}"#,
                br#"[7]"#,
            ];
            say(&mut world, &mut client, control, &[13]);
            say(&mut world, &mut client, control, &framed(texts[shape]));
        } else {
            say(&mut world, &mut client, control, &first);
        }
        say(&mut world, &mut client, control, &last);
        world.advance(&mut client, Duration::from_secs(200));
        prop_assert!(client.outcome().is_some());
        prop_assert_eq!(world.net.held(), 0);
        prop_assert_eq!(client.poll_timeout(), None);
        // Whatever was said, there is a report.
        let report = client.report();
        prop_assert!(!text::end(&report).contains("NaN"));
        let value = json::report(&report, &[], &serde_json::Map::new(), client.outcome().unwrap());
        prop_assert!(value["start"].is_object());
    }
}
