// The rules of an AXI4-Stream, as assumptions about an input or assertions about an output (AMBA AXI4-Stream, section 2.2).
//
// Valid stays until ready and what is offered does not change; every byte lane below the highest one used is used, in every
// beat but the last all of them, and no beat is empty.
`default_nettype none

module axis_check #(
    parameter int DATA_W = 64,
    parameter int USER_W = 1,
    // 1: the environment obeys; 0: the block must.
    parameter bit ASSUME = 1'b0,
    // Whether tuser must stay the same over a frame.
    parameter bit USER_CONSTANT = 1'b0
) (
    input wire                clk,
    input wire                rst,
    input wire [DATA_W-1:0]   tdata,
    input wire [DATA_W/8-1:0] tkeep,
    input wire                tvalid,
    input wire                tready,
    input wire                tlast,
    input wire [USER_W-1:0]   tuser
);
  localparam int KEEP_W = DATA_W / 8;

  logic stalled = 1'b0, in_frame = 1'b0;
  logic [DATA_W-1:0] held_data;
  logic [KEEP_W-1:0] held_keep;
  logic              held_last;
  logic [USER_W-1:0] held_user, frame_user;

  always_ff @(posedge clk) begin
    stalled   <= !rst && tvalid && !tready;
    held_data <= tdata;
    held_keep <= tkeep;
    held_last <= tlast;
    held_user <= tuser;
    if (rst) in_frame <= 1'b0;
    else if (tvalid && tready) begin
      in_frame     <= !tlast;
      frame_user <= tuser;
    end
  end

  wire stays    = tvalid && tdata == held_data && tkeep == held_keep && tlast == held_last && tuser == held_user;
  // A number of the form 0..01..1, not zero: all ones where more beats follow.
  wire lanes    = tkeep[0] && (tkeep & (tkeep + KEEP_W'(1))) == '0 && (tlast || &tkeep);
  wire same     = !in_frame || tuser == frame_user;

  always @(posedge clk) begin
    if (!rst) begin
      if (ASSUME) begin
        if (stalled) assume (stays);
        if (tvalid) assume (lanes);
        if (tvalid && USER_CONSTANT) assume (same);
      end else begin
        if (stalled) assert (stays);
        if (tvalid) assert (lanes);
        if (tvalid && USER_CONSTANT) assert (same);
      end
    end
  end
endmodule

`default_nettype wire
