//! Tests of the DHCP client against a scripted server.

use super::*;
use linerate_wire::dhcpv4::Addresses;
use proptest::prelude::*;

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const GIVEN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 77);

fn at(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1_000)
}

/// Runs the client until it acts, and tells when that was.
fn next(client: &mut DhcpClient) -> (Instant, DhcpAction) {
    for _ in 0..10 {
        let now = client.poll_timeout().unwrap();
        if let Some(action) = client.handle_timeout(now, 1_000) {
            return (now, action);
        }
    }
    panic!("the client does nothing");
}

fn sent(action: DhcpAction) -> DhcpSend {
    match action {
        DhcpAction::Send(message) => message,
        other => panic!("{other:?}"),
    }
}

fn reply(client: &mut DhcpClient, now: Instant, kind: MessageType, lease_s: u32) -> Option<DhcpAction> {
    let options = [
        DhcpOption::MessageType(kind),
        DhcpOption::ServerIdentifier(SERVER),
        DhcpOption::LeaseTime(lease_s),
        DhcpOption::SubnetMask(Ipv4Addr::new(255, 255, 255, 0)),
        DhcpOption::Routers(Addresses::new(&[[10, 0, 0, 1]])),
    ];
    let message = Builder {
        operation: Operation::Reply,
        your_ip: GIVEN,
        ..Builder::request(client.transaction_id, MAC, &options)
    };
    let mut bytes = [0; 600];
    let len = message.emit(&mut bytes).unwrap();
    client.handle_message(now, &Message::parse(&bytes[..len]).unwrap()).expect("for us")
}

