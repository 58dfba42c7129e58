// Package names holds no code but a test: every name that an algorithm reports under is in docs/output.md, and is one that Prometheus takes.
// It proves each algorithm in every form, which under the race detector would take minutes and say nothing more.
package names
