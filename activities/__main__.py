"""The worker as a member of the daemon, or started by hand: `python -m activities`."""

from activities.runs.service_process import importing

with importing():
    from activities.worker import main

if __name__ == "__main__":
    main()
