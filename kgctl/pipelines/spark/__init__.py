"""Everything that starts Spark: session, Java, gateway, archives."""
