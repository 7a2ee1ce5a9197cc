"""The group coordinator, pure: a request or the passing of time in, records, replies and one deadline out."""
