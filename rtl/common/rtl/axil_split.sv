// One AXI4-Lite master to two slaves, by one bit of the address; one write and one read at a time.
`default_nettype none

module axil_split #(
    parameter int ADDR_W = 13
) (
    input  wire                clk,
    input  wire                rst,

    input  wire  [ADDR_W-1:0]  s_axil_awaddr,
    input  wire                s_axil_awvalid,
    output logic               s_axil_awready,
    input  wire  [31:0]        s_axil_wdata,
    input  wire  [3:0]         s_axil_wstrb,
    input  wire                s_axil_wvalid,
    output logic               s_axil_wready,
    output logic [1:0]         s_axil_bresp,
    output logic               s_axil_bvalid,
    input  wire                s_axil_bready,
    input  wire  [ADDR_W-1:0]  s_axil_araddr,
    input  wire                s_axil_arvalid,
    output logic               s_axil_arready,
    output logic [31:0]        s_axil_rdata,
    output logic [1:0]         s_axil_rresp,
    output logic               s_axil_rvalid,
    input  wire                s_axil_rready,

    // Index 1 where the address' highest bit is 1.
    output logic [ADDR_W-1:0]  m_axil_awaddr,
    output logic [1:0]         m_axil_awvalid,
    input  wire  [1:0]         m_axil_awready,
    output logic [31:0]        m_axil_wdata,
    output logic [3:0]         m_axil_wstrb,
    output logic [1:0]         m_axil_wvalid,
    input  wire  [1:0]         m_axil_wready,
    input  wire  [1:0][1:0]    m_axil_bresp,
    input  wire  [1:0]         m_axil_bvalid,
    output logic [1:0]         m_axil_bready,
    output logic [ADDR_W-1:0]  m_axil_araddr,
    output logic [1:0]         m_axil_arvalid,
    input  wire  [1:0]         m_axil_arready,
    input  wire  [1:0][31:0]   m_axil_rdata,
    input  wire  [1:0][1:0]    m_axil_rresp,
    input  wire  [1:0]         m_axil_rvalid,
    output logic [1:0]         m_axil_rready
);
  // A write that has been taken: to whom it goes, and what of it is still to go there.
  logic writing, to, aw_waits, w_waits, w_sent, have_w;
  // A read.
  logic reading, from, ar_waits;

  assign s_axil_awready = !writing;
  assign s_axil_wready  = !have_w;
  assign m_axil_awvalid = {aw_waits && to, aw_waits && !to};
  assign m_axil_wvalid  = {w_waits && to, w_waits && !to};
  assign s_axil_bvalid  = writing && m_axil_bvalid[to];
  assign s_axil_bresp   = m_axil_bresp[to];
  assign m_axil_bready  = {writing && to && s_axil_bready, writing && !to && s_axil_bready};
  // Data that has come early belongs to the next write.
  assign w_waits        = writing && have_w && !w_sent;

  assign s_axil_arready = !reading;
  assign m_axil_arvalid = {ar_waits && from, ar_waits && !from};
  assign s_axil_rvalid  = reading && m_axil_rvalid[from];
  assign s_axil_rdata   = m_axil_rdata[from];
  assign s_axil_rresp   = m_axil_rresp[from];
  assign m_axil_rready  = {reading && from && s_axil_rready, reading && !from && s_axil_rready};

  always_ff @(posedge clk) begin
    if (s_axil_awvalid && s_axil_awready) begin
      m_axil_awaddr <= s_axil_awaddr;
      to            <= s_axil_awaddr[ADDR_W-1];
      writing       <= 1'b1;
      w_sent        <= 1'b0;
      aw_waits      <= 1'b1;
    end
    if (s_axil_wvalid && s_axil_wready) begin
      m_axil_wdata <= s_axil_wdata;
      m_axil_wstrb <= s_axil_wstrb;
      have_w       <= 1'b1;
    end
    if (aw_waits && m_axil_awready[to]) aw_waits <= 1'b0;
    if (w_waits && m_axil_wready[to]) begin
      have_w <= 1'b0;
      w_sent <= 1'b1;
    end
    if (s_axil_bvalid && s_axil_bready) writing <= 1'b0;
    if (s_axil_arvalid && s_axil_arready) begin
      m_axil_araddr <= s_axil_araddr;
      from          <= s_axil_araddr[ADDR_W-1];
      reading       <= 1'b1;
      ar_waits      <= 1'b1;
    end
    if (ar_waits && m_axil_arready[from]) ar_waits <= 1'b0;
    if (s_axil_rvalid && s_axil_rready) reading <= 1'b0;
    if (rst) begin
      writing  <= 1'b0;
      aw_waits <= 1'b0;
      have_w   <= 1'b0;
      reading  <= 1'b0;
      ar_waits <= 1'b0;
    end
  end
endmodule

`default_nettype wire
