"""Hugging Face's smolagents, the agent that calls tools (not the one that writes code)."""

import sys

from mcp import StdioServerParameters
from smolagents import OpenAIServerModel, ToolCallingAgent, ToolCollection

url, command = sys.argv[1], sys.argv[2:]
model = OpenAIServerModel("scripted", api_base=url + "/v1", api_key="none")
server = StdioServerParameters(command=command[0], args=command[1:])
with ToolCollection.from_mcp(server, trust_remote_code=True) as tools:
    print(ToolCallingAgent([*tools.tools], model, max_steps=4).run("Use the tools."))
