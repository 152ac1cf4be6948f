// An AXI4-Lite slave in front of registers: one access at a time, registers see a strobe and answer when they are ready.
//
// A write needs address and data, in whatever order they come. A read and a write that wait at the same time take turns.
// Byte strobes are not supported: registers are written whole, and a write with other strobes than all ones gets SLVERR and
// changes nothing.
`default_nettype none

module axil_slave #(
    parameter int ADDR_W = 13
) (
    input  wire               clk,
    input  wire               rst,

    input  wire  [ADDR_W-1:0] s_axil_awaddr,
    input  wire               s_axil_awvalid,
    output logic              s_axil_awready,
    input  wire  [31:0]       s_axil_wdata,
    input  wire  [3:0]        s_axil_wstrb,
    input  wire               s_axil_wvalid,
    output logic              s_axil_wready,
    output logic [1:0]        s_axil_bresp,
    output logic              s_axil_bvalid,
    input  wire               s_axil_bready,
    input  wire  [ADDR_W-1:0] s_axil_araddr,
    input  wire               s_axil_arvalid,
    output logic              s_axil_arready,
    output logic [31:0]       s_axil_rdata,
    output logic [1:0]        s_axil_rresp,
    output logic              s_axil_rvalid,
    input  wire               s_axil_rready,

    // Held until `done`, which may come in the same clock. `is_write` tells which of the two it is.
    output logic              access,
    output logic              is_write,
    output logic [ADDR_W-1:0] addr,
    output logic [31:0]       write_data,
    input  wire               done,
    input  wire  [31:0]       read_data
);
  localparam logic [1:0] OKAY = 2'b00, SLVERR = 2'b10;

  logic              have_aw, have_w, have_ar, answering;
  logic [ADDR_W-1:0] aw_addr, ar_addr;
  logic [31:0]       w_data;
  logic              w_whole, was_write;

  assign s_axil_awready = !have_aw;
  assign s_axil_wready  = !have_w;
  assign s_axil_arready = !have_ar;
  assign addr           = is_write ? aw_addr : ar_addr;
  assign write_data     = w_data;
  assign answering      = s_axil_bvalid || s_axil_rvalid;

  always_ff @(posedge clk) begin
    if (s_axil_awvalid && s_axil_awready) begin
      aw_addr <= s_axil_awaddr;
      have_aw <= 1'b1;
    end
    if (s_axil_wvalid && s_axil_wready) begin
      w_data  <= s_axil_wdata;
      w_whole <= &s_axil_wstrb;
      have_w  <= 1'b1;
    end
    if (s_axil_arvalid && s_axil_arready) begin
      ar_addr <= s_axil_araddr;
      have_ar <= 1'b1;
    end
    if (s_axil_bready) s_axil_bvalid <= 1'b0;
    if (s_axil_rready) s_axil_rvalid <= 1'b0;

    if (access) begin
      if (done) begin
        access    <= 1'b0;
        was_write <= is_write;
        if (is_write) begin
          have_aw       <= 1'b0;
          have_w        <= 1'b0;
          s_axil_bvalid <= 1'b1;
          s_axil_bresp  <= OKAY;
        end else begin
          have_ar       <= 1'b0;
          s_axil_rvalid <= 1'b1;
          s_axil_rdata  <= read_data;
        end
      end
    end else if (!answering) begin
      if (have_aw && have_w && !(have_ar && was_write)) begin
        if (w_whole) begin
          access   <= 1'b1;
          is_write <= 1'b1;
        end else begin
          have_aw       <= 1'b0;
          have_w        <= 1'b0;
          was_write     <= 1'b1;
          s_axil_bvalid <= 1'b1;
          s_axil_bresp  <= SLVERR;
        end
      end else if (have_ar) begin
        access   <= 1'b1;
        is_write <= 1'b0;
      end
    end

    if (rst) begin
      have_aw       <= 1'b0;
      have_w        <= 1'b0;
      have_ar       <= 1'b0;
      access        <= 1'b0;
      is_write      <= 1'b0;
      was_write     <= 1'b0;
      s_axil_bvalid <= 1'b0;
      s_axil_rvalid <= 1'b0;
    end
  end

  assign s_axil_rresp = OKAY;
endmodule

`default_nettype wire
