//! The blocks on the way in.

use crate::bench::Bench;
use crate::frames::{ACK, PSH, tcp};
use crate::record::Picture;
use linerate_nic::offload::steer;
use linerate_rtl_sim::{Dut, Pause, RxUser, Sink, UserAt};

/// `tuser` of a stream, as it is now.
fn user(bench: &Bench, prefix: &str) -> Result<impl Fn(&Dut) -> RxUser + Copy + 'static, String> {
    let port = bench.dut.port(&format!("{prefix}_tuser"))?;
    Ok(move |dut: &Dut| RxUser::from_words(dut.get_wide(port)))
}

/// A frame whose checksum is right and one where it is not, one behind the other.
pub fn csum_rx() -> Result<Picture, String> {
    let mut bench = Bench::open("csum_rx", UserAt::Last)?;
    bench.set("cfg_enable", 1)?;
    let (good, mut bad) = (tcp(80, 1, ACK, 6), tcp(80, 7, ACK, 6));
    bad[59] ^= 1;
    bench.source.push(good, RxUser::default().to_words());
    bench.source.push(bad, RxUser::default().to_words());
    bench.scope.stream(&bench.dut, "s_axis", &["a", "b"], 0)?;
    bench.scope.stream(&bench.dut, "m_axis", &["a", "b"], 0)?;
    let told = user(&bench, "m_axis")?;
    let scope = &mut bench.scope;
    scope.with_last(&bench.dut, "m_axis", "tuser.csum_status", move |dut| {
        format!("{:03b}", told(dut).csum_status)
    })?;
    scope.with_last(&bench.dut, "m_axis", "tuser.csum_raw", move |dut| {
        format!("{:04x}", told(dut).csum_raw)
    })?;
    scope.bit(&bench.dut, "event_layer4_bad", 0)?;
    bench.record_frames(2)?;
    let mut picture = bench.picture(
        "csum_rx: two frames of 60 bytes, back to back",
        &[
            "All beats but the last pass in two clocks; the last waits for its status. Frame b, in which a bit is wrong (110: TCP bad),",
            "has waited behind it long enough and leaves without a gap.",
        ],
    );
    picture.measure(("s_axis_tvalid", 0, ""), ("m_axis_tvalid", ""), "for the first beat")?;
    let last = picture.measure(
        ("s_axis_tlast", 0, ""),
        ("m_axis_tlast", ""),
        "for the last beat, with the status",
    )?;
    picture.measure(("m_axis_tlast", last, ""), ("m_axis_tdata", "b7"), "later the next frame is through")?;
    Ok(picture)
}

/// A frame whose queue the port map knows, and one that is spread by its hash.
pub fn rss() -> Result<Picture, String> {
    let mut bench = Bench::open("rss", UserAt::Last)?;
    let key = bench.dut.port("cfg_key")?;
    let words: [u32; 10] = std::array::from_fn(|at| 0x6d5a_56da_u32.rotate_left(3 * at as u32));
    bench.dut.set_wide(key, &words);
    bench.set("cfg_hash_tcp", 1)?;
    bench.set("cfg_port_enable", 1)?;
    let table: [u8; steer::INDIRECTION_LEN] = std::array::from_fn(|at| at as u8 % 4);
    let mut writes: Vec<steer::Write> = steer::writes_of_indirection(&table).collect();
    writes.extend(steer::write_of_port(0, 80, 9));
    bench.set("cfg_write", 1)?;
    for (address, data) in writes {
        bench.set("cfg_address", u64::from(address))?;
        bench.set("cfg_data", u64::from(data))?;
        bench.unseen(1)?;
    }
    bench.set("cfg_write", 0)?;
    for port in [80, 5_201] {
        bench.source.push(tcp(port, 1, ACK, 6), RxUser::default().to_words());
    }
    bench.scope.stream(&bench.dut, "s_axis", &["a", "b"], 0)?;
    bench.scope.stream(&bench.dut, "m_axis", &["a", "b"], 0)?;
    let told = user(&bench, "m_axis")?;
    let scope = &mut bench.scope;
    scope.with_last(&bench.dut, "m_axis", "tuser.hash_type", move |dut| told(dut).hash_type.to_string())?;
    scope
        .with_last(&bench.dut, "m_axis", "tuser.hash[6:0]", move |dut| (told(dut).hash & 127).to_string())?;
    scope.with_last(&bench.dut, "m_axis", "tuser.channel", move |dut| told(dut).channel.to_string())?;
    scope.bit(&bench.dut, "event_port", 0)?;
    bench.record_frames(2)?;
    let mut picture = bench.picture(
        "rss: two frames of 60 bytes, back to back",
        &[
            "Frame a goes to port 80, for which the port map says queue 9. Frame b goes where entry hash[6:0] of the table says;",
            "the table holds its index modulo 4. Beats before the last do not wait; a lookup takes eight clocks, as a frame does.",
        ],
    );
    picture.measure(("s_axis_tvalid", 0, ""), ("m_axis_tvalid", ""), "for the first beat")?;
    let last = picture.measure(
        ("s_axis_tlast", 0, ""),
        ("m_axis_tlast", ""),
        "for the last beat, with its queue",
    )?;
    picture.measure(("m_axis_tlast", last, ""), ("m_axis_tdata", "b7"), "later the next frame is through")?;
    Ok(picture)
}

