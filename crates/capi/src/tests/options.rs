//! Socket options and measurements.

use super::*;
use core::ffi::{CStr, c_char};
use libc::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, SOL_SOCKET};

#[test]
fn options_come_back_as_they_were_set() {
    let world = World::new();
    let stream = world.a.socket(libc::SOCK_STREAM);
    let datagram = world.a.socket(libc::SOCK_DGRAM);
    let check = |fd, level, name, value: c_int, code, then: Result<c_int, c_int>| {
        assert_eq!(world.a.set(fd, level, name, &value), code, "{level} {name} {value}");
        assert_eq!(world.a.get_int(fd, level, name), then, "{level} {name} {value}");
    };
    let bad = (-libc::EINVAL, -libc::ENOPROTOOPT);
    check(stream, SOL_SOCKET, libc::SO_REUSEADDR, 7, 0, Ok(1));
    check(stream, SOL_SOCKET, libc::SO_KEEPALIVE, 1, 0, Ok(1));
    check(datagram, SOL_SOCKET, libc::SO_BROADCAST, 1, 0, Ok(1));
    check(datagram, SOL_SOCKET, libc::SO_BROADCAST, 0, 0, Ok(1));
    check(stream, SOL_SOCKET, libc::SO_SNDBUF, 50_000, 0, Ok(50_000));
    check(stream, SOL_SOCKET, libc::SO_RCVBUF, 0, 0, Ok(2_048));
    check(stream, SOL_SOCKET, libc::SO_RCVBUF, -1, bad.0, Ok(2_048));
    check(datagram, SOL_SOCKET, libc::SO_RCVBUF, 10_000, 0, Ok(10_000));
    check(stream, SOL_SOCKET, libc::SO_TYPE, 1, bad.1, Ok(libc::SOCK_STREAM));
    check(datagram, SOL_SOCKET, libc::SO_TYPE, 1, bad.1, Ok(libc::SOCK_DGRAM));
    check(stream, SOL_SOCKET, libc::SO_DOMAIN, 1, bad.1, Ok(libc::AF_INET));
    check(stream, SOL_SOCKET, libc::SO_ACCEPTCONN, 1, bad.1, Ok(0));
    check(stream, SOL_SOCKET, 9_999, 1, bad.1, Err(bad.1));
    check(stream, IPPROTO_TCP, libc::TCP_NODELAY, 1, 0, Ok(1));
    check(stream, IPPROTO_TCP, libc::TCP_QUICKACK, 1, 0, Ok(1));
    check(stream, IPPROTO_TCP, libc::TCP_MAXSEG, 1_000, 0, Ok(1_000));
    check(stream, IPPROTO_TCP, libc::TCP_MAXSEG, 70_000, bad.0, Ok(1_000));
    check(stream, IPPROTO_TCP, libc::TCP_KEEPIDLE, 10, 0, Ok(10));
    check(stream, IPPROTO_TCP, libc::TCP_KEEPINTVL, 0, bad.0, Ok(75));
    check(stream, IPPROTO_TCP, libc::TCP_KEEPCNT, 3, 0, Ok(3));
    check(stream, IPPROTO_TCP, libc::TCP_USER_TIMEOUT, 5_000, 0, Ok(5_000));
    check(stream, IPPROTO_TCP, libc::TCP_USER_TIMEOUT, 0, 0, Ok(0));
    check(stream, IPPROTO_TCP, libc::TCP_USER_TIMEOUT, -1, bad.0, Ok(0));
    check(datagram, IPPROTO_TCP, libc::TCP_NODELAY, 1, bad.1, Err(bad.1));
    check(stream, IPPROTO_IP, libc::IP_TOS, 0x2b, 0, Ok(0x28));
    check(stream, IPPROTO_IP, libc::IP_TTL, 3, bad.1, Err(bad.1));
    check(stream, IPPROTO_IPV6, libc::IPV6_V6ONLY, 1, 0, Ok(1));
    check(99, SOL_SOCKET, libc::SO_TYPE, 1, -libc::EBADF, Err(-libc::EBADF));
    assert_eq!(world.a.set(stream, IPPROTO_TCP, libc::TCP_NODELAY, &0u8), -libc::EINVAL, "too short");
}

