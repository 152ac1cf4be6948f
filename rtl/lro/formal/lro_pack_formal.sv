// lro's way out, between its lists and the register at the end: the rules of the output; each frame leaves with the bytes of its pieces,
// all of them, in their order, and with its user word.
//
// Proved by induction, without a bound: frames of any length and number, at a width of 32 bits. One byte, chosen by the solver, is
// followed from the list to the output. Assumed of the lists: a piece has a byte at least and lies within its word, and the user
// word of a frame stays until its last piece is taken (lro_fifo_formal).
`default_nettype none

module lro_pack_formal
  import nic_pkg::*;
(
    input wire                         clk,
    input wire                         rst,
    input wire                         user_write,
    input wire [$bits(rx_user_t)-1:0]  user_in,
    input wire                         in_valid,
    input wire [31:0]                  in_data,
    input wire [2:0]                   in_start,
    input wire [2:0]                   in_count,
    input wire                         in_last,
    input wire                         out_ready,
    input wire                         pick,      // follow a byte of the piece that is taken
    input wire [1:0]                   pick_at
);
  localparam int K = 4;
  // Bytes, counted modulo 32: fewer than 16 are between the list and the output.
  typedef logic [4:0] number_t;

  logic first = 1'b1;
  always_ff @(posedge clk) first <= 1'b0;
  always @(posedge clk) if (first) assume (rst);

  logic [31:0] out_data;
  logic [3:0]  out_keep;
  logic        out_valid, out_last, credit;
  rx_user_t    out_user;
  lro_pack #(.DATA_W(32), .CREDITS(4)) dut (
      .clk, .rst, .user_write, .user(user_in), .in_valid, .in_data, .in_start, .in_count, .in_last, .credit, .out_data, .out_keep,
      .out_valid, .out_ready, .out_last, .out_user
  );
  axis_check #(.DATA_W(32), .USER_W($bits(rx_user_t)), .USER_CONSTANT(1)) rules (
      .clk, .rst, .tdata(out_data), .tkeep(out_keep), .tvalid(out_valid), .tready(out_ready), .tlast(out_last), .tuser(out_user)
  );

  // ---------------------------------------------------------------- what the lists show
  logic     open_list = 1'b0;        // a frame's first piece was taken, and not its last
  rx_user_t user;
  always @(posedge clk) begin
    assume (dut.fifo_count != '0 && dut.fifo_count <= 3'd4 && dut.fifo_start < 3'd4 && dut.fifo_start + dut.fifo_count <= 3'd4);
    if (open_list) assume (dut.fifo_user == user);
  end
  always_ff @(posedge clk) begin
    if (dut.take) begin
      open_list <= !dut.fifo_last;
      user      <= dut.fifo_user;
    end
    if (rst) open_list <= 1'b0;
  end

  // ---------------------------------------------------------------- bytes, counted
  // Taken from the list; left with the output. Of each stage: how many have left before its word and with it, and its own piece.
  number_t taken = '0, sent = '0;
  typedef struct packed {
    number_t head;      // have left before this word
    number_t from;      // the first byte of its piece
    number_t upto;      // behind its last
    number_t with_it;   // have left once it has
  } place_t;
  place_t entering, sized, turned, leaving;
  number_t decided = '0;   // have left once all that was decided on has

  wire [3:0]    total   = 4'(dut.filled) + 4'(dut.fifo_count);
  wire          emits   = dut.spill || total >= 4'(K) || dut.fifo_last;
  wire number_t emitted = dut.spill ? number_t'(dut.filled) : total >= 4'(K) ? number_t'(K) : number_t'(total);
  always_comb begin
    entering.head    = decided;
    entering.from    = taken;
    entering.upto    = taken + (dut.spill ? 5'd0 : number_t'(dut.fifo_count));
    entering.with_it = decided + (emits ? emitted : 5'd0);
  end

  always_ff @(posedge clk) begin
    if (dut.advance) begin
      if (dut.take || dut.spill) begin
        taken   <= entering.upto;
        decided <= entering.with_it;
      end
      sized   <= entering;
      turned  <= sized;
      leaving <= turned;
    end
    if (out_valid && out_ready) sent <= sent + number_t'($countones(out_keep));
    if (rst) begin
      taken   <= '0;
      decided <= '0;
      sent    <= '0;
    end
  end

  // ---------------------------------------------------------------- a byte that is followed
  logic       follows = 1'b0;
  number_t    index;
  logic [7:0] value;
  wire number_t lane = index - sent;   // of the output's word
  wire          ours = out_valid && lane < number_t'($countones(out_keep));
  always_ff @(posedge clk) begin
    if (dut.take && pick && 3'(pick_at) < dut.fifo_count && !follows) begin
      follows <= 1'b1;
      index   <= taken + number_t'(pick_at);
      value   <= dut.fifo_data[8*(2'(dut.fifo_start)+pick_at)+:8];
    end else if (ours && out_ready) begin
      follows <= 1'b0;
    end
    if (rst) follows <= 1'b0;
  end

  // A byte of the stage's own piece, by its number.
  function automatic logic holds(place_t at);
    return index - at.from < at.upto - at.from;
  endfunction

  wire [31:0] rotated = dut.rotate(dut.sized_word, dut.sized_amount);
  // What is left of the words that have passed `turned`: its bytes from here on.
  number_t left_from = '0, left_upto = '0;
  always_ff @(posedge clk) begin
    if (dut.advance && dut.turned_valid) begin
      left_from <= turned.with_it;
      left_upto <= turned.upto;
    end
    if (rst) begin
      left_from <= '0;
      left_upto <= '0;
    end
  end

  always @(posedge clk) begin
    if (!rst && !first) begin
      // The frame's bytes, all of them.
      if (out_valid) assert (sent + number_t'($countones(out_keep)) == leaving.with_it);
      if (out_valid && out_last) assert (leaving.with_it == leaving.upto);
      if (follows && ours) assert (is_at(out_data, sent));
      if (follows) assert (index - sent < taken - sent);
    end
  end

  // ---------------------------------------------------------------- what induction needs to know
  // A stage's fields say what its place says.
  function automatic logic fits(place_t at, logic full, logic last, logic spill, logic [2:0] filled, logic [2:0] count);
    number_t own, together;
    own      = at.upto - at.from;
    together = at.upto - at.head;
    return together < number_t'(2 * K) && filled < 3'(K) && full == (!spill && together >= number_t'(K))
        && at.with_it == at.head + (full ? number_t'(K) : last ? together : 5'd0)
        && (!last || (together <= number_t'(K) && together == number_t'(count)))
        && (spill ? last && own == '0 && together != '0 && together < number_t'(K)
                  : own != '0 && own <= number_t'(K) && at.from - at.head == number_t'(filled));
  endfunction
  // The byte at a place of a word, counted from `head`.
  function automatic logic is_at(logic [31:0] word, number_t head);
    logic [1:0] at;
    at = 2'(index - head);
    return (at != 2'd0 || word[7:0] == value) && (at != 2'd1 || word[15:8] == value)
        && (at != 2'd2 || word[23:16] == value) && (at != 2'd3 || word[31:24] == value);
  endfunction

  wire number_t after_out    = out_valid ? leaving.with_it : sent;
  wire number_t after_turned = dut.turned_valid ? turned.with_it : after_out;
  wire number_t after_sized  = dut.sized_valid ? sized.with_it : after_turned;
  wire number_t upto_turned  = dut.turned_valid ? turned.upto : left_upto;
  wire number_t upto_sized   = dut.sized_valid ? sized.upto : upto_turned;

  // The user word, and whether a frame goes on behind: of what has passed `turned`, of each stage, and of the list.
  logic     open_left = 1'b0;
  rx_user_t user_left;
  always_ff @(posedge clk) begin
    if (dut.advance && dut.turned_valid) begin
      open_left <= !dut.turned.last;
      user_left <= dut.turned.user;
    end
    if (rst) open_left <= 1'b0;
  end
  wire      open_turned = dut.turned_valid ? !dut.turned.last : open_left;
  rx_user_t user_turned, user_sized;
  wire      open_sized  = dut.sized_valid ? !dut.sized.last : open_turned;
  assign user_turned = dut.turned_valid ? dut.turned.user : user_left;
  assign user_sized  = dut.sized_valid ? dut.sized.user : user_turned;

  always @(posedge clk) begin
    if (!rst && !first) begin
      assert (after_sized == decided && upto_sized == taken && taken - decided == number_t'(dut.filled) && dut.filled < 3'(K));
      assert (left_from == after_out && left_upto - left_from < number_t'(K));
      if (out_valid) assert (leaving.head == sent);
      if (dut.turned_valid) begin
        assert (turned.head == after_out && turned.from == left_upto);
        assert (fits(turned, dut.turned.full, dut.turned.last, dut.turned.spill, dut.turned.filled, dut.turned.count));
      end
      if (dut.sized_valid) begin
        assert (sized.head == after_turned && sized.from == upto_turned);
        assert (fits(sized, dut.sized.full, dut.sized.last, dut.sized.spill, dut.sized.filled, dut.sized.count));
      end
      if (dut.spill) assert (dut.filled != '0 && dut.sized_valid && !dut.sized.last && !open_list);

      // Where the byte is.
      if (follows) begin
        if (dut.sized_valid && holds(sized)) assert (is_at(rotated, sized.head));
        if (dut.turned_valid && holds(turned)) assert (is_at(dut.turned_word, turned.head));
        if (index - left_from < left_upto - left_from) assert (is_at(dut.left, left_from));
      end

      // Users.
      assert (open_sized == (open_list || dut.spill));
      if (open_sized) assert (user_sized == user);
      if (dut.sized_valid && open_turned) assert (dut.sized.user == user_turned);
      if (dut.turned_valid && open_left) assert (dut.turned.user == user_left);
      if (out_valid) assert (out_user == user_left && out_last == !open_left);
      if (rules.in_frame && !out_valid) assert (open_left && user_left == rules.frame_user);
    end
  end
endmodule

`default_nettype wire