/// Full, so that a frame is dropped, and emptied.
pub fn rx_fifo() -> Result<Picture, String> {
    /// Bytes at which a pause is asked for, and at which no longer.
    const HIGH: u64 = 30_000;
    const LOW: u64 = 24_000;
    /// Words that wait at the output, outside of the memory.
    const AHEAD: u64 = 3;
    let mut bench = Bench::open("rx_fifo", UserAt::Last)?;
    bench.set("cfg_pause_high", HIGH)?;
    bench.set("cfg_pause_low", LOW)?;
    for len in [8_000, 8_000, 8_000, 8_000, 1_600, 60] {
        bench.source.push(vec![0x5a; len], RxUser::default().to_words());
    }
    bench.sink = Sink::new(&bench.dut, "m_axis", Pause::Percent(100), 3)?;
    let scope = &mut bench.scope;
    scope.stream(&bench.dut, "s_axis", &["a", "b", "c", "d", "e", "f"], 0)?;
    scope.bit(&bench.dut, "m_axis_tready", 0)?;
    scope.stream(&bench.dut, "m_axis", &["a", "b", "c", "d", "f"], 0)?;
    for name in ["pause_request", "event_frame", "event_overflow"] {
        scope.bit(&bench.dut, name, 0)?;
    }
    bench.record(4_250)?;
    bench.sink = Sink::new(&bench.dut, "m_axis", Pause::Never, 4)?;
    let opened = bench.scope.clocks();
    bench.record_frames(4)?;
    if bench.received.iter().any(|frame| frame.data.len() != 8_000) {
        return Err("what comes out is not the frames that were kept".to_owned());
    }
    let mut picture = bench.picture(
        "rx_fifo: it fills, asks for a pause, drops a frame that finds no room, and empties",
        &[
            "Frames a to d of 8,000 bytes each, e of 1,600 and f of 60, into 32,768 bytes. A pause is asked for from 30,000 bytes on and down to",
            "24,000; the three words that wait at the output do not count. Nobody takes anything until m_axis_tready rises. The room ends",
            "within e: the whole frame is dropped, and f finds room again.",
        ],
    );
    let mark = format!("d{}", HIGH / 8 + AHEAD - 3_000 - 1);
    let rise =
        picture.measure(("s_axis_tdata", 0, &mark), ("pause_request", ""), "behind the beat at the mark")?;
    let lost =
        picture.measure(("s_axis_tdata", rise, "e199"), ("event_overflow", ""), "behind the end of e")?;
    let request = &picture.row("pause_request")?.samples;
    let fall = (opened..request.len()).find(|at| request[*at] != request[opened]);
    let fall = fall.ok_or("the pause does not end")?;
    picture.windows =
        vec![rise - 6..rise + 3, lost - 4..lost + 9, opened - 1..opened + 4, fall - 10..fall + 3];
    Ok(picture)
}

/// Two segments become one frame.
pub fn lro() -> Result<Picture, String> {
    const PAYLOAD: usize = 10;
    let mut bench = Bench::open("lro", UserAt::Every)?;
    bench.set("cfg_enable", 1)?;
    bench.set("cfg_timeout", 10_000)?;
    // The pool's list of free blocks is filled after reset.
    bench.unseen(2_000)?;
    let good = |arrival| RxUser { csum_status: 2, seg_count: 1, arrival, ..RxUser::default() }.to_words();
    bench.source.push(tcp(80, 1, ACK, PAYLOAD), good(100));
    bench.source.push(tcp(80, 1 + PAYLOAD as u32, ACK | PSH, PAYLOAD), good(108));
    bench.scope.stream(&bench.dut, "s_axis", &["a", "b"], 0)?;
    for name in ["event_opened", "event_joined"] {
        bench.scope.bit(&bench.dut, name, 0)?;
    }
    bench.scope.stream(&bench.dut, "m_axis", &["j"], 2)?;
    let told = user(&bench, "m_axis")?;
    let scope = &mut bench.scope;
    scope.with_last(&bench.dut, "m_axis", "tuser.seg_count", move |dut| told(dut).seg_count.to_string())?;
    scope.with_last(&bench.dut, "m_axis", "tuser.seg_size", move |dut| told(dut).seg_size.to_string())?;
    scope.with_last(&bench.dut, "m_axis", "tuser.arrival", move |dut| told(dut).arrival.to_string())?;
    bench.record_frames(1)?;
    let length = bench.received.first().map(|frame| frame.data.len());
    if length != Some(tcp(80, 1, ACK, 2 * PAYLOAD).len()) {
        return Err(format!("two segments became a frame of {length:?} bytes"));
    }
    let mut picture = bench.picture(
        "lro: two segments of a flow become one frame",
        &[
            "Segment a opens a flow. b is the next of it, joins, and has PSH: the flow leaves at once. j has the headers of one segment",
            "with 20 bytes of payload; with it travel the number of segments, the payload of the first and the arrival of the last.",
        ],
    );
    picture.measure(("s_axis_tlast", 0, ""), ("event_opened", ""), "until the flow is opened")?;
    picture.measure(("s_axis_tdata", 0, "b7"), ("event_joined", ""), "until b joins")?;
    picture.measure(("event_joined", 0, ""), ("m_axis_tvalid", ""), "until the first beat leaves")?;
    let end = picture.windows.last().map_or(0, |window| window.end);
    picture.windows = vec![0..19, 26..30, 40..end];
    Ok(picture)
}