#[test]
fn the_congestion_control_has_a_name() {
    let world = World::new();
    let fd = world.a.socket(libc::SOCK_STREAM);
    let name = |text: &[u8]| {
        world.a.set(fd, IPPROTO_TCP, libc::TCP_CONGESTION, &{
            let mut name = [0u8; 16];
            name[..text.len()].copy_from_slice(text);
            name
        })
    };
    assert_eq!((name(b"cubic"), name(b"reno"), name(b"warp")), (0, 0, -libc::ENOENT));
    let found = world.a.get(fd, IPPROTO_TCP, libc::TCP_CONGESTION, [9u8; 16]).unwrap();
    assert_eq!(&found[..5], b"reno\0");
    assert_eq!(&world.a.get(fd, IPPROTO_TCP, libc::TCP_CONGESTION, [9u8; 2]).unwrap(), b"re", "cut");
}

#[test]
fn measurements_of_a_connection() {
    let mut world = World::new();
    let idle = world.a.socket(libc::SOCK_STREAM);
    let info = |world: &World, fd| world.a.get(fd, IPPROTO_TCP, libc::TCP_INFO, lr_tcp_info::default());
    assert_eq!(info(&world, idle).unwrap().tcpi_state, 7, "CLOSED");
    let (client, server) = world.connected(80);
    world.a.write(client, &[7; 10_000]);
    world.pass(300);
    let sent = info(&world, client).unwrap();
    assert_eq!((sent.tcpi_state, sent.tcpi_bytes_acked, sent.tcpi_unacked), (1, 10_000, 0));
    assert_eq!((sent.tcpi_snd_mss, sent.tcpi_pmtu, sent.tcpi_total_retrans), (1_448, 1_500, 0));
    assert_eq!(sent.tcpi_bytes_sent, 10_000);
    assert!(sent.tcpi_rtt > 0 && sent.tcpi_rto >= 200_000 && sent.tcpi_snd_cwnd >= 10);
    let got = world.b.get(server, IPPROTO_TCP, libc::TCP_INFO, lr_tcp_info::default()).unwrap();
    assert_eq!(got.tcpi_bytes_received, 10_000);
    let first = world.a.get(client, IPPROTO_TCP, libc::TCP_INFO, 0u8).unwrap();
    assert_eq!(first, 1, "cut to the room that there is");
}

#[test]
fn a_listener_offers_the_segment_size_that_was_set_last() {
    let mut world = World::new();
    let listener = world.listener(80);
    assert_eq!(world.b.set(listener, IPPROTO_TCP, libc::TCP_MAXSEG, &1_100), 0);
    let client = world.a.socket(libc::SOCK_STREAM);
    world.a.connect(client, "10.0.0.2", 80);
    world.until(|world| world.a.poll(client, libc::POLLOUT) != 0);
    let info = world.a.get(client, IPPROTO_TCP, libc::TCP_INFO, lr_tcp_info::default()).unwrap();
    assert_eq!(info.tcpi_snd_mss, 1_100 - 12, "less the timestamps");
}

#[test]
fn measurements_have_what_programs_ask_for() {
    let mut world = World::new();
    let (client, server) = world.connected(80);
    world.a.write(client, &[7; 10_000]);
    world.pass(300);
    let sent = world.a.get(client, IPPROTO_TCP, libc::TCP_INFO, lr_tcp_info::default()).unwrap();
    assert_eq!((sent.tcpi_ca_state, sent.tcpi_sacked, sent.tcpi_lost, sent.tcpi_retrans), (0, 0, 0, 0));
    assert_eq!((sent.tcpi_advmss, sent.tcpi_options & 7, sent.tcpi_reordering), (1_448, 7, 3));
    assert!(sent.tcpi_busy_time > 0 && sent.tcpi_busy_time < 300_000, "until the last acknowledgement");
    assert!(
        (1..400).contains(&sent.tcpi_last_ack_recv) && sent.tcpi_last_data_recv >= sent.tcpi_last_ack_recv
    );
    let got = world.b.get(server, IPPROTO_TCP, libc::TCP_INFO, lr_tcp_info::default()).unwrap();
    assert!((1_400..=1_448).contains(&got.tcpi_rcv_mss), "{}", got.tcpi_rcv_mss);
    assert!(got.tcpi_last_data_recv < 400 && got.tcpi_segs_in >= 7);
}

