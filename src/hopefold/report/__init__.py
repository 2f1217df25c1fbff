"""Reports and static figures of maps, from plain arrays."""