fn bound(lease_s: u32) -> (DhcpClient, Lease) {
    let mut client = DhcpClient::new(MAC, 1);
    let (now, action) = next(&mut client);
    assert_eq!(sent(action).kind, MessageType::Discover);
    assert_eq!(reply(&mut client, now, MessageType::Offer, lease_s), None);
    let (now, action) = next(&mut client);
    let request = sent(action);
    assert_eq!(
        (request.kind, request.requested, request.server_id),
        (MessageType::Request, Some(GIVEN), Some(SERVER))
    );
    match reply(&mut client, now, MessageType::Ack, lease_s) {
        Some(DhcpAction::Bound(lease)) => (client, lease),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lease_is_given_back_once() {
    let (mut client, _) = bound(800);
    let release = sent(client.release(at(100)).expect("there is a lease"));
    assert_eq!((release.client_ip, release.destination, release.requested), (GIVEN, SERVER, None));
    let mut bytes = [0; MAX_MESSAGE];
    let len = release.emit(MAC, &mut bytes).unwrap();
    let message = Message::parse(&bytes[..len]).unwrap();
    assert_eq!((message.message_type(), message.client_ip()), (Some(MessageType::Release), GIVEN));
    assert_eq!(message.server_identifier(), Some(SERVER));
    assert_eq!((client.release(at(101)), client.poll_timeout()), (None, None));
    assert_eq!(DhcpClient::new(MAC, 1).release(at(1)), None, "nothing was lent");
}

#[test]
fn discover_is_repeated_with_growing_delays() {
    let mut client = DhcpClient::new(MAC, 1);
    let times: alloc::vec::Vec<u64> = (0..7).map(|_| next(&mut client).0.as_millis() / 1_000).collect();
    assert_eq!(times, [0, 4, 12, 28, 60, 124, 188]);
}

#[test]
fn a_lease_is_taken_renewed_rebound_and_lost() {
    let (mut client, lease) = bound(800);
    assert_eq!(lease.address, "10.0.0.77/24".parse().unwrap());
    assert_eq!(lease.router, Some(SERVER));
    // T1: to the server, from our address.
    let (now, action) = next(&mut client);
    let renewal = sent(action);
    assert_eq!(now, at(400));
    assert_eq!((renewal.client_ip, renewal.destination, renewal.requested), (GIVEN, SERVER, None));
    assert!(matches!(reply(&mut client, now, MessageType::Ack, 800), Some(DhcpAction::Bound(_))));
    // No answer now: again at half of what is left, then to all, then it is over.
    let mut to_all = 0;
    let lost = loop {
        let (now, action) = next(&mut client);
        match action {
            DhcpAction::Send(message) => to_all += u64::from(message.destination.is_broadcast()),
            DhcpAction::Lost(lease) => break (now, lease),
            DhcpAction::Bound(_) => panic!("bound to nobody"),
        }
    };
    assert_eq!((lost.0, lost.1.address), (at(400 + 800), lease.address));
    assert!(to_all >= 1);
    assert_eq!(sent(next(&mut client).1).kind, MessageType::Discover);
}

#[test]
fn a_lease_is_confirmed_when_the_link_is_back() {
    let (mut client, lease) = bound(800);
    for again in [10, 500] {
        client.confirm(at(again));
        // As in INIT-REBOOT (RFC 2131 section 4.3.2), and again, as the first ones may be lost.
        for after in [0, 4, 12] {
            let (now, action) = next(&mut client);
            let request = sent(action);
            assert_eq!((now, request.kind), (at(again + after), MessageType::Request));
            assert_eq!(
                (request.client_ip, request.destination),
                (Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST)
            );
            assert_eq!((request.requested, request.server_id), (Some(GIVEN), None));
        }
        let confirmed = reply(&mut client, at(again + 13), MessageType::Ack, 800);
        let Some(DhcpAction::Bound(new)) = confirmed else { panic!("{confirmed:?}") };
        assert_eq!((new.address, client.poll_timeout()), (lease.address, Some(at(again + 13 + 400))));
    }
    // It is another network, whose server says so.
    client.confirm(at(600));
    let (now, _) = next(&mut client);
    let refused = reply(&mut client, now, MessageType::Nak, 0);
    assert!(matches!(refused, Some(DhcpAction::Lost(_))), "{refused:?}");
    let (_, action) = next(&mut client);
    let discover = sent(action);
    assert_eq!((discover.kind, discover.requested), (MessageType::Discover, None));
}

#[test]
fn a_lease_that_nobody_confirms_is_kept_while_another_is_looked_for() {
    let (mut client, lease) = bound(100);
    client.confirm(at(10));
    let expected = [
        (10, MessageType::Request),
        (14, MessageType::Request),
        (22, MessageType::Request),
        (38, MessageType::Request),
        (70, MessageType::Discover),
        (74, MessageType::Discover),
        (82, MessageType::Discover),
        (98, MessageType::Discover),
    ];
    for (seconds, kind) in expected {
        let (now, action) = next(&mut client);
        let message = sent(action);
        assert_eq!((now, message.kind, message.requested), (at(seconds), kind, Some(GIVEN)));
    }
    assert_eq!(next(&mut client), (at(100), DhcpAction::Lost(lease)));
    let (now, action) = next(&mut client);
    let message = sent(action);
    assert_eq!((now, message.kind, message.requested), (at(130), MessageType::Discover, None));

    // It ends before anybody was asked often enough.
    let (mut client, lease) = bound(100);
    client.confirm(at(95));
    assert_eq!([next(&mut client).0, next(&mut client).0], [at(95), at(99)]);
    assert_eq!(next(&mut client), (at(100), DhcpAction::Lost(lease)));
    assert_eq!(sent(next(&mut client).1).kind, MessageType::Discover);
}

#[test]
fn a_lease_that_waits_for_its_confirmation_is_declined_or_given_back() {
    let (mut client, _) = bound(800);
    client.confirm(at(5));
    let declined = sent(client.decline(at(5)).unwrap());
    assert_eq!((declined.kind, declined.requested), (MessageType::Decline, Some(GIVEN)));
    assert_eq!((client.decline(at(5)), next(&mut client).0), (None, at(15)));

    let (mut client, _) = bound(800);
    client.confirm(at(5));
    let released = sent(client.release(at(5)).unwrap());
    assert_eq!((released.client_ip, released.destination), (GIVEN, SERVER));
    assert_eq!((client.release(at(6)), client.poll_timeout()), (None, None));
}

#[test]
fn refusals_start_over() {
    let (mut client, lease) = bound(800);
    let (now, _) = next(&mut client);
    assert_eq!(reply(&mut client, now, MessageType::Nak, 0), Some(DhcpAction::Lost(lease)));
    assert_eq!(sent(next(&mut client).1).kind, MessageType::Discover);

    let (mut client, _) = bound(800);
    let declined = sent(client.decline(at(5)).unwrap());
    assert_eq!((declined.kind, declined.requested), (MessageType::Decline, Some(GIVEN)));
    assert_eq!(next(&mut client).0, at(15));
}

#[test]
fn requests_without_an_answer_end_in_discover() {
    let mut client = DhcpClient::new(MAC, 1);
    let (now, _) = next(&mut client);
    reply(&mut client, now, MessageType::Offer, 60);
    let kinds: alloc::vec::Vec<MessageType> = (0..5).map(|_| sent(next(&mut client).1).kind).collect();
    assert_eq!(kinds[..4], [MessageType::Request; 4]);
    assert_eq!(kinds[4], MessageType::Discover);
}

#[test]
fn a_lease_for_ever_is_never_renewed() {
    let (client, _) = bound(u32::MAX);
    assert_eq!(client.poll_timeout(), None);
}

#[test]
fn messages_for_others_change_nothing() {
    let mut client = DhcpClient::new(MAC, 1);
    let (now, _) = next(&mut client);
    let check = |client: &mut DhcpClient, change: &dyn Fn(&mut Builder<'_>)| {
        let options = [DhcpOption::MessageType(MessageType::Offer), DhcpOption::ServerIdentifier(SERVER)];
        let mut message = Builder {
            operation: Operation::Reply,
            your_ip: GIVEN,
            ..Builder::request(client.transaction_id, MAC, &options)
        };
        change(&mut message);
        let mut bytes = [0; 600];
        let len = message.emit(&mut bytes).unwrap();
        client.handle_message(now, &Message::parse(&bytes[..len]).unwrap())
    };
    assert_eq!(check(&mut client, &|m| m.transaction_id ^= 1), Err(NotForUs));
    assert_eq!(check(&mut client, &|m| m.client_mac = MacAddr([2; 6])), Err(NotForUs));
    assert_eq!(check(&mut client, &|m| m.operation = Operation::Request), Err(NotForUs));
    assert_eq!(check(&mut client, &|m| m.your_ip = Ipv4Addr::LOCALHOST), Err(NotForUs));
    assert_eq!(check(&mut client, &|_| ()), Ok(None));
}

/// RFC 1122 section 3.2.1.3.
#[test]
fn an_address_that_no_host_may_have_is_not_taken() {
    let say = |client: &mut DhcpClient, now, kind, ip: [u8; 4], mask: [u8; 4]| {
        let options = [
            DhcpOption::MessageType(kind),
            DhcpOption::ServerIdentifier(SERVER),
            DhcpOption::SubnetMask(mask.into()),
        ];
        let message = Builder {
            operation: Operation::Reply,
            your_ip: ip.into(),
            ..Builder::request(client.transaction_id, MAC, &options)
        };
        let mut bytes = [0; 600];
        let len = message.emit(&mut bytes).unwrap();
        client.handle_message(now, &Message::parse(&bytes[..len]).unwrap())
    };
    let (given, mask) = (GIVEN.octets(), [255, 255, 255, 0]);
    let mut client = DhcpClient::new(MAC, 1);
    let (now, _) = next(&mut client);
    for (ip, mask) in
        [([10, 0, 0, 255], mask), ([10, 0, 0, 0], mask), (given, [0; 4]), ([192, 168, 0, 0], mask)]
    {
        assert_eq!(say(&mut client, now, MessageType::Offer, ip, mask), Err(NotForUs), "{ip:?} {mask:?}");
    }
    assert_eq!(say(&mut client, now, MessageType::Offer, given, mask), Ok(None));
    let (now, _) = next(&mut client);
    // The mask that counts is that of the lease.
    assert_eq!(say(&mut client, now, MessageType::Ack, given, [0; 4]), Err(NotForUs));
    let taken = say(&mut client, now, MessageType::Ack, given, mask);
    assert!(matches!(taken, Ok(Some(DhcpAction::Bound(_)))), "{taken:?}");
}

proptest! {
    /// Whatever a server says about times, they are in order and the client goes on.
    #[test]
    fn lease_times_are_in_order(lease: u32, t1: Option<u32>, t2: Option<u32>) {
        let mut client = DhcpClient::new(MAC, 1);
        let (now, _) = next(&mut client);
        reply(&mut client, now, MessageType::Offer, lease);
        let (now, _) = next(&mut client);
        let mut options = alloc::vec![
            DhcpOption::MessageType(MessageType::Ack),
            DhcpOption::LeaseTime(lease),
        ];
        options.extend(t1.map(DhcpOption::RenewalTime));
        options.extend(t2.map(DhcpOption::RebindingTime));
        let message = Builder {
            operation: Operation::Reply,
            your_ip: GIVEN,
            ..Builder::request(client.transaction_id, MAC, &options)
        };
        let mut bytes = [0; 600];
        let len = message.emit(&mut bytes).unwrap();
        let action = client.handle_message(now, &Message::parse(&bytes[..len]).unwrap());
        let Ok(Some(DhcpAction::Bound(lease))) = action else { panic!("{action:?}") };
        prop_assert!(now < lease.renew_at);
        prop_assert!(lease.renew_at <= lease.rebind_at && lease.rebind_at <= lease.expires_at);
    }
}
