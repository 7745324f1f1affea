// Between the conformance suite and the address of all servers: the suite calls things by their own names, so the prefix of the one
// server behind is put before them in what it asks, and taken away in what it is told. Nothing else is changed.
//
//     conformance-adapter.mjs PORT URL SERVER
import { createServer, request } from "node:http";

const [port, url, server] = process.argv.slice(2);
const [name, uri, page] = [`${server}__`, `linetender://${server}/`, `ui://${server}/`];
const uriOf = (own) => (own.startsWith("ui://") ? page + own.slice("ui://".length) : uri + own);

function asked(message) {
  const { method, params } = message;
  if (!params) return message;
  const named = { ...params };
  if (method === "tools/call" || method === "prompts/get") {
    if (typeof params.name === "string") named.name = name + params.name;
  } else if (method?.startsWith("resources/")) {
    if (typeof params.uri === "string") named.uri = uriOf(params.uri);
  } else if (method === "completion/complete" && params.ref) {
    named.ref = { ...params.ref };
    if (params.ref.type === "ref/prompt") named.ref.name = name + params.ref.name;
    else if (params.ref.uri) named.ref.uri = uriOf(params.ref.uri);
  } else if (method === "subscriptions/listen" && params.notifications?.resourceSubscriptions) {
    const uris = params.notifications.resourceSubscriptions.map(uriOf);
    named.notifications = { ...params.notifications, resourceSubscriptions: uris };
  }
  return { ...message, params: named };
}

function headersOf(headers, length) {
  const named = { ...headers, "content-length": length };
  const what = headers["mcp-name"];
  if (what && ["tools/call", "prompts/get"].includes(headers["mcp-method"])) named["mcp-name"] = name + what;
  if (what && headers["mcp-method"] === "resources/read") named["mcp-name"] = uriOf(what);
  return named;
}

const told = (text) => text.replaceAll(`"${name}`, '"').replaceAll(uri, "").replaceAll(page, "ui://");

createServer(async (incoming, outgoing) => {
  const pieces = [];
  for await (const piece of incoming) pieces.push(piece);
  let body = Buffer.concat(pieces).toString();
  try {
    const read = JSON.parse(body);
    // What is odd stays odd: it is what the suite wants to see refused.
    if (read && typeof read === "object") body = JSON.stringify(Array.isArray(read) ? read.map(asked) : asked(read));
  } catch {
    // Not JSON, on purpose.
  }
  const headers = incoming.method === "POST" ? headersOf(incoming.headers, Buffer.byteLength(body)) : incoming.headers;
  const onward = request(url, { method: incoming.method, headers }, (answer) => {
    const { "content-length": _, ...rest } = answer.headers;
    outgoing.writeHead(answer.statusCode, rest);
    outgoing.flushHeaders();
    // A message is cut in pieces anywhere, but never in a line's middle here: what has no end yet waits.
    let rest_of_line = "";
    answer.setEncoding("utf8");
    answer.on("data", (text) => {
      const all = rest_of_line + text;
      const end = all.lastIndexOf("\n") + 1;
      rest_of_line = all.slice(end);
      if (end) outgoing.write(told(all.slice(0, end)));
    });
    answer.on("end", () => outgoing.end(told(rest_of_line)));
    answer.on("error", () => outgoing.destroy());
  });
  onward.on("error", () => outgoing.destroy());
  outgoing.on("close", () => onward.destroy());
  onward.end(body);
}).listen(Number(port), "127.0.0.1");
