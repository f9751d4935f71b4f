//! What the machines of a target did: processor, memory, disk, network.
