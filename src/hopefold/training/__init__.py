"""How it is learned, whatever is learned: settings, one loop, optimisers, progress."""
