"""The subcommands, one module each. A command reads options, calls the library, emits the result and returns a code."""
