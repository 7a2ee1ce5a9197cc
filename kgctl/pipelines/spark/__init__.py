"""Everything that starts or inspects Spark: session, launcher, Java, jars, errors."""
