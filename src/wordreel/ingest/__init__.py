"""Add files: plan what there is to do, run the experts, record what they saw."""
