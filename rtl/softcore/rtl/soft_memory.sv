// Memory as a controller shows it: one beat of 64 bits in each clock for all who ask together, the lowest number first. What is
// read comes LATENCY - 1 clocks after the beat was granted, in the order of the grants; who asked has room for it. What is written
// is there at once.
//
// `load_*` writes from outside, before anything runs.
`default_nettype none

module soft_memory #(
    parameter int MASTERS = 7,
    // log2 of its bytes.
    parameter int SIZE_W  = 26,
    // Clocks from a grant to the clock in which a register behind this port has the data.
    parameter int LATENCY = 18,
    localparam int BEAT_W = SIZE_W - 3
) (
    input  wire                            clk,
    input  wire                            rst,
    input  wire                            load_valid,
    input  wire  [31:0]                    load_address,
    input  wire  [63:0]                    load_data,
    input  wire  [MASTERS-1:0]             ask,
    input  wire  [MASTERS-1:0]             is_write,
    input  wire  [MASTERS-1:0][BEAT_W-1:0] beat,
    input  wire  [MASTERS-1:0][63:0]       data,
    input  wire  [MASTERS-1:0][7:0]        strobes,
    output logic [MASTERS-1:0]             grant,
    output logic [MASTERS-1:0]             come,
    output logic [63:0]                    come_data
);
  localparam int WHO_W  = $clog2(MASTERS);
  localparam int SLOT_W = 5;

  if (LATENCY < 3 || LATENCY > 32) begin : gen_bad_latency
    $error("soft_memory: LATENCY must be 3 to 32");
  end

  logic [63:0]       words [2**BEAT_W];
  logic [WHO_W:0]    pipe_who [2**SLOT_W];   // with a bit that says that there is something
  logic [63:0]       pipe_data [2**SLOT_W];
  logic [SLOT_W-1:0] slot;

  logic [WHO_W-1:0]  who;
  always_comb begin
    who   = '0;
    grant = '0;
    for (int at = MASTERS - 1; at >= 0; at--) begin
      if (ask[at]) who = WHO_W'(at);
    end
    grant[who] = ask[who];
  end

  wire              any      = |ask;
  wire [BEAT_W-1:0] at       = beat[who];
  wire [SLOT_W-1:0] out_slot = slot - SLOT_W'(LATENCY - 2);
  wire [WHO_W:0]    out_who  = pipe_who[out_slot];

  always_ff @(posedge clk) begin
    slot           <= slot + 1'b1;
    pipe_who[slot] <= {any && !is_write[who] && !rst, who};
    come           <= '0;
    if (out_who[WHO_W] && !rst) begin
      come[out_who[WHO_W-1:0]] <= 1'b1;
      come_data                <= pipe_data[out_slot];
    end
    if (rst) begin
      // As many clocks as there are slots empty them all.
      slot <= slot + 1'b1;
      if (load_valid) words[load_address[SIZE_W-1:3]] <= load_data;
    end else if (any) begin
      if (!is_write[who]) begin
        pipe_data[slot] <= words[at];
      end else begin
        for (int lane = 0; lane < 8; lane++) begin
          if (strobes[who][lane]) words[at][lane*8+:8] <= data[who][lane*8+:8];
        end
      end
    end
  end

  wire unused = &{1'b0, load_address[31:SIZE_W], load_address[2:0]};
endmodule

`default_nettype wire
