// Package twins runs every P4 twin beside its bytecode: the same packets, the same clock, the same coins, and at the end of
// every window the same words in the same registers. What differs is a line of docs/twins.md, written as a predicate in the
// twin's folder with a largest count; a line that no longer occurs fails as well.
package twins
