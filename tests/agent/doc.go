// Package agent tests the agent as its operator runs it: the binary, in namespaces of its own, with interfaces that are added and removed, signals, and
// kill -9. `make agent-soak` runs the longer forms.
package agent
