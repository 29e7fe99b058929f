// SPDX-License-Identifier: Apache-2.0
// The official SDK of the Model Context Protocol, as a client of croft or ("serve") as a server
// below it. argv: folder of the package, then the URL and the key, or "serve".
import assert from "node:assert";

const [sdk, url, key] = process.argv.slice(2);
const load = (path) => import(`${sdk}/dist/esm/${path}`);

async function serve() {
  const { Server } = await load("server/index.js");
  const { StdioServerTransport } = await load("server/stdio.js");
  const types = await load("types.js");
  const server = new Server({ name: "sums", version: "1" }, { capabilities: { tools: {} } });
  const number = { type: "number" };
  const inputSchema = { type: "object", properties: { a: number, b: number } };
  server.setRequestHandler(types.ListToolsRequestSchema, () => ({ tools: [{ name: "add", inputSchema }] }));
  server.setRequestHandler(types.CallToolRequestSchema, ({ params }) => {
    const { a, b } = params.arguments;
    return { content: [{ type: "text", text: `${a + b}` }] };
  });
  await server.connect(new StdioServerTransport());
}

async function check() {
  const { Client } = await load("client/index.js");
  const { SSEClientTransport } = await load("client/sse.js");
  const headers = { "X-Session-API-Key": key, Authorization: `Bearer ${key}` };
  const client = new Client({ name: "test", version: "1" }, { capabilities: {} });
  await client.connect(
    new SSEClientTransport(new URL(`${url}/mcp/sse`), {
      requestInit: { headers },
      eventSourceInit: { fetch: (u, init) => fetch(u, { ...init, headers: { ...init?.headers, ...headers } }) },
    }),
  );
  assert.equal(client.getServerVersion().name, "croft");
  const { tools } = await client.listTools();
  const names = tools.map((t) => t.name);
  assert(names.includes("few_echo") && names.includes("node_add"), names.join());
  const sum = await client.callTool({ name: "node_add", arguments: { a: 20, b: 22 } });
  assert.deepEqual(sum.content, [{ type: "text", text: "42" }]);
  await assert.rejects(client.callTool({ name: "few_fail" }), /it went wrong/);
  const dead = await client.callTool({ name: "few_die" });
  assert(dead.isError && dead.content[0].text.includes("out of luck"));
  const again = await client.callTool({ name: "few_echo", arguments: { x: 1 } });
  assert.deepEqual(again.structuredContent, { x: 1 });
  const stop = new AbortController();
  const slow = client.callTool({ name: "few_slow" }, undefined, { signal: stop.signal });
  stop.abort("enough");
  await assert.rejects(slow, /enough/);
  await client.ping();
  await client.close();
  console.log("all well");
}

await (url === "serve" ? serve() : check());
