// Works through the transmit descriptors: a frame of each queue in turn, a read burst at a time.
//
// A burst ends at a multiple of its greatest length, so none crosses 4 KiB. A burst is sent when there is room for all it brings,
// so the data master's read side is never held back.
//
//   PICK (a queue, round robin) -> LOOK -> LOAD -> CHECK -> CUT -> SIZE -> SEND -+-> CUT ...       more bursts
//                                                                                +-> WAIT -> LOAD  another descriptor of the frame
//                                                                                +-> PICK          the frame ends
//
// A descriptor that makes no sense ends its frame with a mark instead of a burst, which makes whoever collects the data throw
// the frame away, and blocks its queue until that is reset.
`default_nettype none

module dma_tx_issue #(
    parameter int QUEUES = 4,
    parameter int DATA_W = 64,
    parameter int ADDR_W = 40,
    parameter int BURST  = 16,
    parameter int ENTRY_W = 1,
    localparam int QUEUE_W = QUEUES > 1 ? $clog2(QUEUES) : 1,
    localparam int LINE_W  = ADDR_W - 6,
    localparam int BYTES   = DATA_W / 8,
    localparam int LANE_W  = $clog2(BYTES),
    localparam int SPAN_W  = $clog2(BYTES * BURST),
    localparam int BEATS_W = $clog2(BURST) + 1
) (
    input  wire                 clk,
    input  wire                 rst,

    // Queues.
    input  wire  [QUEUES-1:0]   run,
    input  wire  [QUEUES-1:0]   kill,          // do not finish the frame begun
    output logic [QUEUES-1:0]   blocked,
    output logic [QUEUES-1:0]   working,
    output logic [QUEUES-1:0]   begun,         // pulse: a descriptor whose status will be written
    output logic                fail,          // pulse: queue fail_queue stops and no status will be written
    output logic [QUEUE_W-1:0]  fail_queue,
    output logic [3:0]          fail_kind,     // descriptor, DECERR, SLVERR, internal

    // Descriptors: the oldest one of look_queue is on show a clock later.
    output logic [QUEUE_W-1:0]  look_queue,
    input  wire  [ENTRY_W-1:0]  look_entry,
    input  wire  [LINE_W-1:0]   look_line,
    input  wire  [QUEUES-1:0]   available,
    input  wire  [QUEUES-1:0]   starved,
    output logic                pop,           // it was taken a clock ago

    // Room in the collector.
    input  wire                 room_data,
    input  wire                 room_lists,
    input  wire                 room_frames,

    // A frame begins: what travels beside it.
    output logic                user_push,
    output nic_pkg::tx_user_t   user,

    // A descriptor, and each of its bursts (or a mark).
    output logic                desc_push,
    output logic [LINE_W-1:0]   desc_line,
    output logic [QUEUE_W-1:0]  desc_queue,
    output logic [25:0]         desc_len,
    output logic                desc_eof,
    output logic                desc_bad,
    output logic                burst_push,
    output logic                burst_mark,    // no data: the frame ends here, and badly
    output logic                burst_has_desc,// the last burst of its descriptor
    output logic                burst_eof,
    output logic [LANE_W-1:0]   burst_lane,    // where the first byte lies
    output logic [LANE_W-1:0]   burst_end,     // where the last byte lies
    output logic [BEATS_W-1:0]  burst_beats,

    // Data master, read address.
    output logic [ADDR_W-1:0]   m_axi_araddr,
    output logic [7:0]          m_axi_arlen,
    output logic                m_axi_arvalid,
    input  wire                 m_axi_arready
);
  import nic_pkg::*;

  typedef enum logic [3:0] {PICK, LOOK, LOAD, CHECK, CUT, SIZE, SEND, WAIT, MARK, LEAVE} state_t;
  state_t state;

  logic [QUEUE_W-1:0] queue, chosen;
  logic any;
  logic in_frame;

  // The descriptor.
  logic [LINE_W-1:0] line;
  logic dec_error, slv_error, complete, bad, sof, eof;
  logic [25:0] len, left;
  logic [ADDR_W-1:0] address;
  logic [$bits(tx_user_t)-5:0] user_bits;

  // As it was a clock ago: what a frame changes here has been seen when the next one is picked.
  logic [QUEUES-1:0] ready;
  always_ff @(posedge clk) ready <= run & available & ~blocked & {QUEUES{!rst}};

  dma_round_robin #(
      .COUNT(QUEUES)
  ) arbiter (
      .last(queue),
      .wants(ready),
      .any(any),
      .chosen(chosen)
  );

  assign look_queue = queue;

  always_comb begin
    working = '0;
    if (state != PICK) working[queue] = 1'b1;
  end

  // What is wrong with a descriptor: with memory, with who gave it, with what it says.
  wire unread  = dec_error || slv_error;
  wire invalid = bad || sof == in_frame;
  wire fits    = !unread && !complete && !invalid;

  // The next burst: up to the end of the span, or of the descriptor (CUT); then its beats (SIZE).
  localparam int CUT_W = SPAN_W + 1;
  wire [CUT_W-1:0] to_span_end = CUT_W'(BYTES * BURST) - CUT_W'(address[SPAN_W-1:0]);
  wire             is_short    = left[25:CUT_W] == '0
                                 && (CUT_W + 1)'(left[CUT_W-1:0]) + (CUT_W + 1)'(address[SPAN_W-1:0]) <= (CUT_W + 1)'(BYTES * BURST);
  logic [CUT_W-1:0] size;
  logic is_last;
  wire [CUT_W-1:0] last_byte  = CUT_W'(address[LANE_W-1:0]) + size - 1'b1;
  logic [BEATS_W-1:0] beats_less;      // its beats, less one
  logic [LANE_W-1:0]  end_lane;

  wire free_address = !m_axi_arvalid || m_axi_arready;
  wire sends        = state == SEND && free_address && room_data && room_lists;

  // What CHECK has found goes on in the clock behind it: nothing of the descriptor changes before the next LOAD.
  logic fitted;
  always_comb begin
    user         = {4'd0, user_bits};
    user.channel = 4'(queue);
  end

  assign desc_line  = line;
  assign desc_queue = queue;
  assign desc_len   = fitted ? len : 26'd0;
  assign desc_eof   = fitted && eof;
  assign desc_bad   = !fitted;
  always_comb begin
    begun = '0;
    if (desc_push) begun[queue] = 1'b1;
  end

  // A mark for a frame that is open, or for a descriptor whose status says that it is bad.
  logic mark_desc, mark_frame;
  wire  marks = state == MARK && room_lists;
  assign burst_push     = sends || marks;
  assign burst_mark     = state == MARK;
  assign burst_has_desc = state == MARK ? mark_desc : is_last;
  assign burst_eof      = state == MARK ? mark_frame : is_last && eof;
  assign burst_lane     = address[LANE_W-1:0];
  assign burst_end      = end_lane;
  assign burst_beats    = state == MARK ? '0 : beats_less + 1'b1;

  always_ff @(posedge clk) begin
    if (m_axi_arready) m_axi_arvalid <= 1'b0;
    fail      <= 1'b0;
    fitted    <= fits;
    pop       <= state == LOAD;
    user_push <= state == CHECK && fits && !in_frame;
    desc_push <= state == CHECK && !unread && !complete;
    case (state)
      PICK: begin
        in_frame <= 1'b0;
        if (any && room_frames && room_lists) begin
          queue <= chosen;
          state <= LOOK;
        end
      end
      LOOK: state <= LOAD;
      LOAD: begin
        line <= look_line;
        {dec_error, slv_error, complete, bad, sof, eof, len, address, user_bits} <= look_entry;
        state <= CHECK;
      end
      CHECK: begin
        left       <= len;
        fail_kind  <= {unread || complete, dec_error, !dec_error && slv_error, !unread};
        fail_queue <= queue;
        mark_desc  <= !unread && !complete;
        mark_frame <= in_frame;
        if (fits) begin
          in_frame <= 1'b1;
          state    <= CUT;
        end else begin
          blocked[queue] <= 1'b1;
          fail           <= 1'b1;
          state          <= (!unread && !complete) || in_frame ? MARK : LEAVE;
        end
      end
      CUT: begin
        size    <= is_short ? left[CUT_W-1:0] : to_span_end;
        is_last <= is_short;
        state   <= SIZE;
      end
      SIZE: begin
        beats_less <= BEATS_W'(last_byte[CUT_W-1:LANE_W]);
        end_lane   <= last_byte[LANE_W-1:0];
        state      <= SEND;
      end
      SEND: if (sends) begin
        m_axi_araddr  <= address;
        m_axi_arlen   <= 8'(beats_less);
        m_axi_arvalid <= 1'b1;
        address       <= address + ADDR_W'(size);
        left          <= left - 26'(size);
        state         <= !is_last ? CUT : eof ? PICK : WAIT;
      end
      WAIT: begin
        mark_desc  <= 1'b0;
        mark_frame <= 1'b1;
        fail_kind  <= 4'b0001;
        fail_queue <= queue;
        if (kill[queue]) state <= MARK;
        else if (available[queue]) begin
          if (room_lists) state <= LOAD;
        end else if (starved[queue]) begin
          // The tail lies within a frame.
          blocked[queue] <= 1'b1;
          fail           <= 1'b1;
          state          <= MARK;
        end
      end
      MARK:    if (marks) state <= LEAVE;
      default: state <= PICK;
    endcase
    for (int q = 0; q < QUEUES; q++) if (kill[q] && !working[q]) blocked[q] <= 1'b0;
    if (rst) begin
      state         <= PICK;
      queue         <= '0;
      blocked       <= '0;
      fail          <= 1'b0;
      user_push     <= 1'b0;
      desc_push     <= 1'b0;
      pop           <= 1'b0;
      m_axi_arvalid <= 1'b0;
    end
  end
endmodule

`default_nettype wire
