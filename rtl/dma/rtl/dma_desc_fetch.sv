// Reads the descriptors of one direction ahead of their use: a short list for each queue.
//
// Descriptors are chained, and a chain can only be followed at the pace of memory's latency. So the address of the next one is
// guessed before the last one has arrived, and what comes back is kept only if the chain says the same:
//
//   - the next one lies 64 bytes further, if that is not beyond the tail, or was within the ring on an earlier lap;
//   - the descriptor where the chain jumps (a ring's last one) is remembered, and where it jumps to.
//
// Nothing is read that software has not handed over, unless a chain jumps over a gap between here and the tail; what is read from
// such a gap is thrown away. After a wrong guess the queue waits until its reads have come back, then follows the chain.
//
//   issue, a descriptor in six clocks:   PICK (a queue) -> READ -> LOOK (compare with tail and jump) -> SEND -> NOTE -> REST
//   response, in five:                   TAKE -> COMPARE -> CHECK (against the chain) -> DECIDE -> KEEP or throw away
`default_nettype none

module dma_desc_fetch #(
    parameter int QUEUES  = 4,
    // Descriptors read ahead for each queue, a power of two.
    parameter int DEPTH   = 8,
    parameter int ADDR_W  = 40,
    // What is kept of a descriptor.
    parameter int ENTRY_W = 64,
    localparam int QUEUE_W = QUEUES > 1 ? $clog2(QUEUES) : 1,
    localparam int LINE_W  = ADDR_W - 6
) (
    input  wire                clk,
    input  wire                rst,

    // From the registers. `run` also stays up while a frame is being worked on, and no pop comes after it has fallen.
    input  wire  [QUEUES-1:0]  run,
    input  wire  [QUEUES-1:0]  forget,        // the queue is being reset
    input  wire  [QUEUE_W-1:0] reg_queue,
    input  wire                cur_low_write,
    input  wire                cur_high_write,
    input  wire                tail_low_write,
    input  wire                tail_high_write,
    input  wire  [31:0]        reg_data,
    output logic [ADDR_W-1:0]  reg_cur,       // of reg_queue, a clock later
    output logic [ADDR_W-1:0]  reg_tail,
    output logic [QUEUES-1:0]  drained,       // nothing kept, nothing on its way
    output logic [QUEUES-1:0]  starved,       // nothing kept, nothing on its way, nothing left to read

    // Reads of descriptors, answered in order.
    output logic               request_valid,
    input  wire                request_ready,
    output logic [QUEUE_W-1:0] request_queue,
    output logic [LINE_W-1:0]  request_line,
    input  wire                response_valid,
    output logic               response_ready,
    input  wire  [QUEUE_W-1:0] response_queue,
    input  wire  [LINE_W-1:0]  response_line,
    input  wire  [LINE_W-1:0]  response_next,
    input  wire                response_error,
    input  wire  [ENTRY_W-1:0] response_entry,

    // The oldest descriptor of the queue that is looked at, a clock later.
    input  wire  [QUEUE_W-1:0] look_queue,
    output logic [ENTRY_W-1:0] look_entry,
    output logic [LINE_W-1:0]  look_line,
    output logic               look_available,
    output logic [QUEUES-1:0]  available,
    input  wire                pop,
    input  wire  [QUEUE_W-1:0] pop_queue
);
  localparam int PTR_W   = $clog2(DEPTH);
  localparam int COUNT_W = PTR_W + 1;

  if (QUEUES < 1 || QUEUES > 8) begin : gen_bad_queues
    $error("dma_desc_fetch: QUEUES must be 1 to 8");
  end
  if (DEPTH < 2 || (DEPTH & (DEPTH - 1)) != 0) begin : gen_bad_depth
    $error("dma_desc_fetch: DEPTH must be a power of two, at least 2");
  end

  // Addresses in multiples of 64. All but one have a single writer, so that they become distributed memory.
  logic [LINE_W-1:0]    chain_line [QUEUES];  // where the chain goes on behind what was kept: CURDESC while halted
  logic [LINE_W-1:0]    guess_line [QUEUES];  // behind what was read last: read next, unless the chain says it
  logic [QUEUES-1:0]    by_chain;             // read next where the chain goes on
  logic [25:0]          tail_line_low  [QUEUES];
  logic [LINE_W-27:0]   tail_line_high [QUEUES];
  logic [LINE_W-27:0]   tail_next_high [QUEUES];  // as written: part of the tail from the doorbell on
  logic [QUEUES-1:0]    tail_low_known, tail_high_known;  // written since the reset; 0 otherwise
  logic [LINE_W-1:0]    jump_from  [QUEUES];
  logic [LINE_W-1:0]    jump_to    [QUEUES];

  logic [QUEUES-1:0] alive, active, rang, guessed, known, wrong;
  logic [QUEUES-1:0] lost;                    // nobody knows where the chain goes on: nothing is read before a reset
  logic [COUNT_W-1:0] kept [QUEUES];
  logic [COUNT_W-1:0] sent [QUEUES];
  logic [PTR_W-1:0] put_at [QUEUES];
  logic [PTR_W-1:0] get_at [QUEUES];

  // ---------------------------------------------------------------- what is kept
  logic [ENTRY_W-1:0] entries [QUEUES*DEPTH];
  logic [LINE_W-1:0]  lines   [QUEUES*DEPTH];

  function automatic logic [$clog2(QUEUES*DEPTH)-1:0] place(logic [QUEUE_W-1:0] queue, logic [PTR_W-1:0] at);
    if (QUEUES > 1) return ($clog2(QUEUES * DEPTH))'({queue, at});
    else return ($clog2(QUEUES * DEPTH))'(at);
  endfunction

  logic [$clog2(QUEUES*DEPTH)-1:0] look_at;
  always_ff @(posedge clk) begin
    look_at        <= place(look_queue, get_at[look_queue]);
    look_available <= kept[look_queue] != '0 && alive[look_queue];
  end
  assign look_entry = entries[look_at];
  assign look_line  = lines[look_at];

  // ---------------------------------------------------------------- issue
  typedef enum logic [2:0] {PICK, READ, LOOK, SEND, NOTE, REST} issue_t;
  issue_t issue;
  logic [QUEUES-1:0] eligible, wants;
  logic [QUEUE_W-1:0] turn, chosen, queue;
  logic any_chosen;
  logic [LINE_W-1:0] line, next_line;
  logic is_tail, can_guess, jumps;

  typedef enum logic [2:0] {TAKE, COMPARE, CHECK, DECIDE, KEEP} answer_t;
  answer_t answer;
  logic    back_error;                        // what it is about could not be read

  // Counted a clock ahead. By PICK everything that NOTE changed has been seen (REST); what a response changed a clock ago may not
  // have been: a read more after a wrong guess comes back as one of those behind it. None is picked while a response is decided
  // on, so that it is clear whether that was the only one under way; nor while one that could not be read is kept, as `lost` comes
  // behind that.
  always_ff @(posedge clk) begin
    for (int q = 0; q < QUEUES; q++) begin
      eligible[q] <= !wrong[q] && (guessed[q] || sent[q] == '0) && (kept[q] + sent[q]) < COUNT_W'(DEPTH)
          && answer != COMPARE && answer != CHECK && !(answer == DECIDE && back_error);
    end
  end
  assign wants = eligible & alive & run & active & ~lost;

  dma_round_robin #(
      .COUNT(QUEUES)
  ) arbiter (
      .last(turn),
      .wants(wants),
      .any(any_chosen),
      .chosen(chosen)
  );

  // While the issue is in LOOK, about `queue`. A tail that was written since READ has set `rang`.
  logic [LINE_W-1:0] look_tail, look_from, look_to;
  logic              look_known;
  wire               at_jump   = look_known && line == look_from;
  wire               ahead     = look_tail > line || (look_known && look_from > line);

  assign request_queue = queue;
  assign request_line  = line;
  assign request_valid = issue == SEND;

  // ---------------------------------------------------------------- response
  logic [QUEUE_W-1:0] back_queue;
  logic [LINE_W-1:0] back_line, back_next;
  logic [ENTRY_W-1:0] back_entry;
  logic [LINE_W-1:0] expected, behind;
  logic fits, in_a_row, keeps, only;
  // In KEEP, of one queue: it is kept, or not.
  logic [QUEUES-1:0] keep, miss;

  assign response_ready = answer == TAKE;

  always_ff @(posedge clk) begin
    if (keeps) begin
      entries[place(back_queue, put_at[back_queue])] <= back_entry;
      lines[place(back_queue, put_at[back_queue])]   <= back_line;
    end
    if (keeps && !in_a_row) begin
      jump_from[back_queue] <= back_line;
      jump_to[back_queue]   <= back_next;
    end
    if (issue == NOTE) guess_line[queue] <= next_line;
  end

  // ---------------------------------------------------------------- registers' side
  logic [QUEUES-1:0] cur_low, cur_high, tail_low, tail_high;

  function automatic logic [LINE_W-1:0] tail_of(logic [QUEUE_W-1:0] whose);
    return {tail_line_high[whose], tail_line_low[whose]} & {LINE_W{tail_low_known[whose]}};
  endfunction
  function automatic logic [LINE_W-27:0] tail_high_of(logic [QUEUE_W-1:0] whose);
    return tail_next_high[whose] & {(LINE_W-26){tail_high_known[whose]}};
  endfunction
  // A pop is seen in `available` two clocks later.
  always_ff @(posedge clk) begin
    for (int q = 0; q < QUEUES; q++) begin
      available[q] <= kept[q] != '0 && alive[q];
      starved[q]   <= kept[q] == '0 && sent[q] == '0 && !(active[q] && !lost[q]);
    end
  end

  always_comb begin
    for (int q = 0; q < QUEUES; q++) begin
      drained[q]   = kept[q] == '0 && sent[q] == '0 && !alive[q];
    end
  end

  always_ff @(posedge clk) begin
    reg_cur  <= {chain_line[reg_queue], 6'd0};
    reg_tail <= {tail_high_of(reg_queue), tail_line_low[reg_queue] & {26{tail_low_known[reg_queue]}}, 6'd0};
    // Both halves at once: a queue that runs must not see one of them alone.
    if (|tail_low) tail_line_low[reg_queue] <= reg_data[31:6];
    if (|tail_low) tail_line_high[reg_queue] <= tail_high_of(reg_queue);
    if (|tail_high) tail_next_high[reg_queue] <= reg_data[ADDR_W-33:0];
  end

  // A queue that has stopped with descriptors kept: its chain goes on at the oldest of them. One queue stops at a time: chosen,
  // then its oldest entry found and read (what was decided on before it stopped has been kept by then), then it retreats.
  logic [QUEUES-1:0] giving_up;
  logic [QUEUE_W-1:0] giver;
  always_comb begin
    giver = '0;
    for (int q = QUEUES - 1; q >= 0; q--) begin
      giving_up[q] = alive[q] && !run[q];
      if (giving_up[q]) giver = QUEUE_W'(q);
    end
  end
  logic               gives_up, found;
  logic [QUEUES-1:0]  retreat, goes_back, starts;
  logic [$clog2(QUEUES*DEPTH)-1:0] retreat_at;
  logic [QUEUE_W-1:0] retreat_queue;
  logic [LINE_W-1:0]  retreat_line;

  always_ff @(posedge clk) begin
    // Issue.
    case (issue)
      PICK: begin
        queue <= chosen;
        turn  <= any_chosen ? chosen : turn;
        if (any_chosen) issue <= READ;
      end
      READ: begin
        line       <= by_chain[queue] ? chain_line[queue] : guess_line[queue];
        look_tail  <= tail_of(queue);
        look_from  <= jump_from[queue];
        look_to    <= jump_to[queue];
        look_known <= known[queue];
        issue      <= LOOK;
      end
      LOOK: begin
        is_tail   <= line == look_tail;
        can_guess <= at_jump || ahead;
        jumps     <= at_jump;
        next_line <= line + 1'b1;
        issue     <= SEND;
      end
      SEND: if (request_ready) begin
        if (jumps) next_line <= look_to;
        issue <= NOTE;
      end
      NOTE:    issue <= REST;
      default: issue <= PICK;
    endcase

    // Response.
    keeps <= 1'b0;
    keep  <= '0;
    miss  <= '0;
    case (answer)
      TAKE: begin
        back_queue <= response_queue;
        back_line  <= response_line;
        back_next  <= response_next;
        back_entry <= response_entry;
        back_error <= response_error;
        if (response_valid) answer <= COMPARE;
      end
      COMPARE: begin
        expected <= chain_line[back_queue];
        behind   <= back_line + 1'b1;
        answer   <= CHECK;
      end
      CHECK: begin
        fits     <= back_line == expected;
        in_a_row <= back_next == behind;
        answer   <= DECIDE;
      end
      DECIDE: begin
        only <= sent[back_queue] == COUNT_W'(1);
        if (fits && !wrong[back_queue] && alive[back_queue] && run[back_queue]) begin
          keeps            <= 1'b1;
          keep[back_queue] <= 1'b1;
        end else begin
          miss[back_queue] <= 1'b1;
        end
        answer <= KEEP;
      end
      default: answer <= TAKE;
    endcase

    // Addresses: issue first, so that what a response knows wins.
    if (issue == NOTE) begin
      by_chain[queue] <= 1'b0;
      guessed[queue]  <= can_guess;
      if (is_tail && !rang[queue]) active[queue] <= 1'b0;
    end
    for (int q = 0; q < QUEUES; q++) begin
      if (keep[q]) begin
        chain_line[q] <= back_next;
        if (!in_a_row) known[q] <= 1'b1;
        if (only) by_chain[q] <= 1'b1;
        // Where an unreadable descriptor leads nobody knows.
        if (back_error) begin
          active[q] <= 1'b0;
          lost[q]   <= 1'b1;
        end
      end
      if (miss[q] && alive[q]) begin
        // A wrong guess, or one of those behind it: there was something to read behind what was kept.
        wrong[q] <= !only;
        if (only) begin
          by_chain[q] <= 1'b1;
          active[q]   <= 1'b1;
        end
      end
    end

    // Counts.
    for (int q = 0; q < QUEUES; q++) begin
      sent[q] <= sent[q] + COUNT_W'(issue == READ && queue == QUEUE_W'(q))
          - COUNT_W'(keep[q] || miss[q]);
      kept[q] <= kept[q] + COUNT_W'(keep[q]) - COUNT_W'(pop && pop_queue == QUEUE_W'(q));
      if (keep[q]) put_at[q] <= put_at[q] + 1'b1;
      if (pop && pop_queue == QUEUE_W'(q)) get_at[q] <= get_at[q] + 1'b1;
      if (issue == READ && queue == QUEUE_W'(q)) rang[q] <= 1'b0;
    end

    // Start and stop.
    for (int q = 0; q < QUEUES; q++) begin
      starts[q] <= !alive[q] && run[q] && sent[q] == '0 && kept[q] == '0 && !starts[q];
      if (starts[q]) begin
        alive[q]    <= 1'b1;
        wrong[q]    <= 1'b0;
        lost[q]     <= 1'b0;
        guessed[q]  <= 1'b0;
        put_at[q]   <= '0;
        get_at[q]   <= '0;
        by_chain[q] <= 1'b1;
      end
    end
    gives_up <= |giving_up && !gives_up && !found && retreat == '0;
    if (!gives_up && !found) retreat_queue <= giver;
    found        <= gives_up;
    retreat_at   <= place(retreat_queue, get_at[retreat_queue]);
    retreat_line <= lines[retreat_at];
    for (int q = 0; q < QUEUES; q++) begin
      retreat[q]  <= found && retreat_queue == QUEUE_W'(q);
      goes_back[q] <= found && retreat_queue == QUEUE_W'(q) && kept[q] != '0;
      if (goes_back[q]) chain_line[q] <= retreat_line;
      if (retreat[q]) begin
        kept[q]   <= '0;
        alive[q]  <= 1'b0;
        active[q] <= 1'b0;
        rang[q]   <= 1'b0;
      end
    end

    // Registers.
    for (int q = 0; q < QUEUES; q++) begin
      // A clock late; `reg_data` is still there.
      cur_low[q]   <= cur_low_write && reg_queue == QUEUE_W'(q) && !rst;
      cur_high[q]  <= cur_high_write && reg_queue == QUEUE_W'(q) && !rst;
      tail_low[q]  <= tail_low_write && reg_queue == QUEUE_W'(q) && !rst;
      tail_high[q] <= tail_high_write && reg_queue == QUEUE_W'(q) && !rst;
      if (cur_low[q]) chain_line[q][25:0] <= reg_data[31:6];
      if (cur_high[q]) chain_line[q][LINE_W-1:26] <= reg_data[ADDR_W-33:0];
      if (cur_low[q] || cur_high[q]) known[q] <= 1'b0;
      if (tail_low[q]) tail_low_known[q] <= 1'b1;
      if (tail_high[q]) tail_high_known[q] <= 1'b1;
      if (tail_low[q] && run[q]) begin
        active[q] <= 1'b1;
        rang[q]   <= 1'b1;
      end
      if (forget[q]) known[q] <= 1'b0;
    end

    if (rst) begin
      issue   <= PICK;
      answer  <= TAKE;
      turn    <= '0;
      alive   <= '0;
      active  <= '0;
      rang    <= '0;
      guessed <= '0;
      known   <= '0;
      wrong   <= '0;
      lost    <= '0;
      gives_up <= 1'b0;
      found    <= 1'b0;
      retreat  <= '0;
      goes_back <= '0;
      starts   <= '0;
      keeps    <= 1'b0;
      keep     <= '0;
      miss     <= '0;
      for (int q = 0; q < QUEUES; q++) begin
        kept[q]   <= '0;
        sent[q]   <= '0;
        put_at[q] <= '0;
        get_at[q] <= '0;
        chain_line[q] <= '0;
      end
      tail_low_known  <= '0;
      tail_high_known <= '0;
    end
  end
endmodule

`default_nettype wire
