"""Testing aids: the pytest plugin for marble files, and what their expressions can use."""
