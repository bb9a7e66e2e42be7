"""What works on this machine, and the cure for what does not. Nothing heavy is imported to find out."""
