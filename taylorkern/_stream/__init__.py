"""Training on what comes batch by batch."""
