"""How two devices talk: pure frames, handshake and swap below; room, socket, agent and device above.

The room is declared, its furniture comes with the device and relay releases (see ARCHITECTURE.md).
"""
