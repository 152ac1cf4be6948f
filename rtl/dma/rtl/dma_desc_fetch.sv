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
//   issue, a descriptor in four clocks:   PICK (a queue) -> READ -> LOOK (compare with tail and jump) -> SEND
//   response, in three:                   taken -> compared with the chain -> kept or thrown away
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

    // From the registers. `run` also stays up while a frame is being worked on.
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

    // The oldest descriptor of the queue that is looked at.
    input  wire  [QUEUE_W-1:0] look_queue,
    output logic [ENTRY_W-1:0] look_entry,
    output logic [LINE_W-1:0]  look_line,
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

  // Addresses in multiples of 64.
  logic [LINE_W-1:0] fetch_line [QUEUES];  // read next, as far as is known
  logic [LINE_W-1:0] chain_line [QUEUES];  // where the chain goes on behind what was kept: CURDESC while halted
  logic [LINE_W-1:0] tail_line  [QUEUES];
  logic [LINE_W-1:0] jump_from  [QUEUES];
  logic [LINE_W-1:0] jump_to    [QUEUES];

  logic [QUEUES-1:0] alive, active, rang, guessed, known, wrong;
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

  assign look_entry = entries[place(look_queue, get_at[look_queue])];
  assign look_line  = lines[place(look_queue, get_at[look_queue])];

  // ---------------------------------------------------------------- issue
  typedef enum logic [1:0] {PICK, READ, LOOK, SEND} issue_t;
  issue_t issue;
  logic [QUEUES-1:0] eligible;
  logic [QUEUE_W-1:0] turn, chosen, queue;
  logic any_chosen;
  logic [LINE_W-1:0] line, next_line;
  logic is_tail, can_guess;

  always_comb begin
    for (int q = 0; q < QUEUES; q++) begin
      eligible[q] = alive[q] && run[q] && active[q] && !wrong[q] && (guessed[q] || sent[q] == '0)
          && (kept[q] + sent[q]) < COUNT_W'(DEPTH);
    end
  end

  dma_round_robin #(
      .COUNT(QUEUES)
  ) arbiter (
      .last(turn),
      .wants(eligible),
      .any(any_chosen),
      .chosen(chosen)
  );

  // While the issue is in LOOK, about `queue`.
  wire [LINE_W-1:0] look_tail = tail_line[queue];
  wire [LINE_W-1:0] look_from = jump_from[queue];
  wire              at_jump   = known[queue] && line == look_from;
  wire              ahead     = look_tail > line || (known[queue] && look_from > line);

  assign request_queue = queue;
  assign request_line  = line;
  assign request_valid = issue == SEND;
  wire   sending       = request_valid && request_ready;

  // ---------------------------------------------------------------- response
  typedef enum logic [1:0] {TAKE, COMPARE, KEEP} answer_t;
  answer_t answer;
  logic [QUEUE_W-1:0] back_queue;
  logic [LINE_W-1:0] back_line, back_next;
  logic [ENTRY_W-1:0] back_entry;
  logic back_error, fits, in_a_row;

  assign response_ready = answer == TAKE;
  wire   settle         = answer == KEEP;
  wire   keep           = settle && fits && !wrong[back_queue] && alive[back_queue] && run[back_queue];
  wire   only           = sent[back_queue] == COUNT_W'(1);

  always_ff @(posedge clk) begin
    if (keep) begin
      entries[place(back_queue, put_at[back_queue])] <= back_entry;
      lines[place(back_queue, put_at[back_queue])]   <= back_line;
    end
  end

  // ---------------------------------------------------------------- registers' side
  wire [LINE_W-1:0] low_line_cur   = {chain_line[reg_queue][LINE_W-1:26], reg_data[31:6]};
  wire [LINE_W-1:0] low_line_tail  = {tail_line[reg_queue][LINE_W-1:26], reg_data[31:6]};

  always_comb begin
    for (int q = 0; q < QUEUES; q++) begin
      available[q] = kept[q] != '0 && alive[q];
      drained[q]   = kept[q] == '0 && sent[q] == '0 && !alive[q];
      starved[q]   = kept[q] == '0 && sent[q] == '0 && !active[q];
    end
  end

  always_ff @(posedge clk) begin
    reg_cur  <= {chain_line[reg_queue], 6'd0};
    reg_tail <= {tail_line[reg_queue], 6'd0};
  end

  // A queue that has stopped with descriptors kept: its chain goes on at the oldest of them.
  logic [QUEUES-1:0] giving_up;
  logic [QUEUE_W-1:0] giver;
  always_comb begin
    giver = '0;
    for (int q = QUEUES - 1; q >= 0; q--) begin
      giving_up[q] = alive[q] && !run[q];
      if (giving_up[q]) giver = QUEUE_W'(q);
    end
  end
  logic               retreat;
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
        line  <= fetch_line[queue];
        issue <= LOOK;
      end
      LOOK: begin
        is_tail   <= line == look_tail;
        can_guess <= at_jump || ahead;
        next_line <= at_jump ? jump_to[queue] : line + 1'b1;
        issue     <= SEND;
      end
      default: if (request_ready) issue <= PICK;
    endcase

    // Response.
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
        fits     <= back_line == chain_line[back_queue];
        in_a_row <= back_next == back_line + 1'b1;
        answer   <= KEEP;
      end
      default: answer <= TAKE;
    endcase

    // Addresses: issue first, so that what a response knows wins.
    if (sending) begin
      fetch_line[queue] <= next_line;
      guessed[queue]    <= can_guess;
      if (is_tail && !rang[queue]) active[queue] <= 1'b0;
    end
    if (settle) begin
      if (keep) begin
        chain_line[back_queue] <= back_next;
        if (!in_a_row) begin
          jump_from[back_queue] <= back_line;
          jump_to[back_queue]   <= back_next;
          known[back_queue]     <= 1'b1;
        end
        if (only) fetch_line[back_queue] <= back_next;
        // Where an unreadable descriptor leads nobody knows.
        if (back_error) active[back_queue] <= 1'b0;
      end else if (alive[back_queue]) begin
        // A wrong guess, or one of those behind it: there was something to read behind what was kept.
        wrong[back_queue] <= !only;
        if (only) begin
          fetch_line[back_queue] <= chain_line[back_queue];
          active[back_queue]     <= 1'b1;
        end
      end
    end

    // Counts.
    for (int q = 0; q < QUEUES; q++) begin
      sent[q] <= sent[q] + COUNT_W'(issue == PICK && any_chosen && chosen == QUEUE_W'(q))
          - COUNT_W'(settle && back_queue == QUEUE_W'(q));
      kept[q] <= kept[q] + COUNT_W'(keep && back_queue == QUEUE_W'(q)) - COUNT_W'(pop && pop_queue == QUEUE_W'(q));
      if (keep && back_queue == QUEUE_W'(q)) put_at[q] <= put_at[q] + 1'b1;
      if (pop && pop_queue == QUEUE_W'(q)) get_at[q] <= get_at[q] + 1'b1;
      if (issue == PICK && any_chosen && chosen == QUEUE_W'(q)) rang[q] <= 1'b0;
    end

    // Start and stop.
    retreat <= 1'b0;
    for (int q = 0; q < QUEUES; q++) begin
      if (!alive[q] && run[q] && sent[q] == '0 && kept[q] == '0 && !retreat) begin
        alive[q]      <= 1'b1;
        wrong[q]      <= 1'b0;
        guessed[q]    <= 1'b0;
        put_at[q]     <= '0;
        get_at[q]     <= '0;
        fetch_line[q] <= chain_line[q];
      end
    end
    // One queue stops at a time: the entry that is looked at for it is the oldest one.
    if (|giving_up && !retreat && !pop) begin
      retreat_queue <= giver;
      retreat_line  <= lines[place(giver, get_at[giver])];
      retreat       <= 1'b1;
    end
    if (retreat) begin
      if (kept[retreat_queue] != '0) chain_line[retreat_queue] <= retreat_line;
      kept[retreat_queue]   <= '0;
      alive[retreat_queue]  <= 1'b0;
      active[retreat_queue] <= 1'b0;
      rang[retreat_queue]   <= 1'b0;
    end

    // Registers.
    if (cur_low_write) begin
      chain_line[reg_queue] <= low_line_cur;
      known[reg_queue]      <= 1'b0;
    end
    if (cur_high_write) begin
      chain_line[reg_queue] <= {reg_data[ADDR_W-33:0], chain_line[reg_queue][25:0]};
      known[reg_queue]      <= 1'b0;
    end
    if (tail_low_write) begin
      tail_line[reg_queue] <= low_line_tail;
      if (run[reg_queue] && !giving_up[reg_queue]) begin
        active[reg_queue] <= 1'b1;
        rang[reg_queue]   <= 1'b1;
      end
    end
    if (tail_high_write) tail_line[reg_queue] <= {reg_data[ADDR_W-33:0], tail_line[reg_queue][25:0]};
    for (int q = 0; q < QUEUES; q++) if (forget[q]) known[q] <= 1'b0;

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
      retreat <= 1'b0;
      for (int q = 0; q < QUEUES; q++) begin
        kept[q]   <= '0;
        sent[q]   <= '0;
        put_at[q] <= '0;
        get_at[q] <= '0;
        chain_line[q] <= '0;
        tail_line[q]  <= '0;
      end
    end
  end
endmodule

`default_nettype wire