#[test]
fn flags_and_requests_that_make_sense() {
    let world = World::new();
    let fd = world.a.socket(libc::SOCK_STREAM);
    // SAFETY: a live stack; the pointer is a live number.
    unsafe {
        let stack = world.a.stack;
        assert_eq!(lr_fcntl(stack, fd, libc::F_GETFL, 0), libc::O_RDWR | libc::O_NONBLOCK);
        assert_eq!(lr_fcntl(stack, fd, libc::F_SETFL, libc::O_NONBLOCK), 0);
        assert_eq!(lr_fcntl(stack, fd, libc::F_SETFL, 0), -libc::EOPNOTSUPP);
        assert_eq!(lr_fcntl(stack, fd, libc::F_DUPFD, 0), -libc::EINVAL);
        let mut on: c_int = 1;
        assert_eq!(lr_ioctl(stack, fd, libc::FIONBIO as _, (&raw mut on).cast()), 0);
        assert_eq!(lr_ioctl(stack, fd, libc::TIOCGWINSZ as _, (&raw mut on).cast()), -libc::ENOTTY);
        assert_eq!(lr_ioctl(stack, fd, libc::FIONREAD as _, null_mut()), -libc::EFAULT);
    }
}

#[test]
fn a_stack_tells_its_addresses() {
    let world = World::new();
    let (mut address, mut len, mut prefix) = (inet("0.0.0.0", 0), INET, 0);
    let mut found = Vec::new();
    for index in 0..9 {
        // SAFETY: live locals.
        let code = unsafe {
            lr_stack_address(world.a.stack, index, (&raw mut address).cast(), &mut len, &mut prefix)
        };
        match code {
            0 if address.sin_family == libc::AF_INET as _ => found.push(text(&address)),
            0 => {}
            code => {
                assert_eq!(code, -libc::ENOENT);
                break;
            }
        }
        len = INET;
    }
    assert_eq!(found, ["10.0.0.1:0"]);
}

#[test]
fn addresses_and_gateways_change_while_the_stack_runs() {
    let mut world = World::new();
    let stack = world.a.stack;
    // SAFETY: a live stack, and texts that end with a zero byte or are null.
    let add = |text: *const c_char| unsafe { lr_stack_add_address(stack, text) };
    // SAFETY: as above.
    let remove = |text: &CStr| unsafe { lr_stack_remove_address(stack, text.as_ptr()) };
    // SAFETY: as above.
    let gateway = |text: &CStr, is_added| unsafe { lr_stack_gateway(stack, text.as_ptr(), is_added) };
    assert_eq!(add(null()), -libc::EFAULT);
    assert_eq!(add(c"10.0.1.1".as_ptr()), -libc::EINVAL);
    assert_eq!(add(c"10.0.1.255/24".as_ptr()), -libc::EINVAL);
    assert_eq!(gateway(c"10.0.1.9", 1), -libc::EHOSTUNREACH);
    assert_eq!(add(c"10.0.1.1/24".as_ptr()), 0);
    assert_eq!((gateway(c"10.0.1.9", 1), gateway(c"10.0.1.9", 0)), (0, 0));
    let (client, _) = world.connected(80);
    assert_eq!(remove(c"10.0.0.7"), -libc::EADDRNOTAVAIL);
    assert_eq!(remove(c"10.0.0.1"), 0);
    assert_eq!(world.a.read(client, 9), Err(-(libc::EHOSTUNREACH as ssize_t)));
}

/// What `lr_stack_new` answers.
fn made(config: &lr_stack_config, device: &lr_device) -> c_int {
    let mut stack = null_mut();
    // SAFETY: live locals; no callback is called, as a stack that was made is freed at once, and null may be freed.
    unsafe {
        let code = lr_stack_new(config, device, 0, &mut stack);
        assert_eq!(lr_stack_free(stack), 0);
        code
    }
}

fn a_device() -> lr_device {
    lr_device {
        user: null_mut(),
        transmit: Some(transmit),
        receive: Some(receive),
        completed: None,
        mac: [2, 0, 0, 0, 0, 1],
        mtu: 1500,
        capabilities: 0,
    }
}

/// What is said of these, which is nothing where they make a stack.
fn flaw(config: &lr_stack_config, device: &lr_device) -> String {
    // SAFETY: both are valid, and what is said ends with a zero byte.
    let said = unsafe {
        let said = lr_stack_flaw(config, device);
        if said.is_null() { "" } else { CStr::from_ptr(said).to_str().unwrap() }
    };
    assert_eq!(made(config, device) == 0, said.is_empty(), "{said}");
    said.to_owned()
}

