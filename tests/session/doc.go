// Package session holds no code but tests of sessions: several in one process, changed while traffic flows.
package session
