"""Where everything that the dashboard shows comes from: a cluster, a recording, or what a test has prepared."""
