// soft_fill beside soft_stores, as in soft_system, without processor and memory.
`default_nettype none

module soft_fill_bench #(
    parameter int SIZE_W  = 8,
    localparam int BEAT_W = SIZE_W - 3
) (
    input  wire               clk,
    input  wire               rst,
    // A read waits for the stores before it; a store is taken while there is room.
    input  wire               reads,
    input  wire               stores,
    input  wire  [29:0]       address,
    input  wire  [2:0]        cti,
    input  wire  [31:0]       stored,
    output logic              cycle,
    output logic              ack,
    output logic [31:0]       data,
    output logic              push,

    // Memory, which lets them wait. Others ask for it, too.
    input  wire               others,
    output logic              hold,
    input  wire               allows,
    input  wire               allows_store,
    output logic              ask,
    output logic [BEAT_W-1:0] beat,
    output logic              grant,
    input  wire               come,
    input  wire  [63:0]       come_data,
    output logic [BEAT_W-1:0] store_beat,
    output logic [63:0]       store_data,
    output logic [7:0]        store_strobes,
    output logic              store_grant,
    output logic              event_line
);
  logic has_room, is_empty, store_ask;

  assign cycle = reads && is_empty;
  assign push  = stores && has_room;
  assign hold  = others || !is_empty;
  assign grant = ask && allows;
  assign store_grant = store_ask && allows_store && !grant;

  soft_fill #(.SIZE_W(SIZE_W)) fill (
      .clk, .rst, .cycle, .address, .cti, .ack, .data, .hold, .push, .push_address(address), .ask, .beat, .grant, .come,
      .come_data, .event_line
  );
  soft_stores #(.SIZE_W(SIZE_W)) waiting (
      .clk, .rst, .push, .address, .data(stored), .strobes(4'hf), .has_room, .is_empty, .ask(store_ask), .beat(store_beat),
      .beat_data(store_data), .beat_strobes(store_strobes), .grant(store_grant)
  );
endmodule

`default_nettype wire
