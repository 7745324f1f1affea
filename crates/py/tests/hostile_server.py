"""A server whose answers are JSON that other readers do not like. The name of a tool says how it answers."""

import json
import sys

LONG = "9" * 5000
ANSWERS = {
    "long_number": '"result":{"content":[{"type":"text","text":"x"}],"structuredContent":{"v":%s}}' % LONG,
    "long_code": '"error":{"code":%s,"message":"m"}' % LONG,
    "fine": '"result":{"content":[{"type":"text","text":"fine"}]}',
}
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ANSWERS]

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, params = asked["method"], asked.get("params") or {}
    if method == "initialize":
        about = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}}
        said = '"result":' + json.dumps({**about, "serverInfo": {"name": "hostile", "version": "1"}})
    elif method == "tools/list":
        said = '"result":' + json.dumps({"tools": TOOLS})
        if "--long-list" in sys.argv:
            said = said.replace('"object"', '"object","maximum":' + LONG)
    elif method == "tools/call":
        said = ANSWERS[params["name"]]
    else:
        said = '"result":{}'
    print('{"jsonrpc":"2.0","id":%s,%s}' % (json.dumps(asked["id"]), said), flush=True)
