// Checksums of frames to be sent: layer 4 from any byte to the end of the frame, and the IPv4 header.
//
// A checksum stands before the bytes that it covers, so a frame is stored first and leaves when its sums are known; the next
// one is stored and summed meanwhile, beat for beat. Sums, and what they are for, wait in a queue of their own. Where a field
// lies is found out once, on the way in, and remembered beside the beat.
//
//   s_axis --+------------------> [frames, FIFO_BYTES] --> [put fields in] --> m_axis
//            +--> [sums] --> [a result for each frame] --------^
//
// The pseudo-header's part of the sum comes as csum_init, in the field itself, or both: csum_init takes the place of the frame's
// first two bytes in the sum, which no checksum covers.
//
// A request is refused, and its frame sent as it came, if an offset is odd, csum_begin is below 2 or behind csum_insert,
// a field or an IPv4 header lies beyond the frame or the header is shorter than 20 bytes, the sum of layer 4 would cover the IPv4
// header whose checksum is asked for, or csum is neither CSUM_NONE nor CSUM_PARTIAL.
//
// cfg: none
// event_inserted  a frame got what it asked for (in the clock in which its sums are known, as the next)
// event_refused   a request was refused
// event_overlong  a frame longer than FIFO_BYTES: it passes as it came, while more of it comes in
`default_nettype none

module csum_tx
  import nic_pkg::*;
#(
    parameter int DATA_W = 64,
    // The longest frame that is given checksums; the storage is as large.
    parameter int FIFO_BYTES = 4096,
    // Whether it can fill in IPv4 header checksums; a request is refused if not.
    parameter bit IP_CSUM = 1'b1,
    // Frames whose results may wait, as a power of two.
    parameter int FRAMES_W = 4,
    localparam int USER_W = $bits(tx_user_t)
) (
    input  wire                 clk,
    input  wire                 rst,

    input  wire  [DATA_W-1:0]   s_axis_tdata,
    input  wire  [DATA_W/8-1:0] s_axis_tkeep,
    input  wire                 s_axis_tvalid,
    output logic                s_axis_tready,
    input  wire                 s_axis_tlast,
    input  wire  [USER_W-1:0]   s_axis_tuser,   // tx_user_t

    output logic [DATA_W-1:0]   m_axis_tdata,
    output logic [DATA_W/8-1:0] m_axis_tkeep,
    output logic                m_axis_tvalid,
    input  wire                 m_axis_tready,
    output logic                m_axis_tlast,
    output logic [3:0]          m_axis_tuser,   // the channel that it came from

    output logic                event_inserted,
    output logic                event_refused,
    output logic                event_overlong
);
  localparam int BYTES = DATA_W / 8;
  localparam int LOG = $clog2(BYTES);
  localparam int HALVES = BYTES / 2;
  localparam int HALF_W = LOG - 1;
  localparam int DEPTH = FIFO_BYTES / BYTES;
  localparam int ADDR_W = $clog2(DEPTH);

  if (DATA_W < 32 || DATA_W > 512 || (DATA_W & (DATA_W - 1)) != 0) begin : gen_bad_width
    $error("csum_tx: DATA_W must be a power of two from 32 to 512");
  end
  if (FIFO_BYTES > 65536 || DEPTH < 4 || (FIFO_BYTES & (FIFO_BYTES - 1)) != 0) begin : gen_bad_depth
    $error("csum_tx: FIFO_BYTES must be a power of two, at least four beats and at most 65,536");
  end

  // Offsets in half-words, as all are even.
  typedef logic [HALF_W-1:0] half_t;

  // What concerns segmentation is not for here.
  /* verilator lint_off UNUSEDSIGNAL */
  wire tx_user_t user = s_axis_tuser;
  /* verilator lint_on UNUSEDSIGNAL */
  wire accept = s_axis_tvalid && s_axis_tready;
  wire accept_last = accept && s_axis_tlast;

  // ---------------------------------------------------------------------------------------------------------------------
  // Where in the frame this beat is, and what of it is summed

  logic              first;  // beat of the frame
  logic [ADDR_W:0]   beat;   // its number; stays at DEPTH in a frame that is too long
  wire               overlong = beat[ADDR_W];
  wire [15-LOG:0]    here = (16-LOG)'(beat);

  always_ff @(posedge clk) begin
    if (accept) begin
      first <= s_axis_tlast;
      if (s_axis_tlast) beat <= '0;
      else if (!overlong) beat <= beat + 1'b1;
    end
    if (rst) begin
      first <= 1'b1;
      beat  <= '0;
    end
  end

  // The sum of layer 4 begins here, its field lies here.
  wire   begins = user.csum_begin[15:LOG] == here;
  wire   inserts = user.csum_insert[15:LOG] == here;
  wire half_t begin_at = user.csum_begin[LOG-1:1];
  wire half_t insert_at = user.csum_insert[LOG-1:1];
  // UDP: the field is the fourth half-word.
  wire [LOG+1:0] udp_at = (LOG+2)'(begin_at) + (LOG+2)'(3);

  logic              started;          // summing, since an earlier beat
  logic [1:0]        began;            // one beat ago, two beats ago
  logic [HALVES-1:0] in_layer4;
  logic [BYTES-1:0]  layer4_mask;
  logic              covers, is_udp;

  always_comb begin
    for (int i = 0; i < HALVES; i++) in_layer4[i] = started || (begins && half_t'(i) >= begin_at);
    for (int i = 0; i < BYTES; i++) layer4_mask[i] = accept && s_axis_tkeep[i] && in_layer4[i/2];
    if (first) layer4_mask[1:0] = {2{accept}};
    covers = 1'b0;
    for (int i = 0; i < HALVES; i++) begin
      if (insert_at == half_t'(i)) covers = inserts && in_layer4[i] && s_axis_tkeep[2*i+1];
    end
    case (udp_at[LOG+1:HALF_W])
      '0: is_udp = begins;
      3'd1: is_udp = began[0];
      default: is_udp = began[1];
    endcase
    if (udp_at[HALF_W-1:0] != insert_at) is_udp = 1'b0;
  end

  always_ff @(posedge clk) begin
    if (accept) begin
      started <= (started || begins) && !s_axis_tlast;
      began   <= s_axis_tlast ? 2'b00 : {began[0], begins};
    end
    if (rst) begin
      started <= 1'b0;
      began   <= 2'b00;
    end
  end

  logic [15:0] layer4_sum, ip_sum;
  logic        sum_valid;

  /* verilator lint_off PINCONNECTEMPTY */
  ones_sum #(
      .DATA_W(DATA_W),
      .SPLIT (1'b1)
  ) layer4 (
      .clk,
      .rst,
      .in_data  ({s_axis_tdata[DATA_W-1:16], first ? {user.csum_init[7:0], user.csum_init[15:8]} : s_axis_tdata[15:0]}),
      .in_mask  (layer4_mask),
      .in_last  (accept_last),
      .sum      (layer4_sum),
      .words    (),
      .carries  (),
      .sum_valid(sum_valid)
  );

  // ---------------------------------------------------------------------------------------------------------------------
  // The same for the IPv4 header: l3_start, IHL words of 32 bits, without the field at 10

  logic  ip_complete, ip_bad, ip_field_here;
  logic  ip_covered_1;   // layer 4 covers some of it, up to the beat of a clock ago
  half_t ip_field_at;

  if (IP_CSUM) begin : gen_ip
    localparam int END_W = (HALF_W > 5 ? HALF_W : 5) + 1;
    wire ip_begins = (16-LOG)'(user.l3_start[7:LOG]) == here;
    wire half_t ip_at = user.l3_start[LOG-1:1];
    wire [7:0] field = {1'b0, user.l3_start[7:1]} + 8'd5;

    logic             running;    // in the header, since an earlier beat
    logic [END_W-1:0] left;       // half-words of it from this beat on, then
    logic [END_W-1:0] ends;       // the same, in this beat, counted from its first
    logic [3:0]       ihl;
    logic [HALVES-1:0] in_ip;
    logic [BYTES-1:0]  ip_mask;
    logic complete_now, complete_before, bad_now, bad_before, cut;
    logic unused_valid;

    always_comb begin
      ihl = s_axis_tdata[{ip_at, 4'd0}+:4];
      ends = ip_begins ? END_W'(ip_at) + END_W'({ihl, 1'b0}) : left;
      cut = 1'b0;
      for (int i = 0; i < HALVES; i++) begin
        // A header has at least ten half-words.
        in_ip[i] = ip_begins ? half_t'(i) >= ip_at && (HALVES <= 10 || END_W'(i) < ends) : running && END_W'(i) < left;
        cut |= in_ip[i] && !s_axis_tkeep[2*i+1];
      end
      for (int i = 0; i < BYTES; i++) begin
        ip_mask[i] = accept && in_ip[i/2] && !(ip_field_here && ip_field_at == half_t'(i / 2));
      end
      // Of at most ten half-words no beat has a whole header: shorter ones are bad.
      complete_now = HALVES > 10 ? (ip_begins || running) && ends <= END_W'(HALVES) && !cut
          : running && !ip_begins && left <= END_W'(HALVES) && !cut;
      bad_now = ip_begins && ihl < 4'd5;
    end

    assign ip_field_at = field[HALF_W-1:0];
    assign ip_field_here = (16-LOG)'(field[7:HALF_W]) == here;
    assign ip_complete = complete_now || complete_before;
    assign ip_bad = bad_now || bad_before || user.l3_start[0];

    always_ff @(posedge clk) begin
      if (accept) begin
        running         <= (ip_begins || running) && ends > END_W'(HALVES) && !s_axis_tlast;
        left            <= ends - END_W'(HALVES);
        complete_before <= ip_complete && !s_axis_tlast;
        bad_before      <= (bad_now || bad_before) && !s_axis_tlast;
      end
      if (rst) begin
        running         <= 1'b0;
        complete_before <= 1'b0;
        bad_before      <= 1'b0;
      end
    end

    // A clock later, as what is in it is known late.
    logic [HALVES-1:0] in_ip_1, in_layer4_1;
    logic              covered_before, last_1;

    assign ip_covered_1 = covered_before || (in_ip_1 & in_layer4_1) != '0;

    always_ff @(posedge clk) begin
      in_ip_1        <= in_ip;
      in_layer4_1    <= in_layer4;
      last_1         <= accept_last;
      covered_before <= ip_covered_1 && !last_1;
      if (!accept) in_ip_1 <= '0;
      if (rst) begin
        in_ip_1        <= '0;
        last_1         <= 1'b0;
        covered_before <= 1'b0;
      end
    end

    ones_sum #(
        .DATA_W(DATA_W),
        .SPLIT (1'b1)
    ) header (
        .clk,
        .rst,
        .in_data  (s_axis_tdata),
        .in_mask  (ip_mask),
        .in_last  (accept_last),
        .sum      (ip_sum),
        .sum_valid(unused_valid),
        .words    (),
        .carries  ()
    );
  end else begin : gen_no_ip
    assign {ip_complete, ip_bad, ip_covered_1, ip_field_here, ip_field_at, ip_sum} = '0;
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // What is to be done with the frame, known in its last beat; the sums come three clocks later

  typedef struct packed {
    logic       layer4;     // fill in
    logic       ip;
    logic       udp;        // write no zero
    half_t      layer4_at;
    half_t      ip_at;
    logic [3:0] channel;
  } task_t;

  task_t      task_now, task_1, task_2, task_3;
  logic       covered, udp_before, refused_1, refused_2, refused_3;
  // Why it may be refused; put together a clock later, as each of them is late.
  logic       bad_layer4_1, bad_ip_1, complete_ip_1;
  logic       silent_1, silent_2, silent_3, overlong_1;
  wire        asks_layer4 = user.csum != CSUM_NONE;
  wire        bad_layer4 = user.csum != CSUM_PARTIAL || user.csum_begin[0] || user.csum_insert[0]
                           || user.csum_begin[15:1] == '0 || !(covered || covers);
  wire        overlong_now = accept && !s_axis_tlast && beat == (ADDR_W+1)'(DEPTH - 1);

  always_comb begin
    task_now = '{
        layer4: asks_layer4,
        ip: user.ip_csum,
        udp: udp_before || (covers && is_udp),
        layer4_at: insert_at,
        ip_at: ip_field_at,
        channel: user.channel
    };
    refused_1 = (task_1.layer4 && bad_layer4_1)
        || (task_1.ip && (bad_ip_1 || !complete_ip_1 || (task_1.layer4 && ip_covered_1)));
  end

  always_ff @(posedge clk) begin
    if (accept) begin
      covered    <= (covered || covers) && !s_axis_tlast;
      udp_before <= (udp_before || (covers && is_udp)) && !s_axis_tlast;
    end
    task_1     <= task_now;
    task_2     <= task_1;
    if (refused_1) {task_2.layer4, task_2.ip} <= '0;
    task_3     <= task_2;
    bad_layer4_1  <= bad_layer4;
    bad_ip_1      <= ip_bad;
    complete_ip_1 <= ip_complete;
    refused_2  <= refused_1;
    refused_3  <= refused_2;
    // The result of a frame that is leaving already.
    silent_1   <= overlong;
    silent_2   <= silent_1;
    silent_3   <= silent_2;
    overlong_1 <= overlong_now;
    if (rst) begin
      covered    <= 1'b0;
      udp_before <= 1'b0;
      // Or it would be committed what a frame left behind that a reset has cut off.
      silent_1   <= 1'b0;
      silent_2   <= 1'b0;
      silent_3   <= 1'b0;
      overlong_1 <= 1'b0;
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // Results, one for each frame that is complete (or overlong)

  typedef struct packed {
    task_t       work;
    logic [15:0] layer4;
    logic [15:0] ip;
    logic        invert;  // layer4 is to be complemented
  } result_t;

  result_t             results[2**FRAMES_W];
  result_t             result_in, result_1, result_kept, result;
  logic                push, push_1, pop;
  logic [FRAMES_W-1:0] push_at, pop_at, pop_next, result_at;
  logic [FRAMES_W:0]   open;  // frames accepted whose result is still needed

  always_comb begin
    push = (sum_valid && !silent_3) || overlong_1;
    result_in = '{
        work: overlong_1 ? '{channel: task_1.channel, default: '0} : task_3,
        layer4: layer4_sum,
        ip: ip_sum,
        invert: 1'b1
    };
    // Kept a clock later, as sums come late; a beat takes two from the memory to where its result is needed.
    result_kept = result_1;
    // A sum of ffff stays as it is where its complement would mean "no checksum" (RFC 768).
    result_kept.invert = !(result_1.work.udp && &result_1.layer4);
    result_at = pop ? pop_next : pop_at;
  end

  wire opens = accept_last && !overlong || overlong_now;

  always_ff @(posedge clk) begin
    result_1 <= result_in;
    push_1 <= push;
    if (push_1) begin
      results[push_at] <= result_kept;
      push_at <= push_at + 1'b1;
    end
    // A clock ahead: the result was written before the frame's first beat was read.
    result <= results[result_at];
    pop_at <= result_at;
    pop_next <= result_at + 1'b1;
    // One adder: 1 or -1.
    if (opens != pop) open <= open + {{FRAMES_W{pop}}, 1'b1};
    event_inserted <= sum_valid && !silent_3 && (task_3.layer4 || task_3.ip);
    event_refused <= sum_valid && !silent_3 && refused_3;
    event_overlong <= overlong_1;
    if (rst) begin
      push_1 <= 1'b0;
      push_at <= '0;
      pop_at <= '0;
      pop_next <= FRAMES_W'(1);
      open <= '0;
      event_inserted <= 1'b0;
      event_refused <= 1'b0;
      event_overlong <= 1'b0;
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // Frames

  typedef struct packed {
    logic              layer4_here;
    logic              ip_here;
    logic              last;
    logic [LOG-1:0]    lane;  // the last one in use
    logic [DATA_W-1:0] data;
  } beat_t;

  // No beat is read before it is committed, three clocks after it was written: collisions do not matter.
  (* no_rw_check *) beat_t beats[DEPTH];
  // What the memory gives is slow to come: it goes through a register before anything is done with it.
  beat_t           beat_in, beat_read, beat_out;
  // One bit more than an address. `settled` is two clocks behind, as sums are three.
  logic [ADDR_W:0] write_at, written, settled, commit_at, read_at, stored;
  logic            read_valid, beat_valid, issue;

  wire out_ready = !m_axis_tvalid || m_axis_tready;
  wire beat_ready = !beat_valid || out_ready;

  wire read_ready = !read_valid || beat_ready;

  assign issue = read_at != commit_at && read_ready;
  assign pop = beat_valid && out_ready && beat_out.last;

  always_comb begin
    beat_in = '{layer4_here: inserts, ip_here: ip_field_here, last: s_axis_tlast, lane: '0, data: s_axis_tdata};
    for (int i = 1; i < BYTES; i++) if (s_axis_tkeep[i]) beat_in.lane = LOG'(i);
  end

  always_ff @(posedge clk) begin
    if (accept) beats[write_at[ADDR_W-1:0]] <= beat_in;
    if (issue) beat_read <= beats[read_at[ADDR_W-1:0]];
    if (beat_ready) beat_out <= beat_read;
  end

  always_ff @(posedge clk) begin
    if (accept) write_at <= write_at + 1'b1;
    written <= write_at;
    settled <= written;
    // Whole frames, or what there is of one that is too long.
    if (sum_valid || silent_3) commit_at <= settled;
    if (issue) read_at <= read_at + 1'b1;
    if (accept != issue) stored <= stored + {{ADDR_W{issue}}, 1'b1};
    if (read_ready) read_valid <= issue;
    if (beat_ready) beat_valid <= read_valid;
    // Room for a beat after this one, and for a frame's result.
    s_axis_tready <= !(stored[ADDR_W] || (&stored[ADDR_W-1:0] && accept))
                     && !(open[FRAMES_W] || (&open[FRAMES_W-1:0] && opens));
    if (rst) begin
      write_at <= '0;
      written <= '0;
      settled <= '0;
      commit_at <= '0;
      read_at <= '0;
      stored <= '0;
      read_valid <= 1'b0;
      beat_valid <= 1'b0;
      s_axis_tready <= 1'b0;
    end
  end

  // ---------------------------------------------------------------------------------------------------------------------
  // Fields go in

  logic [DATA_W-1:0] filled;

  if (HALVES <= 4) begin : gen_one_field
    // Behind a header of 20 bytes or more, the field of layer 4 is never in the beat with that of the header.
    logic [15:0] value;
    logic        complement;
    half_t       at;
    always_comb begin
      filled = beat_out.data;
      value = beat_out.layer4_here && result.work.layer4 ? result.layer4 : result.ip;
      complement = !(beat_out.layer4_here && result.work.layer4) || result.invert;
      at = beat_out.layer4_here && result.work.layer4 ? result.work.layer4_at : result.work.ip_at;
      for (int i = 0; i < HALVES; i++) begin
        if (at == half_t'(i) && ((beat_out.layer4_here && result.work.layer4) || (beat_out.ip_here && result.work.ip))) begin
          filled[16*i+:16] = {value[7:0], value[15:8]} ^ {16{complement}};
        end
      end
    end
  end else begin : gen_two_fields
    always_comb begin
      filled = beat_out.data;
      for (int i = 0; i < HALVES; i++) begin
        if (beat_out.ip_here && result.work.ip && result.work.ip_at == half_t'(i)) begin
          filled[16*i+:16] = ~{result.ip[7:0], result.ip[15:8]};
        end
        if (beat_out.layer4_here && result.work.layer4 && result.work.layer4_at == half_t'(i)) begin
          filled[16*i+:16] = {result.layer4[7:0], result.layer4[15:8]} ^ {16{result.invert}};
        end
      end
    end
  end

  always_ff @(posedge clk) begin
    if (out_ready) begin
      m_axis_tvalid <= beat_valid;
      m_axis_tdata <= filled;
      m_axis_tlast <= beat_out.last;
      m_axis_tuser <= result.work.channel;
      for (int i = 0; i < BYTES; i++) m_axis_tkeep[i] <= LOG'(i) <= beat_out.lane;
    end
    if (rst) m_axis_tvalid <= 1'b0;
  end
  /* verilator lint_on PINCONNECTEMPTY */
endmodule

`default_nettype wire
