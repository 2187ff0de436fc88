"""What is done to rows before they are expanded: shifts, cells, rotations."""
