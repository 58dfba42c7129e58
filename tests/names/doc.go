// Package names tests that every name in an algorithm's reports is in docs/output.md and is valid for Prometheus.
// It proves each algorithm in every form, which would take minutes under the race detector without finding more.
package names
