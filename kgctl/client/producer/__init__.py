"""The producer: what decides in `core`, without I/O, and two faces, one that blocks and one for asyncio."""
