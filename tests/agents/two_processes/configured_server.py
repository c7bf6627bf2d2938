"""The same server, which writes its part of the turn by itself."""

from server import server

import turntrace as tt

tt.configure()
server.run()
