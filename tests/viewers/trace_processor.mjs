// trace_processor.mjs ENGINE_FOLDER TRACE SQL…: asks Perfetto's own trace_processor (the WebAssembly build that its web
// interface uses) about a trace, and prints one JSON array of rows per question.
// ENGINE_FOLDER holds trace_processor.wasm, its loader engine_bundle.node.js and engine.mjs, which speaks its protocol;
// tests/viewers/setup.sh fetches them.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";

const [folder, trace, ...questions] = process.argv.slice(2);
const kPiece = 32 << 20;

// The loader expects to be a web worker that fetches its module; here it gets the bytes, and 32-bit memory, which every
// Node runs.
function loadBridge() {
  const define = (name, value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  define("self", globalThis);
  define("WorkerGlobalScope", function WorkerGlobalScope() {});
  define("location", { href: pathToFileURL(resolve(folder)).href + "/" });
  define("llmprofModule", new Uint8Array(readFileSync(join(folder, "trace_processor.wasm"))));
  let source = readFileSync(join(folder, "engine_bundle.node.js"), "utf8");
  const change = (from, to) => {
    if (!source.includes(from)) throw new Error(`another version of the loader: no "${from}"`);
    source = source.replace(from, to);
  };
  change("this.useMemory64 = hasMemory64Support();", "this.useMemory64 = false;");
  change("locateFile: (s) => s,", "locateFile: (s) => s, wasmBinary: globalThis.llmprofModule,");
  change("const wasmBridge = new wasm_bridge_1.WasmBridge();",
         "const wasmBridge = globalThis.llmprofBridge = new wasm_bridge_1.WasmBridge();");
  vm.runInThisContext(source);
  return globalThis.llmprofBridge;
}

async function connect() {
  const { EngineBase } = await import(pathToFileURL(resolve(folder, "engine.mjs")).href);
  const { port1, port2 } = new MessageChannel();
  class Engine extends EngineBase {
    mode = "WASM";
    id = "check";
    rpcSendRequestBytes(bytes) { port2.postMessage(bytes); }
  }
  loadBridge().initialize(port1);
  const engine = new Engine();
  port2.onmessage = (message) => engine.onRpcResponseBytes(message.data);
  await new Promise((done) => setTimeout(done, 1500));  // it compiles; nothing tells when it is done
  return engine;
}

console.warn = () => {};  // fields of answers that its protocol does not name
const engine = await connect();
const bytes = new Uint8Array(readFileSync(trace));
for (let at = 0; at < bytes.length; at += kPiece) await engine.parse(bytes.subarray(at, at + kPiece));
await engine.notifyEof();
for (const question of questions) {
  const result = await engine.query(question);
  if (result.error()) throw new Error(result.error());
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(Object.fromEntries(result.columns().map((name) => {
      const value = row.get(name);
      return [name, typeof value === "bigint" ? Number(value) : value];
    })));
  }
  console.log(JSON.stringify(rows));
}
process.exit(0);
