// An agent on the official TypeScript SDK: calls through linetender while its server is killed, again and again.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const below = (pid) => {
  let listed = "";
  try { listed = execFileSync("pgrep", ["-P", String(pid)], { encoding: "utf8" }); } catch { return []; }
  return listed.split("\n").filter(Boolean).map(Number).flatMap((child) => [child, ...below(child)]);
};
const words = (pid) => { try { return readFileSync(`/proc/${pid}/cmdline`, "utf8"); } catch { return ""; } };
const servers = () => below(process.pid).filter((pid) => words(pid).startsWith("node") && words(pid).includes("server-everything"));

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "drill", version: "1" });
let closed = false;
client.onclose = () => { closed = true; };
await client.connect(new StdioClientTransport({ command, args, stderr: "ignore" }));
let answered = 0, failed = 0;
for (let kill = 0; kill < 10; kill++) {
  for (let call = 0; call < 15; call++) {
    const result = await client.callTool({ name: "echo", arguments: { message: `${kill}-${call}` } });
    if (result.isError) { failed++; console.log("a model reads:", result.content[0].text); } else answered++;
  }
  for (const pid of servers()) process.kill(pid, "SIGKILL");
}
await client.callTool({ name: "echo", arguments: { message: "still here" } });
if (closed) throw new Error("the connection was closed");
console.log(`typescript sdk: 10 kills, ${answered} answered, ${failed} failed with a reason, connection never closed`);
await client.close();
