// What travels beside a frame inside the interface.
`default_nettype none

package nic_pkg;
  // A module uses what it needs of this.
  /* verilator lint_off UNUSEDPARAM */
  // How a frame's checksum is asked for (seed layout: App1 TxCsumCntrl).
  typedef enum logic [1:0] {
    CSUM_NONE    = 2'd0,
    CSUM_PARTIAL = 2'd1,
    CSUM_FULL    = 2'd2
  } csum_mode_t;

  // How a super-frame is split.
  typedef enum logic [1:0] {
    SEG_NONE = 2'd0,
    SEG_TCP  = 2'd1,
    SEG_UDP  = 2'd2
  } seg_mode_t;

  // What the driver asks for one frame: valid and the same in every beat of it.
  typedef struct packed {
    logic [3:0]  channel;
    seg_mode_t   seg;
    logic [15:0] seg_size;     // payload bytes of a segment
    logic [7:0]  hdr_len;      // bytes of all headers, Ethernet to the options of layer 4
    logic [7:0]  l3_start;     // where the IP header begins
    logic        ipv6;
    logic        ip_csum;      // fill in the IPv4 header checksum
    csum_mode_t  csum;
    logic [15:0] csum_init;    // added to the sum: the pseudo-header's, where the field does not hold it already
    logic [15:0] csum_begin;   // first byte summed
    logic [15:0] csum_insert;  // where the complement is written
  } tx_user_t;

  // What was found out about a received frame: valid in the beat with tlast; behind the receive FIFO in every beat.
  typedef struct packed {
    logic        error;        // the MAC says that the frame is damaged (FCS, length)
    logic [2:0]  csum_status;  // see the status codes below
    logic [15:0] csum_raw;     // sum from the 15th byte to the end of the frame, padding included, folded, not complemented
    logic [31:0] hash;         // Toeplitz
    logic [2:0]  hash_type;
    logic [3:0]  channel;
    logic        drop;         // a flow rule says so
    logic [7:0]  seg_count;    // segments that were coalesced; 1 for a frame of its own
    logic [15:0] seg_size;     // payload bytes of the first of them; 0 for a frame of its own
    logic [31:0] arrival;      // time of arrival of the last of them, in clocks
  } rx_user_t;

  // Status codes of the 10G Ethernet checksum engine, RX_CS_STS.
  localparam logic [2:0] CS_UNCHECKED = 3'd0;
  localparam logic [2:0] CS_IP_GOOD   = 3'd1;
  localparam logic [2:0] CS_TCP_GOOD  = 3'd2;
  localparam logic [2:0] CS_UDP_GOOD  = 3'd3;
  localparam logic [2:0] CS_IP_BAD    = 3'd5;
  localparam logic [2:0] CS_TCP_BAD   = 3'd6;
  localparam logic [2:0] CS_UDP_BAD   = 3'd7;

  // What the hash was taken over.
  localparam logic [2:0] HASH_NONE = 3'd0;
  localparam logic [2:0] HASH_IPV4 = 3'd1;
  localparam logic [2:0] HASH_TCP4 = 3'd2;
  localparam logic [2:0] HASH_UDP4 = 3'd3;
  localparam logic [2:0] HASH_IPV6 = 3'd4;
  localparam logic [2:0] HASH_TCP6 = 3'd5;
  localparam logic [2:0] HASH_UDP6 = 3'd6;
  /* verilator lint_on UNUSEDPARAM */
endpackage

`default_nettype wire
