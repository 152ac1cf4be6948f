// lro's way out: the rules of the output, and each frame leaves with as many bytes as its pieces have, in its order.
//
// Proved of lro_pack and the register behind it, for whatever the reader in front may give them: pieces of a word, each with a
// first byte and a count, as many at a time as there are credits. Bounded: 9 clocks from a reset at a width of 32 bits, frames of
// up to 6 pieces, 4 credits. The valid and stable payload of the register itself are proved without a bound in common/formal.
`default_nettype none

module lro_formal
  import nic_pkg::*;
(
    input wire        clk,
    input wire        rst,
    input wire        give,
    input wire [31:0] data,
    input wire [2:0]  start,
    input wire [2:0]  count,
    input wire        last,
    input wire [7:0]  mark,
    input wire        m_axis_tready,
    input wire [2:0]  chosen
);
  localparam int USER_W = $bits(rx_user_t);

  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) assume (rst == first);

  logic [2:0] chosen_before;
  always_ff @(posedge clk) chosen_before <= chosen;
  always @(posedge clk) if (!first) assume (chosen == chosen_before);

  // As the reader gives: a place in the FIFO for each, bytes of one word, the frame's fields before or with its first piece.
  logic [4:0] credits = 5'd4;
  logic       credit, begins = 1'b1;
  wire        gives = give && !rst;
  always @(posedge clk) begin
    if (gives) assume (credits != '0 && count != '0 && start < 3'd4 && 4'(start) + 4'(count) <= 4'd4);
  end

  rx_user_t user;
  always_comb begin
    user      = '0;
    user.hash = {24'd0, mark};
  end

  logic [31:0]       out_data, m_axis_tdata;
  logic [3:0]        out_keep, m_axis_tkeep;
  logic              out_valid, out_ready, out_last, m_axis_tvalid, m_axis_tlast;
  rx_user_t          out_user;
  logic [USER_W-1:0] m_axis_tuser;

  lro_pack #(.DATA_W(32), .CREDITS(4)) packer (
      .clk, .rst, .user_write(gives && begins), .user, .in_valid(gives), .in_data(data), .in_start(start), .in_count(count),
      .in_last(last), .credit, .out_data, .out_keep, .out_valid, .out_ready, .out_last, .out_user
  );
  axis_register #(.DATA_W(32), .USER_W(USER_W)) output_register (
      .clk, .rst, .s_axis_tdata(out_data), .s_axis_tkeep(out_keep), .s_axis_tvalid(out_valid), .s_axis_tready(out_ready),
      .s_axis_tlast(out_last), .s_axis_tuser(out_user), .m_axis_tdata, .m_axis_tkeep, .m_axis_tvalid, .m_axis_tready,
      .m_axis_tlast, .m_axis_tuser
  );
  axis_check #(.DATA_W(32), .USER_W(USER_W), .USER_CONSTANT(1)) output_rules (
      .clk, .rst, .tdata(m_axis_tdata), .tkeep(m_axis_tkeep), .tvalid(m_axis_tvalid), .tready(m_axis_tready),
      .tlast(m_axis_tlast), .tuser(m_axis_tuser)
  );

  // A frame is followed: its bytes, its first byte and its mark.
  logic [2:0] frames_in = '0, frames_out = '0;
  logic [6:0] bytes_in = '0, bytes_out = '0, followed_bytes = '0;
  logic [7:0] followed_mark, followed_first, first_byte;
  rx_user_t   shown;
  assign shown = m_axis_tuser;
  wire [2:0] kept = 3'($countones(m_axis_tkeep));
  assign first_byte = data[8*start[1:0]+:8];

  always_ff @(posedge clk) begin
    credits <= rst ? 5'd4 : credits + 5'(credit) - 5'(gives);
    if (gives) begin
      begins   <= last;
      bytes_in <= last ? '0 : bytes_in + 7'(count);
      if (last) frames_in <= frames_in + 3'd1;
      if (frames_in == chosen && begins) begin
        followed_mark  <= mark;
        followed_first <= first_byte;
      end
      if (frames_in == chosen) followed_bytes <= bytes_in + 7'(count);
    end
    if (m_axis_tvalid && m_axis_tready && !rst) begin
      bytes_out <= m_axis_tlast ? '0 : bytes_out + 7'd4;
      if (m_axis_tlast) frames_out <= frames_out + 3'd1;
    end
  end

  always @(posedge clk) begin
    if (!rst && !first && m_axis_tvalid && frames_out == chosen) begin
      assert (shown.hash == {24'd0, followed_mark});
      if (bytes_out == '0) assert (m_axis_tdata[7:0] == followed_first);
      if (m_axis_tlast) assert (frames_in != chosen && bytes_out + 7'(kept) == followed_bytes);
      else assert (bytes_out + 7'd4 <= followed_bytes);
    end
  end
endmodule

`default_nettype wire
