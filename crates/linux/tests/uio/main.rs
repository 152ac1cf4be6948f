//! The device that is driven by UIO, on an interface made of files.

mod model;

use linerate_linux::poller::{self, PollFd, PollFlags};
use linerate_linux::uio::{UioDevice, UioError, UioOptions, UioQueue};
use linerate_nic::{Chunk, Device as _, MacAddr, QueuePair as _, RxBatch, TxQueue, TxToken};
use linerate_wire::units::Instant;
use model::{Folder, Nic};
use rustix::fd::AsFd as _;
use std::thread;
use std::time::Duration;

const LEN: u64 = 8 << 20;

fn options(folder: &Folder) -> UioOptions {
    UioOptions { root: folder.path().to_owned(), ..UioOptions::new("nic") }
}

/// Opens the interface while the hardware works in another thread.
fn open(nic: Nic, options: &UioOptions) -> (Nic, Result<Vec<UioQueue>, UioError>) {
    working(nic, || UioQueue::open_all(options))
}

/// Calls `act` while the hardware works in another thread.
fn working<R>(mut nic: Nic, act: impl FnOnce() -> R) -> (Nic, R) {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let hardware = thread::spawn(move || {
        while stopped.try_recv().is_err() {
            if !nic.step() {
                thread::sleep(Duration::from_micros(50));
            }
        }
        // What was written last is seen, too.
        nic.step();
        nic
    });
    let result = act();
    stop.send(()).expect("it runs");
    (hardware.join().expect("no panic there"), result)
}

fn device(nic: Nic, options: &UioOptions) -> (Nic, UioDevice) {
    let (nic, queues) = open(nic, options);
    let mut queues = queues.expect("it opens");
    assert_eq!(queues.len(), 1);
    working(nic, || queues.remove(0).into_device().expect("it starts"))
}

fn frame(number: u8, len: usize) -> Vec<u8> {
    (0..len).map(|at| if at < 14 { 2 } else { number.wrapping_add(at as u8) }).collect()
}

fn is_readable(device: &UioDevice, timeout: Duration) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(device.as_fd(), PollFlags::IN)];
    poller::wait(&mut fds, Some(timeout)).expect("it waits") == 1
}

#[test]
fn frames_go_both_ways_and_interrupts_wake() {
    let folder = Folder::new("frames", "nic", LEN);
    let (mut nic, mut device) = device(Nic::new(&folder), &options(&folder));
    assert_eq!((device.mtu(), device.link().is_up), (1_500, true));
    let (mut out, mut batch) = (TxQueue::with_capacity(8), RxBatch::with_limit(8));
    for round in 0..600u64 {
        let now = Instant::from_millis(round + 1);
        let len = 60 + (round as usize * 37) % 1_454;
        let bytes = frame(round as u8, len);
        let packet = out.vacant().expect("room");
        packet.header_mut(14).copy_from_slice(&bytes[..14]);
        packet.push_chunk(Chunk::Shared(bytes[14..].to_vec().into())).expect("room in the list");
        packet.meta.token = TxToken(round + 1);
        out.commit();
        assert_eq!(device.transmit(now, &mut out), Ok(1));
        assert!(!device.arm(now), "nothing yet");
        assert!(!is_readable(&device, Duration::ZERO), "no interrupt yet, round {round}");
        nic.step();
        assert_eq!(nic.left.pop_front(), Some((0, bytes.clone())), "round {round}");
        assert!(is_readable(&device, Duration::from_secs(5)), "a completion");
        assert_eq!(device.receive(now, &mut batch), Ok(0));
        assert_eq!((device.poll_completion(), device.poll_completion()), (Some(TxToken(round + 1)), None));
        assert!(!device.arm(now));
        assert!(nic.arrive(0, bytes.clone()));
        nic.step();
        assert!(is_readable(&device, Duration::from_secs(5)), "a frame");
        assert_eq!(device.receive(now, &mut batch), Ok(1));
        assert!(!is_readable(&device, Duration::ZERO), "it is told of once");
        assert_eq!(batch.pop().expect("it").data.bytes(), bytes);
    }
    let stats = device.stats();
    assert_eq!((stats.rx_frames, stats.tx_frames), (600, 600));
    assert_eq!(device.queue_stats().copied, 600, "payload of ours is not in the DMA buffer");
    assert_eq!(nic.raised, 1_200);
    drop(working(nic, || drop(device)));
}

