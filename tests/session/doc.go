// Package session contains only tests of sessions: several in one process, changed while traffic flows.
package session
