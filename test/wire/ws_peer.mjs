// SPDX-License-Identifier: Apache-2.0
// ws_peer.mjs — the npm package ws as a real peer.
//
//   node ws_peer.mjs FOLDER_OF_NODE_MODULES check ws://127.0.0.1:PORT/echo   holds an echo server to it
//   node ws_peer.mjs FOLDER_OF_NODE_MODULES serve                           echoes; prints its URL
//
// Exit 0: all held. Each failure is one line on stderr.
import { createRequire } from 'node:module';
import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';

const [folder, mode, url] = process.argv.slice(2);
const WebSocket = createRequire(resolve(folder, 'x.js'))('ws');

const open = (options) =>
  new Promise((opened, reject) => {
    const ws = new WebSocket(url, options);
    ws.on('open', () => opened(ws));
    ws.on('error', reject);
  });
const next = (ws, event) => new Promise((got) => ws.once(event, (...args) => got(args)));
const closed = async (ws) => {
  const [code, reason] = await next(ws, 'close');
  return { code, reason: reason.toString() };
};
const must = (what, condition) => {
  if (!condition) throw new Error(what);
};

const sizes = [0, 1, 125, 126, 127, 65535, 65536, 1 << 20];
const text = (n) => 'größe €, '.repeat(n).slice(0, n);

async function echoes(ws, data, options = {}) {
  const isBinary = typeof data !== 'string';
  ws.send(data, options);
  const [got, binary] = await next(ws, 'message');
  must(`kind of ${data.length}`, binary === isBinary);
  must(`echo of ${data.length}`, Buffer.compare(got, Buffer.from(data)) === 0);
}

async function allSizes(options) {
  const ws = await open(options);
  for (const n of sizes) {
    await echoes(ws, text(n));
    await echoes(ws, randomBytes(n));
    await echoes(ws, Buffer.alloc(n, 'x'));
  }
  ws.close(1000, 'done');
  const end = await closed(ws);
  must(`closed with ${end.code}`, end.code === 1000);
  return ws;
}

const deflate = (more) => ({ perMessageDeflate: { threshold: 0, ...more } });

const checks = {
  'plain text and binary': async () => {
    const ws = await allSizes({ perMessageDeflate: false });
    must('no extension', ws.extensions === '');
  },
  'permessage-deflate': async () => {
    const ws = await allSizes(deflate());
    must('extension agreed', ws.extensions.startsWith('permessage-deflate'));
  },
  'small windows': () => allSizes(deflate({ clientMaxWindowBits: 9, serverMaxWindowBits: 9 })),
  'no contexts': () =>
    allSizes(deflate({ clientNoContextTakeover: true, serverNoContextTakeover: true })),
  'fragments': async () => {
    for (const options of [{ perMessageDeflate: false }, deflate()]) {
      const ws = await open(options);
      ws.send('one ', { fin: false });
      ws.ping('between');
      ws.send('two ', { fin: false });
      ws.send('three', { fin: true });
      const [got, binary] = await next(ws, 'message');
      must('whole', got.toString() === 'one two three' && !binary);
      ws.terminate();
    }
  },
  'ping': async () => {
    const ws = await open();
    for (const payload of ['', 'hello', 'x'.repeat(125)]) {
      ws.ping(payload);
      const [got] = await next(ws, 'pong');
      must(`pong of ${payload.length}`, got.toString() === payload);
    }
    ws.terminate();
  },
  'close codes': async () => {
    for (const code of [1000, 1001, 1008, 1011, 3000, 4999]) {
      const ws = await open();
      ws.close(code, 'why');
      const end = await closed(ws);
      must(`code ${code} came back as ${end.code}`, end.code === code);
    }
    const ws = await open();
    ws.close();
    must('no code', (await closed(ws)).code === 1005);
  },
  'refusals': async () => {
    const bad = [
      [1002, Buffer.from([0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f])], // not masked
      [1002, Buffer.from([0x83, 0x80, 0, 0, 0, 0])],
      [1002, Buffer.from([0xa1, 0x80, 0, 0, 0, 0])],
      [1007, Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0xc0, 0xaf])],
      [1009, Buffer.from([0x82, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])],
    ];
    for (const [code, bytes] of bad) {
      const ws = await open({ perMessageDeflate: false });
      ws._socket.write(bytes);
      const end = await closed(ws);
      must(`refused with ${end.code}, not ${code}`, end.code === code);
    }
  },
  'many at once': async () => {
    const all = await Promise.all(Array.from({ length: 50 }, () => open()));
    await Promise.all(all.map((ws, i) => echoes(ws, text(1000 + i))));
    all.forEach((ws) => ws.close());
    await Promise.all(all.map(closed));
  },
  'hundreds in a row': async () => {
    const ws = await open(deflate());
    let n = 0;
    const done = new Promise((all) => ws.on('message', () => ++n === 500 && all()));
    for (let i = 0; i < 500; i++) ws.send(JSON.stringify({ i, text: text(300) }));
    await done;
    ws.close();
    await closed(ws);
  },
};

async function check() {
  let failed = 0;
  for (const [name, run] of Object.entries(checks)) {
    const late = new Promise((_, reject) => setTimeout(reject, 20000, new Error('no end')).unref());
    try {
      await Promise.race([run(), late]);
    } catch (e) {
      failed++;
      console.error(`${name}: ${e.message}`);
    }
  }
  process.exit(failed ? 1 : 0);
}

function serve() {
  const server = new WebSocket.WebSocketServer({
    port: 0,
    host: '127.0.0.1',
    perMessageDeflate: { threshold: 0 },
  });
  server.on('listening', () => console.log(`ws://127.0.0.1:${server.address().port}/`));
  server.on('connection', (ws) => ws.on('message', (data, binary) => ws.send(data, { binary })));
  process.stdin.on('end', () => process.exit(0)).resume();
}

if (mode === 'serve') serve();
else await check();
