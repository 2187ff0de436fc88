"""What degrees would cost, before anything is trained."""
