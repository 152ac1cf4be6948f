//! Downloads in TYPE A that begin far behind, or whose file becomes shorter.

use super::*;
use crate::testing::net::Released;
use linerate_transport::Files as _;

#[test]
fn a_memory_file_is_resumed_at_any_byte_of_its_network_form() {
    let mut ftp = Ftp::anonymous();
    ftp.expect("TYPE A", "200");
    let whole = ftp.fetch("RETR /memory/200K");
    assert!(whole.len() > 200 << 10);
    let len = whole.len();
    for at in [1, 11, 65_535, 65_536, 65_797, 65_798, 65_799, 131_596, 150_000, len - 1, len, len + 1] {
        ftp.expect(&format!("REST {at}"), "350");
        assert_eq!(ftp.fetch("RETR /memory/200K"), whole.get(at..).unwrap_or(&[]), "from {at} on");
    }
    ftp.expect("REST 409601", "350");
    ftp.passive();
    ftp.expect("RETR /memory/200K", "554");

    // To convert all that lies before would take minutes, and the one thread with it.
    ftp.expect("REST 1099511627776", "350");
    let data = ftp.passive();
    ftp.world.net.appetite = 100_000;
    ftp.expect("RETR /memory/1T", "150");
    let begin = ((1u64 << 40) % 65_798) as usize;
    assert_eq!(ftp.world.received(data)[..20_000], whole[begin..begin + 20_000]);
    ftp.expect("ABOR", "426 226");
}

#[test]
fn a_file_that_becomes_shorter_ends_the_download() {
    let mut ftp = Ftp::anna();
    ftp.expect("TYPE A", "200");
    let data = ftp.passive();
    ftp.world.files.hold = true;
    ftp.expect("RETR b.bin", "");
    ftp.world.files.hold = false;
    let opened = ftp.world.files.poll_done().unwrap();
    ftp.world.with(|ctx| ftp.server.handle_file(ctx, opened));
    ftp.world.files.nodes.get_mut("/b.bin").unwrap().data.truncate(100);
    ftp.expect_replies("150 451");
    assert_eq!(ftp.world.net.released(data), Some(Released::Aborted));
    assert_eq!(ftp.world.files.open_count(), 0);
}
