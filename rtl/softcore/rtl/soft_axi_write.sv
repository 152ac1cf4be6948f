// An AXI4 master's writes, made into beats of memory. A burst is answered when all of it is written.
`default_nettype none

module soft_axi_write #(
    parameter int DATA_W  = 64,
    parameter int ADDR_W  = 40,
    parameter int SIZE_W  = 26,
    localparam int BEAT_W = SIZE_W - 3
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire  [ADDR_W-1:0]   awaddr,
    input  wire                 awvalid,
    output logic                awready,
    input  wire  [DATA_W-1:0]   wdata,
    input  wire  [DATA_W/8-1:0] wstrb,
    input  wire                 wlast,
    input  wire                 wvalid,
    output logic                wready,
    output logic                bvalid,
    input  wire                 bready,

    output logic                ask,
    output logic [BEAT_W-1:0]   beat,
    output logic [63:0]         beat_data,
    output logic [7:0]          beat_strobes,
    input  wire                 grant
);
  localparam int PARTS = DATA_W / 64;

  if (DATA_W != 64 && DATA_W != 128) begin : gen_bad_width
    $error("soft_axi_write: DATA_W must be 64 or 128");
  end

  logic              is_busy, part;
  logic [BEAT_W-1:0] next;

  wire part_ends = PARTS == 1 || part;
  assign awready = !is_busy && !bvalid;
  assign ask     = is_busy && wvalid;
  assign beat    = next;
  assign wready  = ask && grant && part_ends;
  if (PARTS == 1) begin : gen_narrow
    assign beat_data    = wdata;
    assign beat_strobes = wstrb;
  end else begin : gen_wide
    assign beat_data    = part ? wdata[127:64] : wdata[63:0];
    assign beat_strobes = part ? wstrb[15:8] : wstrb[7:0];
  end

  always_ff @(posedge clk) begin
    if (bvalid && bready) bvalid <= 1'b0;
    if (awvalid && awready) begin
      is_busy <= 1'b1;
      next    <= awaddr[SIZE_W-1:3] & ~BEAT_W'(PARTS - 1);
      part    <= 1'b0;
    end
    if (ask && grant) begin
      next <= next + 1'b1;
      part <= !part;
      if (wlast && part_ends) begin
        is_busy <= 1'b0;
        bvalid  <= 1'b1;
      end
    end
    if (rst) begin
      is_busy <= 1'b0;
      bvalid  <= 1'b0;
    end
  end

  wire unused = &{1'b0, awaddr[ADDR_W-1:SIZE_W], awaddr[2:0]};
endmodule

`default_nettype wire
