"""What drives a map: interactions of features, and what they contribute to rows."""
