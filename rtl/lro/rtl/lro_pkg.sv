// What the parts of lro tell each other.
`default_nettype none

package lro_pkg;
  import nic_pkg::*;

  // A block of the pool by its number.
  typedef logic [11:0] block_t;

  // What tells one flow from another: what is not there is zero.
  typedef struct packed {
    logic             v6;
    logic [1:0]       tags;
    logic [1:0]       service;    // for each tag: of the service, not of the customer (IEEE 802.1Q)
    logic [3:0][7:0]  tci;
    logic [31:0][7:0] addresses;
    logic [3:0][7:0]  ports;
  } flow_key_t;

  // What the segments of a coalesced frame have in common beside it.
  typedef struct packed {
    logic [11:0][7:0] macs;
    logic [27:0]      ip_class;   // TOS; traffic class and flow label
    logic [7:0]       hops;       // TTL; hop limit
    logic             stamped;    // data offset 8, not 5
    logic [3:0]       reserved;   // bits behind TCP's data offset
  } common_t;

  // A received frame as the flow table sees it.
  typedef struct packed {
    logic        whole;      // a whole TCP segment in plain headers: the rules speak of it
    logic        barrier;    // TCP may be behind options or extension headers: no flow stays open
    logic        eligible;   // may be the first of a coalesced frame, or join one
    logic        v6;
    logic [1:0]  tags;
    logic        stamped;    // has timestamps
    logic [7:0]  flags;
    logic [15:0] window;
    logic [31:0] seq;
    logic [31:0] next_seq;
    logic [31:0] ack;
    logic [63:0] stamps;
    logic [15:0] csum_part;  // ~checksum + ~length of the IPv4 header
    logic [15:0] ip_len;
    logic [15:0] payload;
    logic [15:0] frame_len;
    logic [6:0]  hdr_len;    // Ethernet to the options, if eligible
    logic [15:0] tag;        // a short hash of the flow
    flow_key_t   key;
    common_t     same;
    block_t      head;
    block_t      blocks;
    rx_user_t    user;
  } segment_t;

  // A flow in the table.
  typedef struct packed {
    // Of the first segment.
    block_t      head;
    logic [15:0] seg_size;
    logic [15:0] csum_part;
    logic [6:0]  hdr_len;
    logic        v6;
    logic [1:0]  tags;
    logic        stamped;
    logic [3:0]  reserved;
    // Of the last one.
    logic        joined;
    block_t      tail;       // where it begins
    logic [31:0] next_seq;
    logic [31:0] ack;
    logic [7:0]  flags;
    logic [15:0] window;
    logic [63:0] stamps;
    // Of all.
    logic [15:0] len;        // as it is to leave: of the IP packet if joined, else of the frame
    logic [15:0] ip_len;
    block_t      blocks;
    rx_user_t    user;
  } flow_t;

  // A frame that is to leave.
  typedef struct packed {
    logic        joined;
    block_t      head;
    logic [15:0] len;        // of the IP packet if joined, else of the frame
    logic [6:0]  hdr_len;
    logic [15:0] seg_size;
    logic [15:0] csum_part;
    logic        v6;
    logic [1:0]  tags;
    logic        stamped;
    logic [3:0]  reserved;
    logic [7:0]  flags;
    logic [15:0] window;
    logic [31:0] ack;
    logic [63:0] stamps;
    rx_user_t    user;
  } leave_t;

  // Fields that are written into the first segment's headers on the way out.
  typedef struct packed {
    logic        v6;
    logic [1:0]  tags;
    logic        stamped;
    logic [15:0] ip_len;     // as the header says it
    logic [15:0] ip_csum;
    logic [31:0] ack;
    logic [15:0] offset_flags;
    logic [15:0] window;
    logic [63:0] stamps;
  } patch_t;

  // Where the IP header begins.
  function automatic logic [4:0] ip_offset(input logic [1:0] tags);
    return 5'd14 + {1'b0, tags, 2'b00};
  endfunction
endpackage

`default_nettype wire
