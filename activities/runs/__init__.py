"""Programs that outlive the worker that asked for them: started once, found again, ended, seen by what they print."""
