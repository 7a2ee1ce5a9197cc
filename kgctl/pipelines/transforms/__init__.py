"""The computations of the jobs: functions from DataFrames to DataFrames that read and write nothing."""
