"""Metrics of Temporal's SDK."""

METRICS = {
    "temporal_sticky_cache_size",
    "temporal_worker_task_slots_available",
    "temporal_workflow_task_execution_latency_seconds_bucket",
    "temporal_workflow_task_schedule_to_start_latency_seconds_bucket",
}
"""Those that the alert rules and the board name."""
