// One agent on the official TypeScript SDK at addresses of a gateway: lists, and calls.
//
//     agent.mjs legacy|modern URL=TOOL,TOOL...
const [era, ...places] = process.argv.slice(2);
const modern = era === "modern";
// The first major version speaks one era only; the second is another package.
const { Client } = modern
  ? await import("@modelcontextprotocol/client")
  : await import("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = modern
  ? await import("@modelcontextprotocol/client")
  : await import("@modelcontextprotocol/sdk/client/streamableHttp.js");

const expect = (what, why) => { if (!what) throw new Error(why); };
const options = modern ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {};
for (const place of places) {
  const [url, tools] = place.split("=");
  const client = new Client({ name: "drill", version: "1" }, options);
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  const version = modern ? client.getNegotiatedProtocolVersion() : transport.protocolVersion ?? "legacy";
  expect(!modern || version >= "2026", `spoke ${version}`);
  const listed = (await client.listTools()).tools.map((one) => one.name);
  const wanted = tools.split(",");
  for (const tool of wanted) {
    expect(listed.includes(tool), listed.join());
    const result = await client.callTool({ name: tool, arguments: { message: "hello" } });
    expect(!result.isError && result.content[0].text === "Echo: hello", JSON.stringify(result));
  }
  console.log(`${url} ${version}, ${listed.length} tools, ${wanted.length} called`);
  await client.close();
}
