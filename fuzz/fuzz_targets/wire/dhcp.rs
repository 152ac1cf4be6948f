//! DHCP for IPv4.

use linerate_wire::dhcpv4::{Builder, HEADER_LEN, Message};

/// Reads a message and writes it back.
pub fn message(bytes: &[u8]) {
    let Ok(message) = Message::parse(bytes) else { return };
    let options: Vec<_> = message.options().collect();
    let builder = Builder {
        operation: message.operation(),
        transaction_id: message.transaction_id(),
        elapsed_s: message.elapsed_s(),
        broadcast: message.broadcast(),
        client_ip: message.client_ip(),
        your_ip: message.your_ip(),
        boot_server_ip: message.boot_server_ip(),
        relay_ip: message.relay_ip(),
        client_mac: message.client_mac(),
        options: &options,
    };
    let mut out = vec![0; builder.emitted_len()];
    assert_eq!(builder.emit(&mut out), Ok(out.len()));
    // Overload is an option that would claim the fields which we write as zeros, which hold no options.
    let again = Message::parse(&out).expect("what was written");
    assert!(again.options().eq(options.iter().copied()));
    assert_eq!(
        (again.message_type(), again.server_identifier(), again.requested_ip(), again.prefix_len()),
        (message.message_type(), message.server_identifier(), message.requested_ip(), message.prefix_len())
    );
    assert_eq!(
        (again.lease_time_s(), again.renewal_time_s(), again.rebinding_time_s(), again.host_name()),
        (message.lease_time_s(), message.renewal_time_s(), message.rebinding_time_s(), message.host_name())
    );
    assert!(again.routers().eq(message.routers()) && again.dns_servers().eq(message.dns_servers()));
}

/// Reads a message that is right up to its options: up to 192 bytes are its `sname` and `file`, the rest its options.
pub fn options(bytes: &[u8]) {
    let (names, options) = bytes.split_at(bytes.len().min(192));
    let mut whole = vec![0; HEADER_LEN];
    whole[..4].copy_from_slice(&[2, 1, 6, 0]);
    whole[44..44 + names.len()].copy_from_slice(names);
    whole[236..].copy_from_slice(&[0x63, 0x82, 0x53, 0x63]);
    // Short input would never have options: it begins with them then.
    whole.extend(if options.is_empty() { names } else { options });
    message(&whole);
}
