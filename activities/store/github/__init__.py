"""Rows about GitHub: the account and its requests, the threads of trees and their comments, and the facts to write."""
