"""What the project needs to build its documents; not part of the distribution."""
