// Package names tests that every name in an algorithm's reports is in docs/output.md and is valid for Prometheus.
// It proves each algorithm in every form, which under the race detector would take minutes and find nothing more.
package names
