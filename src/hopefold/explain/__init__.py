"""Feature interactions of a map, and their contributions to rows."""
