"""EXPERIMENTAL: what no machine at hand could test as it will be used. May change or go without notice."""
