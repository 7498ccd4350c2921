"""Evaluation reports: tables, charts and pages."""
