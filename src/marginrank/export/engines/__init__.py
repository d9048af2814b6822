"""Engines that run exports, or references that implement their documented arithmetic."""
