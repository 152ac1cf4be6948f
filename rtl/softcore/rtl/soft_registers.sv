// What the processor reads and writes beside memory: the interface's registers, serial line, timer. An access at a time.
//
//   F000_0000  the interface, 8 KiB (AXI4-Lite)
//   F001_0000  read: a byte that has come (bit 8 says whether there was one); write: a byte to send
//   F002_0000  clocks since the start, low and high (the high word is that of the last read of the low one);
//   F002_0008  when the timer interrupts, low and high
//   F003_0000  straps: 32 bits that whoever builds the board has wired
`default_nettype none

module soft_registers (
    input  wire         clk,
    input  wire         rst,
    // Held until `ack`.
    input  wire         access,
    input  wire         is_write,
    input  wire  [29:0] address,
    input  wire  [31:0] write_data,
    output logic        ack,
    output logic [31:0] read_data,
    output logic        is_nothing,

    output logic [12:0] axil_addr,
    output logic        axil_awvalid,
    input  wire         axil_awready,
    output logic        axil_wvalid,
    input  wire         axil_wready,
    input  wire         axil_bvalid,
    output logic        axil_arvalid,
    input  wire         axil_arready,
    input  wire  [31:0] axil_rdata,
    input  wire         axil_rvalid,

    output logic        sent_valid,
    output logic [7:0]  sent,
    // There is room for this byte and the next.
    input  wire         sent_ready,
    input  wire         typed_valid,
    input  wire  [7:0]  typed,
    output logic        typed_ready,

    input  wire  [31:0] straps,
    output logic        irq_timer,
    // Clocks that pass at once, beside the one that does (simulation alone), and how many there are until the timer interrupts.
    input  wire  [31:0] skipped,
    output logic [63:0] until_timer
);
  logic [63:0] clocks, wake;
  logic [31:0] clocks_high;

  wire is_nic   = address[29:14] == 16'hf000;
  wire is_line  = address[29:14] == 16'hf001;
  wire is_timer = address[29:14] == 16'hf002;
  wire is_strap = address[29:14] == 16'hf003;

  // The interface: what of the access has been taken.
  logic aw_taken, w_taken, ar_taken, is_local;
  wire  on_nic = access && is_nic;
  assign axil_addr    = {address[10:0], 2'b00};
  assign axil_awvalid = on_nic && is_write && !aw_taken;
  assign axil_wvalid  = on_nic && is_write && !w_taken;
  assign axil_arvalid = on_nic && !is_write && !ar_taken;
  wire nic_done = is_write ? axil_bvalid : axil_rvalid;

  // All else answers in the second clock; a byte to send waits for room.
  wire here = access && !is_nic && !is_local && (sent_ready || !is_line || !is_write);
  assign ack         = on_nic ? nic_done : access && is_local;
  assign is_nothing  = access && !is_nic && !is_line && !is_timer && !is_strap;
  assign typed_ready = here && is_line && !is_write;
  assign irq_timer   = clocks >= wake;
  assign until_timer = irq_timer ? '0 : wake - clocks;

  logic [31:0] local_data;
  assign read_data = is_nic ? axil_rdata : local_data;

  always_ff @(posedge clk) begin
    clocks     <= clocks + 64'd1 + 64'(skipped);
    sent_valid <= here && is_line && is_write;
    sent       <= write_data[7:0];
    is_local   <= here;
    if (here) begin
      local_data <= '1;
      if (is_line) local_data <= {23'd0, typed_valid, typed};
      if (is_strap) local_data <= straps;
      if (is_timer) begin
        unique case (address[1:0])
          2'd0: local_data <= clocks[31:0];
          2'd1: local_data <= clocks_high;
          2'd2: local_data <= wake[31:0];
          2'd3: local_data <= wake[63:32];
        endcase
        if (!is_write && address[1:0] == 2'd0) clocks_high <= clocks[63:32];
        if (is_write && address[1:0] == 2'd2) wake[31:0] <= write_data;
        if (is_write && address[1:0] == 2'd3) wake[63:32] <= write_data;
      end
    end
    if (axil_awvalid && axil_awready) aw_taken <= 1'b1;
    if (axil_wvalid && axil_wready) w_taken <= 1'b1;
    if (axil_arvalid && axil_arready) ar_taken <= 1'b1;
    if (ack) begin
      aw_taken <= 1'b0;
      w_taken  <= 1'b0;
      ar_taken <= 1'b0;
    end
    if (rst) begin
      clocks   <= '0;
      wake     <= '1;
      is_local <= 1'b0;
      aw_taken <= 1'b0;
      w_taken  <= 1'b0;
      ar_taken <= 1'b0;
    end
  end

  wire unused = &{1'b0, address[13:11]};
endmodule

`default_nettype wire
