"""The checks that every call passes before its route, in the order of ruling J2."""
