// The flows that are open, and what becomes of each frame: it joins a flow, opens one, or passes alone.
//
//   IDLE --whole segment--> PICK --a flow with its hash--> FETCH to DECIDE --joins--> STORE --PSH, short--> CLOSE
//     |                     ^ '--none (left)--> PLACE           | |
//     |                     '-----------another flow------------' '--does not join--> CLOSE, STORE or PASS
//     |--else---------------------> PLACE --may open, table full--> VICTIM, CLOSE, STORE
//     |                               |-----may open--------------> STORE
//     |                               '-----else------------------> PASS
//     '--the oldest flow's time is over, memory, barrier--> VICTIM, CLOSE
//
// A flow is found by a short hash in registers, and then compared in full; a flow with the same hash costs time, not a wrong join.
// A frame takes 8 clocks at most where one flow has its hash: the clocks of a minimum frame of 64 bits.
`default_nettype none

module lro_table
  import nic_pkg::*;
  import lro_pkg::*;
#(
    parameter int FLOWS      = 8,
    parameter int MAX_PACKET = 65535,
    // Blocks that open flows may hold; one more frame than that closes the oldest.
    parameter int MAX_HELD   = 768
) (
    input  wire           clk,
    input  wire           rst,
    input  wire           cfg_enable,
    input  wire  [31:0]   cfg_timeout,

    input  wire           segment_valid,
    input  wire segment_t segment,
    output logic          segment_take,

    output logic          link_write,
    output block_t        link_from,
    output block_t        link_to,

    output logic          leave_valid,
    output leave_t        leave,
    input  wire           leave_room,

    output logic          event_opened,
    output logic          event_joined,
    output logic          event_passed,
    output logic          event_timeout,
    output logic          event_evicted,
    output logic          event_pressure
);
  localparam int SLOT_W = FLOWS > 1 ? $clog2(FLOWS) : 1;
  localparam int COUNT_W = $clog2(FLOWS + 1);

  typedef logic [SLOT_W-1:0] slot_t;
  typedef enum logic [3:0] {IDLE, PICK, FETCH, RULES, DECIDE, VICTIM, VICTIM_READ, CLOSE, PLACE, STORE, PASS} state_t;
  typedef enum logic [1:0] {PLAINLY, TIMEOUT, EVICTED, PRESSURE} reason_t;

  // The table: keys to compare, and all else. Wide and of few rows: block RAM would be nearly empty, and answers late.
  (* no_rw_check, ram_style = "distributed" *) logic [$bits(flow_key_t)+$bits(common_t)-1:0] keys[FLOWS];
  (* no_rw_check, ram_style = "distributed" *) logic [$bits(flow_t)-1:0] flows[FLOWS];
  flow_key_t key;
  common_t   same;
  flow_t     flow, update;

  state_t             state;
  reason_t            reason;
  logic               place_after;         // the frame is still to be placed when the flow is closed
  logic               is_new;              // what STORE stores
  slot_t              slot;
  logic [FLOWS-1:0]   is_open, others;
  logic [FLOWS-1:0][15:0] tags;
  logic [FLOWS-1:0][31:0] opened_at;

  // Slots by age, the oldest first.
  slot_t [FLOWS-1:0]  order;
  logic [COUNT_W-1:0] count;
  logic [31:0]        clock;
  block_t             held;

  logic [FLOWS-1:0] candidates;
  slot_t            next_candidate, free_slot;
  always_comb begin
    for (int i = 0; i < FLOWS; i++) candidates[i] = is_open[i] && tags[i] == segment.tag;
    next_candidate  = '0;
    free_slot       = '0;
    for (int i = FLOWS - 1; i >= 0; i--) begin
      if (others[i]) next_candidate = slot_t'(i);
      if (!is_open[i]) free_slot = slot_t'(i);
    end
  end

  // Whether the oldest flow's time is over: the answer follows with three clocks, and counts when the oldest has not changed since.
  // Other flows may come and go meanwhile: without a gap between frames that never ends.
  logic [31:0] oldest_opened, oldest_age;
  logic [1:0]  settled;
  logic        time_over;
  wire         any     = count != '0;
  wire         expired = any && ((settled == 2'd3 && time_over) || !cfg_enable);
  wire         crowded = any && held > block_t'(MAX_HELD);
  wire         opens   = segment.eligible && !segment.flags[3];
  wire         is_full = count == COUNT_W'(FLOWS);

  // Rules, in two steps.
  localparam int PARTS = 12;
  logic [$bits(flow_key_t)-1:0] key_diff;
  logic [$bits(common_t)-1:0]   same_diff;
  logic [PARTS-1:0] key_differs;
  logic [4:0]       same_differs;
  logic [1:0]       seq_differs;
  logic             flags_differ, in_size, is_short, has_count;
  logic             ack_back, value_back, echo_back;
  logic             key_match, joins;
  logic [16:0]      sum_len;
  block_t           sum_blocks;

  // Numbers wrap around: the sign of the difference tells.
  function automatic logic is_before(input logic [31:0] number, input logic [31:0] than);
    return 32'(number - than) >= 32'h8000_0000;
  endfunction

  assign key_diff  = segment.key ^ key;
  assign same_diff = segment.same ^ same;
  assign key_match = key_differs == '0;
  assign joins     = segment.eligible && same_differs == '0 && seq_differs == '0 && !flags_differ && in_size && has_count
                     && !ack_back && (!segment.stamped || (!value_back && !echo_back))
                     && sum_len <= 17'(MAX_PACKET);

  always_ff @(posedge clk) begin
    for (int i = 0; i < PARTS; i++) key_differs[i] <= |(key_diff >> (28 * i) & $bits(flow_key_t)'(28'hfff_ffff));
    for (int i = 0; i < 5; i++) same_differs[i] <= |(same_diff >> (28 * i) & $bits(common_t)'(28'hfff_ffff));
    for (int i = 0; i < 2; i++) seq_differs[i] <= segment.seq[16*i+:16] != flow.next_seq[16*i+:16];
    flags_differ <= ((segment.flags ^ flow.flags) & 8'hf7) != '0;
    in_size    <= segment.payload <= flow.seg_size;
    is_short   <= segment.payload < flow.seg_size;
    has_count  <= !flow.joined || flow.user.seg_count != '1;
    ack_back   <= is_before(segment.ack, flow.ack);
    value_back <= is_before(segment.stamps[63:32], flow.stamps[63:32]);
    echo_back  <= is_before(segment.stamps[31:0], flow.stamps[31:0]);
    sum_len    <= 17'(flow.ip_len) + 17'(segment.payload);
    sum_blocks <= flow.blocks + segment.blocks;
  end

  // The frame as the first of a flow (or alone), and as the flow's next one.
  flow_t alone, merged;
  always_comb begin
    alone           = '0;
    alone.head      = segment.head;
    alone.seg_size  = segment.payload;
    alone.csum_part = segment.csum_part;
    alone.hdr_len   = segment.hdr_len;
    alone.v6        = segment.v6;
    alone.tags      = segment.tags;
    alone.stamped   = segment.stamped;
    alone.reserved  = segment.same.reserved;
    alone.tail      = segment.head;
    alone.next_seq  = segment.next_seq;
    alone.ack       = segment.ack;
    alone.flags     = segment.flags;
    alone.window    = segment.window;
    alone.stamps    = segment.stamps;
    alone.len       = segment.frame_len;
    alone.ip_len    = segment.ip_len;
    alone.blocks    = segment.blocks;
    alone.user      = segment.user;

    merged          = flow;
    merged.joined   = 1'b1;
    merged.tail     = segment.head;
    merged.next_seq = segment.next_seq;
    merged.ack      = segment.ack;
    merged.flags    = segment.flags;
    merged.window   = segment.window;
    merged.stamps   = segment.stamps;
    merged.len      = sum_len[15:0];
    merged.ip_len   = sum_len[15:0];
    merged.blocks   = sum_blocks;
    merged.user.csum_raw  = '0;
    merged.user.seg_count = flow.joined ? flow.user.seg_count + 8'd1 : 8'd2;
    merged.user.seg_size  = flow.seg_size;
    merged.user.arrival   = segment.user.arrival;
  end

  // Not all of a flow leaves.
  /* verilator lint_off UNUSEDSIGNAL */
  function automatic leave_t leaves(input flow_t of);
    automatic leave_t all = '0;
    all.joined    = of.joined;
    all.head      = of.head;
    all.len       = of.len;
    all.hdr_len   = of.hdr_len;
    all.seg_size  = of.seg_size;
    all.csum_part = of.csum_part;
    all.v6        = of.v6;
    all.tags      = of.tags;
    all.stamped   = of.stamped;
    all.reserved  = of.reserved;
    all.flags     = of.flags;
    all.window    = of.window;
    all.ack       = of.ack;
    all.stamps    = of.stamps;
    all.user      = of.user;
    return all;
  endfunction
  /* verilator lint_on UNUSEDSIGNAL */

  // What STORE may store, and what CLOSE or PASS may send: chosen by the state before alone, not by what is decided in it.
  logic has_room;
  wire  holds = (state == CLOSE || state == PASS) && !has_room;
  block_t leave_blocks;

  always_ff @(posedge clk) begin
    update <= state == DECIDE ? merged : alone;
    if (!holds) begin
      if (state == DECIDE || state == VICTIM_READ) begin
        leave        <= leaves(flow);
        leave_blocks <= flow.blocks;
      end else if (state == STORE) begin
        leave        <= leaves(update);
        leave_blocks <= update.blocks;
      end else begin
        leave        <= leaves(alone);
        leave_blocks <= alone.blocks;
      end
    end
  end

  wire closes      = state == CLOSE && has_room;
  wire passes      = state == PASS && has_room;
  wire adds        = state == STORE && is_new;
  assign leave_valid  = closes || passes;
  assign segment_take = passes || state == STORE;
  assign link_write   = state == STORE && !is_new;
  assign link_to      = segment.head;

  always_ff @(posedge clk) begin
    if (adds) keys[slot] <= {segment.key, segment.same};
    {key, same} <= keys[slot];
  end
  always_ff @(posedge clk) begin
    if (state == STORE) flows[slot] <= update;
    flow <= flows[slot];
  end

  // Where the slot is in the order, and all places behind it. Neither changes in the two clocks in front of CLOSE.
  logic [FLOWS-1:0] behind;
  always_ff @(posedge clk) begin
    for (int i = 0; i < FLOWS; i++) begin
      behind[i] <= 1'b0;
      for (int j = 0; j <= i; j++) if (order[j] == slot) behind[i] <= 1'b1;
    end
  end

  // The segment that the next one is linked behind.
  always_ff @(posedge clk) if (state == DECIDE) link_from <= flow.tail;

  always_ff @(posedge clk) begin
    has_room      <= leave_room;
    clock         <= clock + 1'b1;
    oldest_opened <= opened_at[order[0]];
    oldest_age    <= clock - oldest_opened;
    time_over     <= oldest_age >= cfg_timeout;
    settled       <= settled == 2'd3 ? settled : settled + 2'd1;

    event_opened   <= adds;
    event_joined   <= link_write;
    event_passed   <= passes;
    event_timeout  <= closes && reason == TIMEOUT;
    event_evicted  <= closes && reason == EVICTED;
    event_pressure <= closes && reason == PRESSURE;

    unique case (state)
      IDLE: begin
        slot        <= order[0];
        place_after <= 1'b0;
        is_new      <= 1'b0;
        reason      <= expired ? TIMEOUT : crowded ? PRESSURE : PLAINLY;
        others      <= candidates;
        if (expired || crowded || (any && segment_valid && segment.barrier)) state <= VICTIM;
        else if (segment_valid) state <= segment.whole ? PICK : PLACE;
      end
      PICK: begin
        slot   <= next_candidate;
        others <= others & ~(FLOWS'(1) << next_candidate);
        state  <= others == '0 ? PLACE : FETCH;
      end
      FETCH:   state <= RULES;
      RULES:   state <= DECIDE;
      DECIDE: begin
        if (!key_match) state <= PICK;
        else if (joins) state <= STORE;
        else begin
          place_after <= 1'b1;
          state       <= CLOSE;
        end
      end
      VICTIM:  state <= VICTIM_READ;
      VICTIM_READ: state <= CLOSE;
      CLOSE: if (has_room) begin
        // The frame takes the place that becomes free.
        is_new <= 1'b1;
        state  <= !place_after ? IDLE : opens ? STORE : PASS;
      end
      PLACE: begin
        is_new <= 1'b1;
        if (opens && is_full) begin
          slot        <= order[0];
          reason      <= EVICTED;
          place_after <= 1'b1;
          state       <= VICTIM;
        end else begin
          slot  <= free_slot;
          state <= opens ? STORE : PASS;
        end
      end
      STORE: begin
        held  <= held + segment.blocks;
        state <= !is_new && (segment.flags[3] || is_short) ? CLOSE : IDLE;
      end
      PASS: if (has_room) state <= IDLE;
      default: state <= IDLE;
    endcase

    if (closes) begin
      is_open[slot] <= 1'b0;
      held          <= held - leave_blocks;
      count         <= count - 1'b1;
      if (behind[0]) settled <= '0;
      for (int i = 0; i < FLOWS - 1; i++) if (behind[i]) order[i] <= order[i+1];
    end
    if (adds) begin
      is_open[slot]   <= 1'b1;
      tags[slot]      <= segment.tag;
      opened_at[slot] <= clock;
      order[count[SLOT_W-1:0]] <= slot;
      count           <= count + 1'b1;
      if (!any) settled <= '0;
    end

    if (rst) begin
      state          <= IDLE;
      is_open        <= '0;
      count          <= '0;
      order          <= '0;
      held           <= '0;
      // It wraps around soon, so that a test sees it, not a machine after some seconds.
      clock          <= 32'hffff_f000;
      settled        <= '0;
      has_room       <= 1'b0;
      event_opened   <= 1'b0;
      event_joined   <= 1'b0;
      event_passed   <= 1'b0;
      event_timeout  <= 1'b0;
      event_evicted  <= 1'b0;
      event_pressure <= 1'b0;
    end
  end
endmodule

`default_nettype wire
