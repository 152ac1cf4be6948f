// Lets through the frames that are for this station: its own address, broadcast, groups that somebody listens to.
//
//   byte   0       1       2       3       4       5      | 6 ..
//        +-------+-------+-------+-------+-------+-------+
//        | destination; bit 0 of byte 0: a group         |
//        +-------+-------+-------+-------+-------+-------+
//
// Groups go by a hash of six bits, so some pass that nobody asked for: the stack looks again. The whole destination lies in the
// first beat, so DATA_W is at least 64.
//
// Config:  cfg_enable, cfg_promiscuous, cfg_all_groups, cfg_address (byte 0 lowest), cfg_groups (by hash)
// Event:   event_filtered, a frame was kept out
`default_nettype none

module mac_filter #(
    parameter int DATA_W = 64,
    parameter int USER_W = 1
) (
    input  wire                 clk,
    input  wire                 rst,

    input  wire  [DATA_W-1:0]   s_axis_tdata,
    input  wire  [DATA_W/8-1:0] s_axis_tkeep,
    input  wire                 s_axis_tvalid,
    output logic                s_axis_tready,
    input  wire                 s_axis_tlast,
    input  wire  [USER_W-1:0]   s_axis_tuser,

    output logic [DATA_W-1:0]   m_axis_tdata,
    output logic [DATA_W/8-1:0] m_axis_tkeep,
    output logic                m_axis_tvalid,
    input  wire                 m_axis_tready,
    output logic                m_axis_tlast,
    output logic [USER_W-1:0]   m_axis_tuser,

    input  wire                 cfg_enable,
    input  wire                 cfg_promiscuous,
    input  wire                 cfg_all_groups,
    input  wire  [47:0]         cfg_address,
    input  wire  [63:0]         cfg_groups,
    output logic                event_filtered
);
  if (DATA_W < 64) begin : gen_bad_width
    $error("mac_filter: DATA_W must be at least 64");
  end

  // What is asked of the address, a clock before it is answered.
  logic [DATA_W-1:0]   data;
  logic [DATA_W/8-1:0] keep;
  logic [USER_W-1:0]   user;
  logic                valid, last, first, is_own, is_broadcast, is_group, is_short;
  logic [5:0]          hash;

  // And the answer, which holds for the rest of the frame.
  logic                in_frame, passing, next_first;
  wire  pass_first = cfg_enable && !is_short
                   && (cfg_promiscuous || is_own || is_broadcast || (is_group && (cfg_all_groups || cfg_groups[hash])));
  wire  pass       = first ? pass_first : passing;
  wire  [47:0] to  = s_axis_tdata[47:0];

  // The address' bits in the order of transmission of its bytes, six at a time.
  function automatic logic [5:0] hash_of(input logic [47:0] address);
    logic [47:0] bits;
    for (int i = 0; i < 6; i++) bits[47-8*i-:8] = address[8*i+:8];
    return bits[47:42] ^ bits[41:36] ^ bits[35:30] ^ bits[29:24] ^ bits[23:18] ^ bits[17:12] ^ bits[11:6] ^ bits[5:0];
  endfunction

  logic out_valid, out_ready;
  assign out_valid     = valid && pass;
  // What is kept out waits, too: whether it is comes late in the clock.
  assign s_axis_tready = !valid || out_ready;
  assign next_first    = !in_frame;

  always_ff @(posedge clk) begin
    event_filtered <= 1'b0;
    if (s_axis_tready) begin
      valid        <= s_axis_tvalid;
      data         <= s_axis_tdata;
      keep         <= s_axis_tkeep;
      user         <= s_axis_tuser;
      last         <= s_axis_tlast;
      first        <= next_first;
      is_own       <= to == cfg_address;
      is_broadcast <= &to;
      is_group     <= to[0];
      is_short     <= !s_axis_tkeep[5];
      hash         <= hash_of(to);
      if (s_axis_tvalid) in_frame <= !s_axis_tlast;
      if (valid) begin
        passing        <= pass;
        event_filtered <= last && !pass;
      end
    end
    if (rst) begin
      valid    <= 1'b0;
      in_frame <= 1'b0;
    end
  end

  axis_register #(.DATA_W(DATA_W), .USER_W(USER_W)) out (
      .clk, .rst,
      .s_axis_tdata(data), .s_axis_tkeep(keep), .s_axis_tvalid(out_valid), .s_axis_tready(out_ready), .s_axis_tlast(last),
      .s_axis_tuser(user),
      .m_axis_tdata, .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready, .m_axis_tlast, .m_axis_tuser
  );
endmodule

`default_nettype wire
