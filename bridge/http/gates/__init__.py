"""What every call passes before its route, one small check each, in the order of ruling J2."""
