"""Where requests come from: a trace file, or a generator of chats; and the open loop that replays them."""
