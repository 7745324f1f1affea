// One agent on the official TypeScript SDK: lists, calls, kills its server, and calls on.
//
//     agent.mjs legacy|modern TOOL ARGUMENTS COMMAND...
import { execFileSync } from "node:child_process";

const [era, tool, json, command, ...args] = process.argv.slice(2);
const modern = era === "modern";
// The first major version speaks one era only; the second is another package.
const { Client } = modern
  ? await import("@modelcontextprotocol/client")
  : await import("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = modern
  ? await import("@modelcontextprotocol/client/stdio")
  : await import("@modelcontextprotocol/sdk/client/stdio.js");

const below = (pid) => {
  try {
    return execFileSync("pgrep", ["-P", String(pid)], { encoding: "utf8" }).split("\n").filter(Boolean).map(Number);
  } catch {
    return [];
  }
};
// The processes at the ends of the tree: the servers themselves.
const leaves = (pid) => {
  const children = below(pid);
  return children.length ? children.flatMap(leaves) : [pid];
};

const options = modern ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {};
const client = new Client({ name: "drill", version: "1" }, options);
const transport = new StdioClientTransport({ command, args, stderr: "ignore" });
await client.connect(transport);
const expect = (what, why) => { if (!what) throw new Error(why); };
const version = modern ? client.getNegotiatedProtocolVersion() : transport._protocolVersion ?? "legacy";
expect(!modern || version >= "2026", `spoke ${version}`);
const names = async () => (await client.listTools()).tools.map((one) => one.name).join();
const call = () => client.callTool({ name: tool, arguments: JSON.parse(json) });
const tools = await names();
const first = await call();
expect(!first.isError, JSON.stringify(first));
for (const pid of leaves(transport.pid)) process.kill(pid, "SIGKILL");
let failed = 0, again = await call();
while (again.isError) {
  // What was under way when the server died may fail, with a reason; then it is back.
  expect(++failed < 3, JSON.stringify(again));
  again = await call();
}
expect(again.content[0].text === first.content[0].text, JSON.stringify(again));
expect((await names()) === tools, "another list");
console.log(`${version}, ${tools.split(",").length} tools, killed once, ${failed} failed with a reason`);
await client.close();
