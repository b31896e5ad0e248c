"""Health checks of this machine and its accounts: `service doctor` and `service runtime check`."""
