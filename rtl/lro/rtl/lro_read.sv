// Reads the frames that are to leave from the pool, and makes the first segment's headers those of the whole.
//
// A frame is runs of bytes: of a coalesced one the first segment up to the end of its packet, then the payload of each other
// segment, whose headers and padding are left out. Each clock one word is asked for; it comes with the number of its first byte
// that counts and how many count. What is asked for has its place in the FIFO behind, so nothing here ever waits half-way.
//
//   ask (block, word) -> address -> memory -> three registers -> fields written -> FIFO in lro_pack
`default_nettype none

module lro_read
  import nic_pkg::*;
  import lro_pkg::*;
#(
    parameter int DATA_W      = 64,
    parameter int BLOCKS      = 1024,
    parameter int BLOCK_WORDS = 16,
    parameter int CREDITS     = 16,
    localparam int ADDR_W     = $clog2(BLOCKS) + $clog2(BLOCK_WORDS),
    localparam int COUNT_W    = $clog2(DATA_W / 8) + 1
) (
    input  wire                clk,
    input  wire                rst,

    input  wire                leave_valid,
    input  wire leave_t        leave,
    output logic               leave_take,

    output logic [ADDR_W-1:0]  read_addr,
    input  wire  [DATA_W-1:0]  read_data,
    output block_t             read_block,
    input  wire block_t        read_follow,
    input  wire                read_end,
    output block_t             read_segment,
    output logic               read_next_take,
    input  wire block_t        read_next,

    output logic               free_valid,
    output block_t             free_block,

    output logic               user_write,
    output rx_user_t           user,
    output logic               out_valid,
    output logic [DATA_W-1:0]  out_data,
    output logic [COUNT_W-1:0] out_start,
    output logic [COUNT_W-1:0] out_count,
    output logic               out_last,
    // A word has left the FIFO.
    input  wire                credit
);
  localparam int K      = DATA_W / 8;
  localparam int WORD_W = $clog2(BLOCK_WORDS);
  localparam int ID_W   = $clog2(BLOCKS);
  localparam int LANES  = K / 2;
  // The last byte of the longest headers: two tags, IPv6, TCP with timestamps.
  localparam int HEADER = 93;

  // What follows from a frame's description, in two steps, so that it is ready when the frame before ends. The second step is
  // filled again a clock after it has been taken: what is wide and not needed at once is taken in that clock (loaded).
  logic        sums_valid, ready_valid, ready_ends, ready_more, load, loaded;
  leave_t      sums, ready;
  logic [16:0] sums_total, sums_first, ready_first, ready_rest;
  logic [16:0] sums_csum;
  logic [15:0] ready_ip_len, ready_ip_csum;
  wire         sums_take = sums_valid && !ready_valid;

  assign leave_take = leave_valid && (!sums_valid || sums_take);

  wire [15:0] folded = sums_csum[15:0] + 16'(sums_csum[16]);

  always_ff @(posedge clk) begin
    if (leave_take) begin
      sums       <= leave;
      sums_total <= 17'(leave.len) + (leave.joined ? 17'(ip_offset(leave.tags)) : 17'd0);
      sums_first <= leave.joined ? 17'(leave.hdr_len) + 17'(leave.seg_size) : 17'(leave.len);
      sums_csum  <= 17'(leave.csum_part) + 17'(leave.len);
    end
    sums_valid <= leave_take || (sums_valid && !sums_take);
    if (sums_take) begin
      ready         <= sums;
      ready_first   <= sums_first;
      ready_ends    <= sums_first <= 17'(K);
      ready_rest    <= sums_total - sums_first;
      // One that is joined has more than its first segment, any other has no more.
      ready_more    <= sums.joined;
      ready_ip_len  <= sums.v6 ? sums.len - 16'd40 : sums.len;
      ready_ip_csum <= ~folded;
    end
    ready_valid <= sums_take || (ready_valid && !load);
    loaded      <= load;
    if (rst) begin
      sums_valid  <= 1'b0;
      ready_valid <= 1'b0;
      loaded      <= 1'b0;
    end
  end

  // The walk along the chain. A link is known three clocks after its block has been entered.
  logic              active;
  logic              walking;            // over blocks behind the run, which hold padding
  logic              asking;             // active and not walking
  logic              joined, v_rest, rest_more, is_first, asked_first;
  logic              run_ends;           // with the word that is asked for next
  logic              seg_ends, rest_ends; // the next run, of a whole segment or of the rest, does with its first word
  block_t            block, head;
  logic [WORD_W-1:0] word;
  logic              block_ends;         // with that word
  logic [COUNT_W-1:0] start;
  logic [16:0]       run, rest, rest_less;
  logic [6:0]        hdr_len;
  logic [15:0]       seg_size;
  logic [4:0]        index;              // of the word in the first segment, saturating
  logic              in_first;
  patch_t            patch;
  logic [2:0]        link_age;           // clocks since the block was entered
  logic              head_new;           // the link to the next segment has not been taken
  logic              links;              // its links are known; that to the next segment as well, as no head is younger than its block
  logic [4:0]        credits;
  logic              has_credit;

  wire [COUNT_W-1:0] lanes     = COUNT_W'(K) - start;
  wire [COUNT_W-1:0] payload_lanes = COUNT_W'(K) - COUNT_W'(hdr_len % 7'(K));
  wire [WORD_W-1:0]  payload_word  = WORD_W'(hdr_len / 7'(K));
  // What is asked for in this clock, unless a link is needed that is not known yet.
  wire               ask       = asking && has_credit && (links || !(run_ends ? joined : block_ends));
  wire               run_done  = asking && has_credit && run_ends;   // if it needs no link, or has it
  wire               walk      = walking && links;
  // A run and all blocks of its segment are over. Written so that few levels of logic are between it and the registers.
  wire               end_known = links && read_end;
  wire               over      = (run_done && (!joined || end_known)) || (walking && end_known);
  wire               frame_over = over && !v_rest;
  // It is the block's last word that is asked for, or the block is walked over: another one follows, whichever.
  wire               left      = (ask && (run_ends || block_ends)) || walk;
  // What the next frame begins with is taken whether it is there or not: nothing is asked for until it is.
  wire               fresh     = !active || frame_over;
  wire [4:0]         credits_then = credits + 5'(credit) - 5'(ask);

  assign load         = ready_valid && fresh;
  assign read_block   = block;
  assign read_segment = head;
  // The link is kept: the segment's first block is another frame's, and has another link, before the segment has been read.
  assign read_next_take = head_new && link_age[2];

  always_ff @(posedge clk) begin
    link_age <= {link_age[1:0], 1'b0};
    if (link_age[2]) begin
      links    <= 1'b1;
      head_new <= 1'b0;
    end
    if (over || !active) head_new <= 1'b1;
    // What comes behind the rest's next run.
    rest_more  <= rest > 17'(seg_size);
    rest_less  <= rest - 17'(seg_size);
    seg_ends   <= 17'(seg_size) <= 17'(payload_lanes);
    rest_ends  <= rest <= 17'(payload_lanes);
    credits    <= credits_then;
    has_credit <= credits_then != '0;

    if (ask) begin
      is_first   <= 1'b0;
      run        <= run - 17'(lanes);
      run_ends   <= run <= 17'(lanes) + 17'(K);
      start      <= '0;
      word       <= word + 1'b1;
      block_ends <= word == WORD_W'(BLOCK_WORDS - 2);
      index      <= index + 5'(index != '1);
    end
    if (run_done && joined && links && !read_end) begin
      walking <= 1'b1;
      asking  <= 1'b0;
    end
    if (left) block <= read_follow;
    if (over) begin
      walking <= 1'b0;
      asking  <= 1'b1;
      // The next segment's payload.
      in_first   <= 1'b0;
      head       <= read_next;
      block      <= read_next;
      word       <= payload_word;
      block_ends <= payload_word == WORD_W'(BLOCK_WORDS - 1);
      start      <= COUNT_W'(hdr_len % 7'(K));
      run        <= rest_more ? 17'(seg_size) : rest;
      run_ends   <= rest_more ? seg_ends : rest_ends;
      rest       <= rest_more ? rest_less : 17'd0;
      v_rest     <= rest_more;
    end
    if (fresh) begin
      active     <= ready_valid;
      asking     <= ready_valid;
      is_first   <= 1'b1;
      joined     <= ready.joined;
      block      <= ready.head;
      head       <= ready.head;
      word       <= '0;
      block_ends <= 1'b0;
      start      <= '0;
      run        <= ready_first;
      run_ends   <= ready_ends;
      v_rest     <= ready_more;
      index      <= '0;
      in_first   <= ready.joined;
    end
    if (left || !active) begin
      link_age <= 3'b001;
      links    <= 1'b0;
    end
    // Needed by a word after it has been asked for, or by a joined frame, which does not get past its first links before.
    if (loaded) begin
      user               <= ready.user;
      rest               <= ready_rest;
      hdr_len            <= ready.hdr_len;
      seg_size           <= ready.seg_size;
      patch.v6           <= ready.v6;
      patch.tags         <= ready.tags;
      patch.stamped      <= ready.stamped;
      patch.ip_len       <= ready_ip_len;
      patch.ip_csum      <= ready_ip_csum;
      patch.ack          <= ready.ack;
      patch.offset_flags <= {ready.stamped ? 4'd8 : 4'd5, ready.reserved, ready.flags};
      patch.window       <= ready.window;
      patch.stamps       <= ready.stamps;
    end
    asked_first <= ask && is_first;
    if (rst) begin
      active      <= 1'b0;
      walking     <= 1'b0;
      asking      <= 1'b0;
      asked_first <= 1'b0;
      credits     <= 5'(CREDITS);
      has_credit  <= 1'b1;
    end
  end

  assign user_write = asked_first;

  // A block is free when its last word has been asked for, or it has been walked over.
  always_ff @(posedge clk) begin
    free_valid <= !rst && left;
    free_block <= block;
  end

  // What goes with the word through the memory. The fields do not: those of a joined frame stay as they are until its second
  // segment's first link is known, and by then all words of its headers have come out.
  typedef struct packed {
    logic               valid;
    logic [COUNT_W-1:0] start;
    logic [COUNT_W-1:0] count;
    logic               last;
  } beside_t;
  beside_t asked, fetched, near, far, caught;
  logic              asked_headers, fetched_headers;
  logic [4:0]        asked_index;
  // The IP header begins in an odd lane, whatever tags there are. So of its words of 32 bits the first half is always in an odd
  // lane and the second in an even one. This is the number of that whose second half is in lane 0.
  logic signed [6:0] fetched_at;

  always_ff @(posedge clk) begin
    read_addr       <= {block[ID_W-1:0], word};
    asked.valid     <= ask && !rst;
    asked.start     <= start;
    asked.count     <= run_ends ? run[COUNT_W-1:0] : lanes;
    asked.last      <= run_ends && !v_rest;
    asked_headers   <= in_first && index <= 5'(HEADER / K);
    asked_index     <= index;
    fetched         <= asked;
    fetched_headers <= asked_headers;
    fetched_at      <= 7'(10'(asked_index) * 10'(LANES / 2)) - 7'(ip_offset(patch.tags) >> 2) - 7'd1;
    near            <= fetched;
    far             <= near;
    caught          <= far;
    if (rst) begin
      fetched.valid <= 1'b0;
      near.valid    <= 1'b0;
      far.valid     <= 1'b0;
      caught.valid  <= 1'b0;
    end
  end

  // Fields by halfword: which one each lane takes is found while the memory answers, and then its value.
  localparam int FIELDS = 6;
  logic [LANES-1:0][FIELDS-1:0] choice;
  logic [LANES-1:0][15:0]       field, field_q;
  logic [LANES-1:0]             has_field, has_field_q;

  // Which of the fields is the second (or first) half of this word of the IP header.
  function automatic logic [FIELDS-1:0] field_at(input logic signed [6:0] at, input logic second, input logic given,
                                                 input logic v6, input logic stamped);
    automatic logic signed [6:0] tcp = at - (v6 ? 7'sd10 : 7'sd5);
    automatic logic [FIELDS-1:0] found = '0;
    if (given) begin
      found[0] = second ? !v6 && at == 7'sd0 : v6 && at == 7'sd1;
      found[1] = second && !v6 && at == 7'sd2;
      found[2] = tcp == 7'sd2;
      found[3] = tcp == 7'sd3;
      found[4] = stamped && tcp == 7'sd6;
      found[5] = stamped && tcp == 7'sd7;
    end
    return found;
  endfunction

  logic [1:0][FIELDS-1:0][15:0] values;
  always_comb begin
    for (int half = 0; half < 2; half++) begin
      values[half][0] = patch.ip_len;
      values[half][1] = patch.ip_csum;
    end
    {values[0][2], values[1][2]} = patch.ack;
    {values[0][3], values[1][3]} = {patch.offset_flags, patch.window};
    {values[0][4], values[1][4], values[0][5], values[1][5]} = patch.stamps;
  end

  always_ff @(posedge clk) begin
    for (int lane = 0; lane < LANES; lane++) begin
      automatic logic [15:0] value = '0;
      for (int i = 0; i < FIELDS; i++) if (choice[lane][i]) value |= values[1-lane%2][i];
      choice[lane]    <= field_at(fetched_at + 7'((lane + 1) / 2), lane % 2 == 0, fetched_headers, patch.v6, patch.stamped);
      field[lane]     <= {value[7:0], value[15:8]};
      has_field[lane] <= choice[lane] != '0;
    end
    field_q     <= field;
    has_field_q <= has_field;
  end

  logic [DATA_W-1:0] patched;
  always_comb begin
    for (int lane = 0; lane < LANES; lane++) begin
      patched[16*lane+:16] = has_field_q[lane] ? field_q[lane] : read_data[16*lane+:16];
    end
  end

  always_ff @(posedge clk) begin
    out_valid <= caught.valid && !rst;
    out_data  <= patched;
    out_start <= caught.start;
    out_count <= caught.count;
    out_last  <= caught.last;
  end

  wire unused = &{1'b0, block, ready};
endmodule

`default_nettype wire
