// Package cli is what the command lines of both programs have in common: exit codes, wrong usage, signals, configurations, versions.
package cli

import "runtime/debug"

// Version is the release, if this is one, and the commit, for bug reports.
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

// commit is the one that the linker set, or else the one that the Go command recorded.
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