#[test]
fn what_comes_while_it_goes_to_sleep_is_seen_or_wakes() {
    let folder = Folder::new("sleep", "nic", LEN);
    let (mut nic, mut device) = device(Nic::new(&folder), &options(&folder));
    let mut batch = RxBatch::with_limit(64);
    let (mut received, mut slept) = (0, 0);
    // The hardware gives a frame now and then, from another thread; the loop sleeps whenever it may.
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let hardware = thread::spawn(move || {
        for round in 0..2_000u32 {
            while !nic.arrive(0, frame(round as u8, 100)) {
                nic.step();
            }
            nic.step();
            if round % 3 == 0 {
                thread::sleep(Duration::from_micros(u64::from(round % 7) * 10));
            }
        }
        while stopped.try_recv().is_err() {
            nic.step();
            thread::sleep(Duration::from_micros(20));
        }
        nic
    });
    while received < 2_000 {
        let now = Instant::from_millis(1);
        let count = device.receive(now, &mut batch).expect("it works");
        received += count;
        while batch.pop().is_some() {}
        if count == 0 && !device.arm(now) {
            slept += 1;
            assert!(is_readable(&device, Duration::from_secs(5)), "{received} frames came, and no interrupt");
        }
    }
    assert!(slept > 10, "{slept}");
    // The other side works on while this goes.
    drop(device);
    stop.send(()).expect("it runs");
    drop(hardware.join().expect("no panic there"));
}

#[test]
fn queues_are_devices_of_their_own() {
    let folder = Folder::new("queues", "nic", LEN);
    let wanted = UioOptions { queues: 5, ..options(&folder) };
    let (nic, queues) = open(Nic::new(&folder), &wanted);
    let queues = queues.expect("it opens");
    assert_eq!(queues.len(), model::QUEUES, "as many as the hardware has");
    assert!(queues.iter().all(|queue| queue.mac() == queues[0].mac() && queue.mac().0[0] & 3 == 2));
    let (mut nic, mut devices) = working(nic, || {
        queues.into_iter().map(|queue| queue.into_device().expect("it starts")).collect::<Vec<_>>()
    });
    let now = Instant::from_millis(1);
    for round in 0..700usize {
        let at = round % 2;
        nic.arrive(at, frame(round as u8, 200));
        nic.step();
        let mut batch = RxBatch::with_limit(8);
        for (index, device) in devices.iter_mut().enumerate() {
            assert_eq!(device.receive(now, &mut batch), Ok(usize::from(index == at)), "round {round}");
        }
        let got = batch.pop().expect("it");
        assert_eq!((got.meta.queue, got.data.bytes()), (at as u16, &frame(round as u8, 200)[..]));
    }
    drop(working(nic, || drop(devices)));
}

#[test]
fn an_address_of_the_interface_is_kept_and_one_that_is_asked_for_wins() {
    use linerate_nic::mcdma::nic_regs::register;
    use std::os::unix::fs::FileExt as _;
    let folder = Folder::new("address", "nic", LEN);
    let nic = Nic::new(&folder);
    let path = folder.path().join("sys/class/uio/uio1/device/resource0");
    let registers = std::fs::File::options().write(true).open(path).expect("it is there");
    registers.write_all_at(&[0, 0x0A, 0x35, 1, 2, 3], u64::from(register::ADDRESS_LOW)).expect("room");
    let (nic, queues) = open(nic, &options(&folder));
    assert_eq!(queues.expect("it opens")[0].mac(), MacAddr([0, 0x0A, 0x35, 1, 2, 3]));
    // The buffer is ours to the end of the process.
    let (_, queues) = open(nic, &options(&folder));
    assert!(matches!(queues, Err(UioError::InUse(_))));
    let folder = Folder::new("asked", "nic", LEN);
    let mac = Some(MacAddr([2, 0, 0, 0, 0, 9]));
    let (_, queues) = open(Nic::new(&folder), &UioOptions { mac, ..options(&folder) });
    assert_eq!(queues.expect("it opens")[0].mac(), MacAddr([2, 0, 0, 0, 0, 9]));
}

