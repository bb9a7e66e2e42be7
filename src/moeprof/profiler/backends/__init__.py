"""What can be launched: a vLLM server, or any command."""
