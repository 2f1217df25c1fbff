"""Pictures of plain arrays."""