/// What is missing is told by its name, with what to do.
#[test]
fn every_missing_piece_has_its_error() {
    let check = |name: &str, change: &dyn Fn(&Folder), expected: &[&str]| {
        let folder = Folder::new(&format!("missing-{name}"), "nic", LEN);
        let nic = Nic::new(&folder);
        change(&folder);
        let (_, result) = open(nic, &options(&folder));
        let error = result.map(|queues| queues.len()).expect_err(name).to_string();
        for part in expected {
            assert!(error.contains(part), "{name}: {error}");
        }
    };
    check(
        "device",
        &|folder| folder.write("sys/class/uio/uio1/name", "other"),
        &["there is no UIO device nic", "there are something-else, other"],
    );
    check("class", &|folder| folder.remove("sys/class/uio"), &["has none at all", "kernel's UIO driver"]);
    check("twice", &|folder| folder.write("sys/class/uio/uio0/name", "nic"), &["several UIO devices"]);
    check("registers", &|folder| folder.remove("sys/class/uio/uio1/device"), &["looking at", "resource0"]);
    check(
        "map",
        &|folder| folder.write("sys/class/uio/uio1/maps/map0/size", "0x800"),
        &["maps 2048 bytes of registers"],
    );
    check("node", &|folder| folder.remove("dev/uio1"), &["opening", "dev/uio1", "No such file"]);
    check(
        "buffer",
        &|folder| folder.remove("sys/class/u-dma-buf"),
        &["no DMA buffer", "insmod u-dma-buf.ko"],
    );
    check("buffer-node", &|folder| folder.remove("dev/udmabuf0"), &["opening", "dev/udmabuf0"]);
    let small = |folder: &Folder| folder.write("sys/class/u-dma-buf/udmabuf0/size", "1048576");
    check("small", &small, &["udmabuf0 has 1048576 bytes", "1 queues need"]);
    let cached = |folder: &Folder| folder.write("sys/class/u-dma-buf/udmabuf0/sync_mode", "0");
    check("cached", &cached, &["is cached (sync_mode 0)", "echo 1 >"]);
    let address = |folder: &Folder| folder.write("sys/class/u-dma-buf/udmabuf0/phys_addr", "here");
    check("number", &address, &["phys_addr holds \"here\": expected a number"]);
    let locked = |folder: &Folder| {
        let file = std::fs::File::open(folder.path().join("dev/udmabuf0")).expect("it is there");
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).expect("it locks");
        std::mem::forget(file);
    };
    check("locked", &locked, &["dev/udmabuf0 is in use by another process"]);
    let deaf = |folder: &Folder| {
        // Whoever answers is not there: the reset never ends.
        folder.remove("sys/class/uio/uio1/device/resource0");
        folder.write("sys/class/uio/uio1/device/resource0", &"\0".repeat(0x2000));
    };
    check("dead", &deaf, &["Transmit channels do not come out of their reset"]);
}

/// A cached buffer is taken where the device sees the cache.
#[test]
fn a_coherent_buffer_may_be_cached() {
    let folder = Folder::new("coherent", "nic", LEN);
    folder.write("sys/class/u-dma-buf/udmabuf0/sync_mode", "0");
    folder.write("sys/class/u-dma-buf/udmabuf0/dma_coherent", "1");
    let (_, queues) = open(Nic::new(&folder), &options(&folder));
    assert_eq!(queues.expect("it opens").len(), 1);
}
