"""What two arms ran on, key by key: what differs, and whether it makes a comparison unfair."""