#[test]
fn what_is_wrong_is_named() {
    let (config, device) = (lr_stack_config::defaults(), a_device());
    assert_eq!(flaw(&config, &device), "");
    let check = |change: &dyn Fn(&mut lr_stack_config, &mut lr_device), named: &str| {
        let (mut config, mut device) = (config, device);
        change(&mut config, &mut device);
        let said = flaw(&config, &device);
        assert!(said.starts_with(named) && said.contains(": "), "{named}: {said}");
    };
    check(&|config, _| config.size += 8, "config.size");
    check(&|config, _| config.max_sockets = 0, "config.max_sockets");
    check(&|config, _| config.receive_buffers = 0, "config.receive_buffers");
    check(&|config, _| config.memory = 1, "config.memory");
    check(&|config, _| config.buffer_max = 1, "config.buffer_max");
    check(&|config, _| config.addresses = c"10.0.0.1".as_ptr(), "config.addresses");
    check(&|config, _| config.addresses = c"10.0.0.1/24,127.0.0.1/8".as_ptr(), "config.addresses");
    check(&|config, _| config.gateways = c"gw".as_ptr(), "config.gateways");
    let six = c"fd00::1/64".as_ptr();
    check(&|config, _| (config.ipv6, config.addresses) = (0, six), "config.ipv6");
    check(&|config, _| (config.ipv6, config.slaac) = (0, 1), "config.ipv6");
    check(&|config, device| (config.addresses, device.mtu) = (six, 1_279), "device.mtu");
    check(&|config, device| (config.dhcp, device.capabilities) = (1, LR_DEVICE_IP), "config.dhcp");
    check(&|config, _| config.gateways = c"10.0.0.1".as_ptr(), "config.gateways");
    check(&|_, device| device.mtu = 575, "device.mtu");
    check(&|_, device| device.mac = [0; 6], "device.mac");
    check(&|_, device| device.capabilities = 32, "device.capabilities");
    check(&|_, device| device.transmit = None, "device.transmit");
    check(&|_, device| device.receive = None, "device.receive");
    // SAFETY: null is allowed.
    assert!(unsafe {
        !lr_stack_flaw(null(), &device).is_null() && !lr_stack_flaw(&config, null()).is_null()
    });
}

#[test]
fn bad_settings_are_refused() {
    let (mut config, mut device) = (lr_stack_config::defaults(), a_device());
    let bad = c"10.0.0.1";
    config.addresses = bad.as_ptr();
    assert_eq!(made(&config, &device), -libc::EINVAL);
    config.addresses = null();
    config.size -= 1;
    assert_eq!(made(&config, &device), -libc::EINVAL);
    config.size += 1;
    for memory in [0, (16 << 10) - 1, (1 << 40) + 1, usize::MAX] {
        let config = lr_stack_config { memory, ..config };
        assert_eq!(made(&config, &device), -libc::EINVAL, "{memory} bytes");
    }
    for number in [0, (1 << 20) + 1, u32::MAX] {
        for config in [
            lr_stack_config { max_sockets: number, ..config },
            lr_stack_config { receive_buffers: number, ..config },
        ] {
            assert_eq!(made(&config, &device), -libc::EINVAL, "{number}");
        }
    }
    for buffer_max in [0, 1, 2_047, (1 << 30) + 1, usize::MAX] {
        let config = lr_stack_config { buffer_max, ..config };
        assert_eq!(made(&config, &device), -libc::EINVAL, "{buffer_max} bytes");
    }
    config.addresses = c"10.0.0.1/24,fd00::1/64".as_ptr();
    let gateways = [
        c"0.0.0.0",
        c"255.255.255.255",
        c"224.0.0.1",
        c"127.0.0.1",
        c"::",
        c"ff02::1",
        c"10.0.0.1",
        c"10.0.0.0",
        c"10.0.0.255",
        c"10.0.1.2",
        c"fd00::1",
        c"fd01::2",
        c"10.0.0.2,10.0.1.2",
    ];
    for gateway in gateways {
        let config = lr_stack_config { gateways: gateway.as_ptr(), ..config };
        assert_eq!(made(&config, &device), -libc::EINVAL, "{gateway:?}");
    }
    device.capabilities = 32;
    assert_eq!(made(&config, &device), -libc::EINVAL, "a device that can do what is not known");
    device.capabilities = 0;
    config.addresses = c"10.0.0.1/24,224.0.0.1/24".as_ptr();
    assert_eq!(made(&config, &device), -libc::EINVAL);
    config.addresses = null();
    device.mtu = 100;
    assert_eq!(made(&config, &device), -libc::EINVAL);
    device.mtu = 1500;
    device.mac = [1, 0, 0, 0, 0, 1];
    assert_eq!(made(&config, &device), -libc::EINVAL);
    device.receive = None;
    assert_eq!(made(&config, &device), -libc::EFAULT);
}
