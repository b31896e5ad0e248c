"""What works on this machine and with its accounts: `service doctor` and `service runtime check`."""
