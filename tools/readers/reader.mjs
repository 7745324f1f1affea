// What JSON.parse reads in a message. A text a line in, an object a line out: place to the JSON there, or null.
// See tools/differential.
import { readFileSync } from "node:fs";

const META = "io.modelcontextprotocol/";
const PLACES = {
  id: ["id"], method: ["method"], result: ["result"], error: ["error"], entry: ["name"],
  name: ["params", "name"], uri: ["params", "uri"], requestId: ["params", "requestId"],
  progressToken: ["params", "progressToken"],
  "ref.type": ["params", "ref", "type"], "ref.name": ["params", "ref", "name"], "ref.uri": ["params", "ref", "uri"],
  "_meta.progressToken": ["params", "_meta", "progressToken"],
  "_meta.version": ["params", "_meta", META + "protocolVersion"],
  "_meta.client": ["params", "_meta", META + "clientInfo"],
  "_meta.capabilities": ["params", "_meta", META + "clientCapabilities"],
};

// JSON has no infinity, and 1e400 is one here.
const spell = (value) =>
  JSON.stringify(value, (_, one) => (one === Infinity ? "#inf" : one === -Infinity ? "#-inf" : one));

function at(value, path) {
  for (const name of path) {
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    if (!isObject || !Object.hasOwn(value, name)) return null;
    value = value[name];
  }
  return spell(value);
}

function read(line) {
  try {
    const message = JSON.parse(line);
    return Object.fromEntries(Object.entries(PLACES).map(([place, path]) => [place, at(message, path)]));
  } catch (error) {
    return { refused: String(error) };
  }
}

const lines = readFileSync(0, "utf8").split("\n");
lines.pop();
process.stdout.write(lines.map((line) => JSON.stringify(read(line)) + "\n").join(""));
