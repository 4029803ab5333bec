"""What happens later or beside: jobs of a few lines, the schedule, the one-machine processes."""
