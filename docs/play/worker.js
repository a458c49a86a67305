"use strict";

// Runs the API server, the program and the lens: all that is in play.bin.
importScripts("wasm_exec.js");

const early = []; // what the page asked before the program was ready
onmessage = ({ data }) => (self.ask ? self.ask(...data) : early.push(data));

self.program = new URLSearchParams(location.search).get("program");
self.answer = (number, status, text) => postMessage({ number, status, text });
self.ready = () => {
  for (const data of early) self.ask(...data);
  postMessage({ ready: true });
};

(async () => {
  const file = await fetch("play.bin");
  const size = Number(file.headers.get("Content-Length")) || 1;
  let loaded = 0;
  const count = new TransformStream({ transform(chunk, out) {
    postMessage({ loaded: loaded += chunk.length, size });
    out.enqueue(chunk);
  } });
  const bytes = file.body.pipeThrough(count).pipeThrough(new DecompressionStream("gzip"));
  const go = new Go();
  const { instance } = await WebAssembly.instantiateStreaming(new Response(bytes,
    { headers: { "Content-Type": "application/wasm" } }), go.importObject);
  await go.run(instance);
  throw new Error("its program has ended; load the page again");
})().catch((error) => { setTimeout(() => { throw error; }); });
