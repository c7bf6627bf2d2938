"""An MCP server that knows nothing of turntrace."""

import asyncio
import json
import time
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("tools")


@server.tool()
async def shell(command: str) -> str:
    """Pretend to run a command, and note when."""
    began_ns = time.time_ns()
    await asyncio.sleep(0.8)
    Path("ran.json").write_text(json.dumps({"start_ns": began_ns, "end_ns": time.time_ns()}))
    return f"{command}: all is well"


if __name__ == "__main__":
    server.run()
