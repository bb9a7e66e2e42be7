"""What a comparison lets a person say, and whether what somebody wrote agrees with the raw runs."""
