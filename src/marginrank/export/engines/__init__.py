"""What runs the files of an export: real engines, or references of their documented arithmetic."""
