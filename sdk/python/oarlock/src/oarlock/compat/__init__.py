"""Other packages' names over this one."""
