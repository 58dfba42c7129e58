// Package cli is what the command lines of both programs have in common: exit codes, wrong usage, signals, configurations, versions.
package cli

import "runtime/debug"

// Version is the release if it is one, and the commit: a report of a fault must name it.
func Version(release, revision string) string {
	name := release
	if name == "" {
		name = "development"
	}
	if commit := commit(revision); commit != "" {
		return name + "-" + commit
	}
	return name + " of an unknown commit (make build names it)"
}

// commit is what the linker was told, or what the Go command found out by itself.
func commit(revision string) string {
	info, ok := debug.ReadBuildInfo()
	if revision != "" || !ok {
		return revision
	}
	commit, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+changes"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + modified
}
