// The check sequence of Ethernet (IEEE 802.3, 3.2.9), a byte at a time: begins as all ones, its complement is sent, the lowest byte first.
`default_nettype none

package crc32_pkg;
  // Not everybody needs all of it.
  /* verilator lint_off UNUSEDPARAM */
  localparam logic [31:0] CRC_BEGIN = 32'hffff_ffff;
  // What is there after a frame and its check sequence.
  localparam logic [31:0] CRC_GOOD  = 32'hdebb_20e3;
  // The polynomial, its lowest power in the highest bit.
  localparam logic [31:0] POLYNOMIAL = 32'hedb8_8320;
  /* verilator lint_on UNUSEDPARAM */

  // The sequence with one more byte.
  function automatic logic [31:0] crc32(logic [31:0] crc, logic [7:0] data);
    logic [31:0] next;
    next = crc ^ {24'd0, data};
    for (int at = 0; at < 8; at++) next = (next >> 1) ^ (next[0] ? POLYNOMIAL : 32'd0);
    return next;
  endfunction
endpackage

`default_nettype wire
