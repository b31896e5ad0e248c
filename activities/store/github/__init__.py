"""Rows about GitHub: how it is asked, the threads of trees and their comments, and the facts to write."""
